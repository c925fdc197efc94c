"""A task gets a new container only when the program in the former one has ended, or when its machine can stop it. Silence, for however
long, does not confirm that. What does:

- its node responds: the Swarm stops the container first, and reports its end;
- its node is not in the Swarm any more: `tfdeploy restart --lost` or an administrator has removed it, or EC2 has ended the instance.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ....errors import BackendError

_CONFIRMATION_SECONDS = 60.0
"""So long an update waits for a machine that may only restart. The next update waits again."""

_POLL_SECONDS = 1.0


@dataclass(frozen=True)
class FormerLauncher:
    """The latest launcher of a task, as the controller knows it."""

    machine: str = ""
    """Empty where it is not known."""
    silent: float | None = None
    """For how long the controller has received nothing from it, by the controller's clock; None while that is unknown. 0 where no
    program of it can run: there was none, or it has reported its end after the task or the run had ended."""


def lost_remedy(machine: str) -> str:
    """What the user can do for tasks on a machine of a Swarm that does not respond."""
    return f"Start {machine} again. If it is off for good, `tfdeploy restart --lost {machine}` moves its tasks to other machines."


def wait_for_former_launcher(
    hostname: str, observe: Callable[[], FormerLauncher], unreachable: Callable[[], Mapping[str, str]]
) -> None:
    """Wait until the program of a task's former launcher has ended, or its machine responds.

    `unreachable` are the statuses of the machines of the Swarm that do not respond, by name.

    Raises:
        BackendError: its machine does not respond, and nothing confirms the end; with what the user can do.
    """
    begin = time.monotonic()
    is_reported = False
    while True:
        former, waited = observe(), time.monotonic() - begin
        suspects = {
            name: status
            for name, status in unreachable().items()
            if former.machine in ("", name) and former.silent != 0
        }
        if not suspects:
            return
        machines = " and ".join(f"{name} is {status}" for name, status in suspects.items())
        sentence = f"{hostname} is not started: {machines}, and its program may still run there."
        if waited >= _CONFIRMATION_SECONDS:
            raise BackendError(f"{sentence} {' '.join(map(lost_remedy, suspects))} Then run `pulumi up` again")
        if not is_reported:
            print(sentence, flush=True)
            is_reported = True
        time.sleep(_POLL_SECONDS)
