"""The process that runs Pulumi for `tfdeploy run`: `python -m tfdeploy.cli.run.pulumi_program ACTION STACK`.

It is a separate process because the program runs in it, and the component reads Pulumi's backend from the environment, which
`stack.environment` sets to our own.
"""

import fcntl
import json
import os
import signal
import sys
from datetime import datetime
from functools import partial

import pulumi
from pulumi import automation
from pulumi.automation._stack import StackInitMode

from ...cluster import TensorFlowCluster
from ...errors import SpecError
from ...program.announcements import also_warn
from ...report.update_failure import ignore_failed_runs
from .arguments import CLUSTER
from .stack import LOCK, REFUSAL, REFUSED, WARNINGS, Call, home, stored_call


class _Stack(automation.Stack):
    """A stack of which only the output of Pulumi's operations is read. The base class also asks Pulumi for the outputs and the history
    after each operation: three processes, one second."""

    @classmethod
    def opened(cls, call: Call, program: automation.PulumiFn, mode: StackInitMode) -> "_Stack":
        """The stack of a call."""
        return cls(call.stack, automation.LocalWorkspace(work_dir=str(home()), program=program), mode)

    def outputs(self) -> automation.OutputMap:
        """None."""
        return {}

    def info(self, show_secrets: bool | None = None) -> automation.UpdateSummary:
        """No summary: Pulumi has printed one."""
        return automation.UpdateSummary("", datetime.now(), "", {}, {}, "")


def up(call: Call) -> int:
    """Create the cluster; returns the exit code."""
    refusals: list[list[str]] = []
    ignore_failed_runs()
    also_warn(partial(_store_warning, call))

    def program() -> None:
        try:
            TensorFlowCluster(CLUSTER, call.args)  # type: ignore[arg-type]
        except pulumi.RunError as error:
            cause = error.__context__
            refusals.append([cause.where, cause.wrong, cause.remedy] if isinstance(cause, SpecError) else [str(error)])
            raise

    stack = _Stack.opened(call, program, StackInitMode.CREATE)
    if call.config:
        stack.set_all_config({f"tfdeploy:{name}": automation.ConfigValue(value) for name, value in call.config.items()})
    try:
        stack.up(on_output=_print)
    except Exception as error:
        if refusals:
            call.file(REFUSAL).write_text(json.dumps(refusals[0]))
            return REFUSED
        return _print_failure(error)
    return 0


def _store_warning(call: Call, text: str) -> None:
    with call.file(WARNINGS).open("a") as file:
        file.write(f"{text.splitlines()[0]}\n")


def destroy(call: Call) -> int:
    """Remove the cluster and its stack; returns the exit code."""
    try:
        stack = _Stack.opened(call, lambda: None, StackInitMode.SELECT)
        try:
            stack.destroy(on_output=_print)
        except automation.ConcurrentUpdateError:  # the lock of a killed update: only this call uses the stack
            stack.cancel()
            stack.destroy(on_output=_print)
        stack.workspace.remove_stack(call.stack)
    except automation.StackNotFoundError:
        return 0
    except automation.CommandError as error:
        return _print_failure(error)
    return 0


def _print_failure(error: Exception) -> int:
    _print(str(error))
    return 1


def _print(text: str) -> None:
    print(text, flush=True)


def main(action: str, stack: str) -> int:
    """Run the action. Pulumi, in the same session, receives signals; this process waits until Pulumi has ended."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    os.chdir(home())
    call = stored_call(stack)
    with call.file(LOCK).open("w") as lock:  # an abandoned removal may still be running
        fcntl.flock(lock, fcntl.LOCK_EX)
        return {"up": up, "destroy": destroy}[action](call)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
