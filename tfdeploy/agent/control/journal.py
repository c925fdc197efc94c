"""What of a run is not in the record yet."""

from dataclasses import replace
from typing import List

from ..model import events
from ..model.events import Event
from ..model.run_state import RunState
from ..record.record import Record

_MAX_UNWRITTEN = 10_000
"""How many events wait while the record cannot be written, as on a full disk."""

_REFUSED_SECONDS = 60.0
"""S3 may refuse an upload now and then."""


class Journal:
    """What is not written yet: the events of a run, in their order. It survives a full disk, with a count of what was dropped."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._unwritten: List[Event] = []
        self._run_id = ""
        self._dropped = 0
        self._failed_at = 0.0
        self._problem = ""
        self._refused_at = 0.0

    @property
    def problem(self) -> str:
        """Why the record cannot be written; empty if the last try succeeded."""
        return self._problem if self._failed_at else ""

    def add(self, run_id: str, happened: List[Event], now: float) -> None:
        """Keep these events until they are written. Those without a time of their own happened now."""
        self._run_id = run_id
        self._unwritten += [replace(event, at=event.at or now) for event in happened]
        excess = max(0, len(self._unwritten) - _MAX_UNWRITTEN)
        self._dropped += excess
        del self._unwritten[:excess]

    def note_upload(self, run: RunState, now: float) -> List[Event]:
        """Note whether the machine can store the record where it outlives the machine: a refusal once it lasts."""
        problem = self._record.upload_problem()
        self._refused_at = (self._refused_at or now) if problem else 0.0
        problem = problem if now - self._refused_at >= _REFUSED_SECONDS else ""
        if bool(problem) == bool(run.upload_problem):
            return []
        run.upload_problem = problem
        return [Event(events.RECORD_NOT_STORED if problem else events.RECORD_STORED, reason=problem)]

    def failing_seconds(self, now: float) -> float:
        """For how long the record could not be written; 0 if the last try succeeded."""
        return max(0.001, now - self._failed_at) if self._failed_at else 0.0

    def write(self, run: RunState, now: float) -> bool:
        """Write events and state; whether that succeeded."""
        try:
            self._record.save(run)
            if self._failed_at:
                self._note_recovery(now)
            if self._unwritten:
                self._record.add_events(self._run_id, self._unwritten)
                self._unwritten = []
        except OSError as error:
            self._failed_at = self._failed_at or now
            self._problem = error.strerror or str(error)
            return False
        return True

    def _note_recovery(self, now: float) -> None:
        delay, self._failed_at = max(0.0, now - self._failed_at), 0.0
        event = Event(events.RECORD_DELAYED, now, reason=self._problem, delay=delay, count=self._dropped)
        self._unwritten.append(event)
        self._dropped = 0
