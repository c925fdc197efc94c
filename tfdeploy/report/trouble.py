"""What prevents an observation of a cluster: its engine or its controller does not respond, or nothing of it is left. Pure."""

from dataclasses import dataclass

from ..backends.base import GONE, ObservedState
from ..units import moment
from .remedies import engine_remedy

_PATIENCE = 5.0
"""So many seconds a controller or an engine is silent at most where it is started again, or misses a call."""


def trouble_of(observed: ObservedState, heal: str) -> tuple[str, str]:
    """What is wrong, and what to do; both empty for nothing. `heal` is the command that recreates what is missing."""
    problems = "; ".join(observed.problems)
    if is_gone(observed) and observed.engine is not None:
        return "Nothing of the cluster exists any more: no controller, and no task.", f"Run `{heal}`."
    if observed.engine is None and problems:
        remedy = "Start the engine, or correct `docker.host` or `DOCKER_HOST`, until `docker info` works."
        return f"The engine does not respond: {problems}.", f"{remedy} Running tasks are not affected."
    if observed.engine is None:
        return "The cluster's supervisord is gone, with all of its processes.", f"Run `{heal}`."
    if observed.controller_silent_since is not None:
        since = f" since {moment(observed.controller_silent_since)}" if observed.controller_silent_since else ""
        text = f"The controller does not respond{since}{f': {problems}' if problems else ''}."
        remedy = f"`{heal}` starts it again. Running tasks are not affected."
        return text, engine_remedy(problems, "") or remedy
    return (f"{problems}.", engine_remedy(problems, "") or f"Run `{heal}`.") if problems else ("", "")


def is_gone(observed: ObservedState) -> bool:
    """Whether the place of the cluster responds and has nothing of it that could run: no controller, no task, no machine."""
    if observed.controller_silent_since is None or observed.problems:
        return False
    statuses = {observed.machines.others, *observed.machines.statuses.values()}
    return not observed.engine and (observed.engine == {} or statuses == {GONE})


@dataclass
class Trouble:
    """What is wrong for a while with a cluster that is observed again and again."""

    text: str = ""
    """In sentences; empty for nothing, and as long as it may be over in a moment."""
    is_final: bool = False
    """Whether nothing starts the cluster again by itself."""
    was_well: bool = False
    """Whether there was nothing wrong in one of the observations."""
    _since: float = -1.0

    def note(self, observed: ObservedState, heal: str, now: float) -> None:
        """Note an observation; `now` is a clock that does not step."""
        text, remedy = trouble_of(observed, heal)
        if not text:
            self._since, self.was_well = -1.0, True
        elif self._since < 0:
            self._since = now
        is_lasting = bool(text) and now - self._since >= _PATIENCE
        self.text = f"{text} {remedy}" if is_lasting else ""
        self.is_final = is_lasting and _is_final(observed)


def _is_final(observed: ObservedState) -> bool:
    """Without supervisord no process of a local cluster is left."""
    has_no_engine = observed.engine is None and observed.controller_silent_since is not None
    return is_gone(observed) or (has_no_engine and not observed.problems)
