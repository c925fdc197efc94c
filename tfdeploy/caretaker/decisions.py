"""When a machine ends: what is known of it in, what to do out. Pure. All times are in seconds."""

from typing import Any, Mapping, NamedTuple

REST, STOP, WAIT, SAVE, END = "rest", "stop", "wait", "save", "end"
"""Nothing; tell the tasks why they stop; wait for the other machines; bring the record to safety; shut down."""

FIRST_TASK = 3600.0
"""Before the first task has come a machine is idle only after so long: images are pulled."""

TASKS, OTHERS, RECORD = 120.0, 300.0, 120.0
"""How long an end that is due waits for tasks to stop, for the other machines, and for the record."""

MARGIN = 15.0
"""So long before a spot instance is taken away it shuts down by itself."""


class Limits(NamedTuple):
    """What was asked for; 0 is never."""

    lifetime: float
    idle: float
    boot: float

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> "Limits":
        """Those among the caretaker's settings."""
        return cls(*(float(settings[name]) for name in cls._fields))


class Facts(NamedTuple):
    """What is known of the machine."""

    age: float
    """Since its first boot."""
    ready: bool
    """Its boot script has come to its end."""
    quiet: float
    """Since a task ran last: here, and, where the Swarm is managed, anywhere. Since the caretaker came, where none did."""
    came: bool
    """Some task has run."""
    tasks: int
    """How many run here."""
    manages: bool
    """The Swarm's manager is here."""
    others: int
    """How many other machines of the Swarm are up."""
    safe: bool
    """The record, as it is now, is where it outlives the machine; or there is none to keep."""
    due: float
    """Since an end came to be due."""
    saving: float
    """Since the record has been brought to safety for it."""
    notice: str
    """Why Amazon takes the machine away; empty when it does not."""
    left: float
    """Until then."""


class Action(NamedTuple):
    """What to do, and why."""

    do: str
    why: str = ""


def decide(limits: Limits, facts: Facts) -> Action:
    """The next step. An end that is due and waits may still be taken back: by a task that comes."""
    if facts.notice:
        return Action(_leave(facts), facts.notice)
    if limits.boot and not facts.ready and facts.age >= limits.boot:
        return Action(END, f"boot failed: not ready after {limits.boot:.0f} s")
    if limits.lifetime and facts.age >= limits.lifetime:
        return Action(_expire(facts), f"lifetime of {limits.lifetime:.0f} s is over")
    enough = limits.idle if facts.came else max(limits.idle, FIRST_TASK)
    if limits.idle and facts.quiet >= enough:
        return Action(_retire(facts), f"idle for {enough:.0f} s")
    return Action(REST)


def _leave(facts: Facts) -> str:
    """Amazon waits for nobody."""
    if facts.left <= MARGIN:
        return END
    if facts.tasks:
        return STOP
    return SAVE if facts.manages and not facts.safe else END


def _expire(facts: Facts) -> str:
    if facts.tasks and facts.due < TASKS:
        return STOP
    if not facts.manages:
        return END
    if facts.others and facts.due < OTHERS:
        return WAIT
    return SAVE if not facts.safe and facts.saving < RECORD else END


def _retire(facts: Facts) -> str:
    """The record waits for as long as it takes: until the lifetime is over."""
    if not facts.manages:
        return END
    if facts.others and facts.due < OTHERS:
        return WAIT
    return END if facts.safe else SAVE
