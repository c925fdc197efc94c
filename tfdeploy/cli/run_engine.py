"""The engine's process of `tfdeploy run`: `python -m tfdeploy.cli.run_engine up|destroy STACK`, in `calls.environment`: the program
that runs in it is told of the login that the stack has, and not of the user's."""

import fcntl
import os
import signal
import sys

import pulumi
from pulumi import automation

from ..cluster import TensorFlowCluster
from . import calls
from .calls import PROJECT, REFUSED, Call
from .commanding import CLUSTER


def up(call: Call) -> int:
    """Make the cluster stand; the exit code."""
    refused: list[str] = []

    def program() -> None:
        try:
            TensorFlowCluster(CLUSTER, call.args)  # type: ignore[arg-type]
        except pulumi.RunError as error:
            refused.append(str(error))
            raise

    stack = automation.create_stack(call.stack, project_name=PROJECT, program=program, opts=_options())
    if call.config:
        stack.set_all_config({f"tfdeploy:{name}": automation.ConfigValue(value) for name, value in call.config.items()})
    try:
        stack.up(on_output=_say)
    except Exception as error:
        if refused:
            call.refusal.write_text(refused[0])
            return REFUSED
        return _failed(error)
    return 0


def destroy(call: Call) -> int:
    """Take it away, and the stack with it; the exit code."""
    try:
        stack = automation.select_stack(call.stack, project_name=PROJECT, program=lambda: None, opts=_options())
        try:
            stack.destroy(on_output=_say)
        except automation.ConcurrentUpdateError:  # of an engine that was killed: this stack is nobody else's
            stack.cancel()
            stack.destroy(on_output=_say)
        stack.workspace.remove_stack(call.stack)
    except automation.StackNotFoundError:
        return 0
    except automation.CommandError as error:
        return _failed(error)
    return 0


def _options() -> automation.LocalWorkspaceOptions:
    return automation.LocalWorkspaceOptions(work_dir=str(calls.home()))


def _failed(error: Exception) -> int:
    _say(str(error))
    return 1


def _say(text: str) -> None:
    print(text, flush=True)


def main(action: str, stack: str) -> int:
    """Do it. A signal is for the engine below: we wait for its end, whatever comes."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    os.chdir(calls.home())
    call = calls.known(stack)
    with call.lock.open("w") as lock:  # a removal that was abandoned may still go on
        fcntl.flock(lock, fcntl.LOCK_EX)
        return {"up": up, "destroy": destroy}[action](call)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
