"""What EC2 reports of machines that boot, asked on behalf of all of them, and no more often than EC2 allows.

EC2 refuses calls above a rate: https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-throttling.html. A refused call is repeated
later; what was reported before counts until then.
"""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from ..aws import api
from ..aws.errors import AwsFailure

INTERVAL = 5.0
"""Seconds between two calls that ask the same."""

LONGEST_INTERVAL = 60.0
"""An interval is doubled, up to this, each time that EC2 refuses the call."""

CONSOLES_PER_SECOND = 10.0
"""How many consoles are read in a second, of all machines. EC2 refills 20 calls of one kind a second, for the whole account."""

T = TypeVar("T")


class _Rate:
    """Allows so many calls in a second, of all threads."""

    def __init__(self, per_second: float) -> None:
        self._per_second, self._tokens = per_second, per_second
        self._at = time.monotonic()
        self._lock = threading.Lock()

    def allows(self) -> bool:
        """Whether a call may be made now, which then counts."""
        with self._lock:
            now = time.monotonic()
            self._tokens = min(self._per_second, self._tokens + (now - self._at) * self._per_second)
            self._at = now
            is_allowed = self._tokens >= 1.0
            self._tokens -= is_allowed
            return is_allowed


class _PacedCall(Generic[T]):
    """One call of the API, made by whichever thread asks first after an interval; meanwhile its last response."""

    def __init__(self, call: Callable[[], T], response: T, usual: float = INTERVAL, rate: _Rate | None = None) -> None:
        """`usual` is the interval while EC2 does not refuse the call; `rate` is that of several calls."""
        self._call, self._response = call, response
        self._usual, self._rate = usual, rate
        self._interval, self._next = usual, 0.0
        self._lock = threading.Lock()

    def response(self) -> T:
        """The last response, which is renewed if the interval is over and no other thread does that already."""
        if time.monotonic() >= self._next and self._lock.acquire(blocking=False):
            if self._rate is not None and not self._rate.allows():
                self._lock.release()
                return self._response
            try:
                self._response, self._interval = self._call(), self._usual
            except AwsFailure as error:
                if not error.is_throttled:
                    raise
                self._interval = min(2 * self._interval, LONGEST_INTERVAL)
            finally:
                self._next = time.monotonic() + self._interval
                self._lock.release()
        return self._response


class InstancePoll:
    """The states and the consoles of some instances of a region."""

    def __init__(self, region: str, instance_ids: Sequence[str]) -> None:
        nothing: dict[str, str] | None = None
        self._states = _PacedCall[dict[str, str] | None](lambda: api.instance_states(region, instance_ids), nothing)
        # Each machine gets its turn although all of them share the rate.
        rate, usual = _Rate(CONSOLES_PER_SECOND), max(INTERVAL, len(instance_ids) / CONSOLES_PER_SECOND)
        self._consoles = {
            instance_id: _PacedCall(_console(region, instance_id), "", usual, rate) for instance_id in instance_ids
        }

    def state(self, instance_id: str) -> str | None:
        """The state of an instance; empty where EC2 does not know it, None where EC2 has not responded yet."""
        states = self._states.response()
        return None if states is None else states.get(instance_id, "")

    def console(self, instance_id: str) -> str:
        """The console output of an instance; empty where EC2 has not responded yet."""
        return self._consoles[instance_id].response()


def _console(region: str, instance_id: str) -> Callable[[], str]:
    return lambda: api.console(region, instance_id)
