"""When a machine shuts down: facts in, an action out. Pure. All durations are in seconds."""

from typing import Any, Mapping, NamedTuple

REST, STOP, WAIT, SAVE, END = "rest", "stop", "wait", "save", "end"
"""Do nothing; notify the tasks why they must stop; wait for the other machines; upload the record; shut down."""

FIRST_TASK = 3600.0
"""The least idle time before the first task: the images are pulled."""

TASKS, OTHERS, RECORD = 120.0, 300.0, 120.0
"""How long a shutdown waits for the tasks, for the other machines, and for the record."""

ENGINE_SILENT = 1800.0
"""How long an engine that does not respond counts as busy, where it had tasks. A restart or an upgrade takes minutes."""

UNSAVED = 6 * 3600.0
"""How long an idle manager tries to upload its record."""

MARGIN = 15.0
"""How long before a spot interruption the machine shuts down by itself."""


class Limits(NamedTuple):
    """The requested limits; 0 for never."""

    lifetime: float
    idle: float
    boot: float

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> "Limits":
        """The limits in the watchdog's settings."""
        return cls(*(float(settings[name]) for name in cls._fields))


class MachineFacts(NamedTuple):
    """What is known of the machine."""

    age: float
    """Since its first boot."""
    ready: bool
    """Its boot script has succeeded."""
    quiet: float
    """Since the last task ran: here, and on a manager anywhere. Since the watchdog's start, where none did."""
    had_task: bool
    """A task has run."""
    tasks: int
    """The number of tasks that run here."""
    is_manager: bool
    """This machine manages the Swarm."""
    others: int
    """The number of other machines of the Swarm that are up."""
    saved: bool
    """The present record is uploaded, or there is none."""
    due: float
    """Since a shutdown became due."""
    saving: float
    """Since the upload of the record for the shutdown began."""
    notice: str
    """The interruption notice of a spot instance; empty for none."""
    left: float
    """Until the interruption."""
    problem: str = ""
    """Why the record could not be uploaded at the last try; empty if it could."""


class Action(NamedTuple):
    """What to do, and why."""

    do: str
    why: str = ""


def decide(limits: Limits, facts: MachineFacts) -> Action:
    """The next step. A due shutdown that waits is cancelled when a new task starts on an idle machine."""
    if facts.notice:
        return Action(_on_interruption(facts), facts.notice)
    if limits.boot and not facts.ready and facts.age >= limits.boot:
        return Action(END, f"boot failed: not ready after {limits.boot:.0f} s")
    if limits.lifetime and facts.age >= limits.lifetime:
        return _with_problem(_on_lifetime(facts), f"max_lifetime of {limits.lifetime:.0f} s is over", facts)
    idle = limits.idle if facts.had_task else max(limits.idle, FIRST_TASK)
    if limits.idle and facts.quiet >= idle:
        return _with_problem(_on_idle(facts), f"idle for {idle:.0f} s", facts)
    return Action(REST)


def _with_problem(do: str, why: str, facts: MachineFacts) -> Action:
    """The action, with the reason why a manager waits, or ends, without having uploaded its record."""
    if do in (SAVE, END) and facts.is_manager and not facts.saved and facts.problem:
        return Action(do, f"{why}; its record cannot be uploaded ({facts.problem})")
    return Action(do, why)


def _on_interruption(facts: MachineFacts) -> str:
    """Amazon does not wait: the machine ends before the interruption, whatever is not saved."""
    if facts.left <= MARGIN:
        return END
    if facts.tasks:
        return STOP
    return SAVE if facts.is_manager and not facts.saved else END


def _on_lifetime(facts: MachineFacts) -> str:
    if facts.tasks and facts.due < TASKS:
        return STOP
    if not facts.is_manager:
        return END
    if facts.others and facts.due < OTHERS:
        return WAIT
    return SAVE if not facts.saved and facts.saving < RECORD else END


def _on_idle(facts: MachineFacts) -> str:
    if not facts.is_manager:
        return END
    if facts.others and facts.due < OTHERS:
        return WAIT
    return END if facts.saved or facts.saving >= UNSAVED else SAVE
