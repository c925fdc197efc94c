"""Time that passes only while all threads wait: what takes minutes is simulated at once, and the result does not depend on the load."""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Generic, TypeVar

T = TypeVar("T")

_FOREVER = float("inf")
_HANG_SECONDS = 60.0


@dataclass
class _Wait:
    is_over: Callable[[], bool]
    until: float
    woken: threading.Event = field(default_factory=threading.Event)


class SimulatedTime:
    """The clock, which knows how many threads run: the one that has made it, and those of `executor`."""

    def __init__(self) -> None:
        self.now = 1000.0
        self._running = 1
        self._waits: list[_Wait] = []
        self._lock = threading.RLock()

    def monotonic(self) -> float:
        """`time.monotonic`."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """`time.sleep`."""
        until = self.now + max(seconds, 0.001)
        self._wait(_Wait(lambda: self.now >= until, until))

    def wait_for(self, is_over: Callable[[], bool]) -> None:
        """Wait for something that another thread does."""
        self._wait(_Wait(is_over, _FOREVER))

    def _wait(self, wait: _Wait) -> None:
        with self._lock:
            self._waits.append(wait)
            self._running -= 1
            self._continue()
        assert wait.woken.wait(_HANG_SECONDS), "all threads wait for each other"

    def begin(self) -> None:
        """A thread begins."""
        with self._lock:
            self._running += 1

    def end(self) -> None:
        """A thread ends."""
        with self._lock:
            self._running -= 1
            self._continue()

    def _continue(self) -> None:
        """When no thread runs, wake those whose wait is over, else let time pass."""
        while not self._running and self._waits:
            ready = [wait for wait in self._waits if wait.is_over()]
            if not ready:
                earliest = min(wait.until for wait in self._waits)
                if earliest == _FOREVER:
                    return
                self.now = earliest
                continue
            self._waits = [wait for wait in self._waits if wait not in ready]
            self._running += len(ready)
            for wait in ready:
                wait.woken.set()

    def executor(self, max_workers: int) -> "SimulatedExecutor":
        """What `ThreadPoolExecutor` is."""
        return SimulatedExecutor(self, max_workers)


class SimulatedFuture(Generic[T]):
    """What `Future` is."""

    def __init__(self, clock: SimulatedTime, call: Callable[[], T]) -> None:
        self._clock, self._call = clock, call
        self._value: T | None = None
        self._error: BaseException | None = None
        self.is_done = False

    def run(self) -> None:
        """Call."""
        try:
            self._value = self._call()
        except BaseException as error:
            self._error = error
        self.is_done = True

    def result(self) -> Any:
        """What the call has returned."""
        self._clock.wait_for(lambda: self.is_done)
        if self._error is not None:
            raise self._error
        return self._value


class SimulatedExecutor:
    """Threads whose waits let the simulated time pass."""

    def __init__(self, clock: SimulatedTime, max_workers: int) -> None:
        self._clock, self._most = clock, max_workers
        self._live = 0
        self._lock = threading.Lock()
        self._queue: deque[SimulatedFuture[Any]] = deque()

    def __enter__(self) -> "SimulatedExecutor":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._clock.wait_for(lambda: not self._live)

    def submit(self, call: Callable[..., T], *arguments: Any) -> SimulatedFuture[T]:
        """As that of an executor."""
        future = SimulatedFuture(self._clock, lambda: call(*arguments))
        with self._lock:
            self._queue.append(future)
            if self._live < self._most:
                self._live += 1
                self._clock.begin()
                threading.Thread(target=self._work, daemon=True).start()
        return future

    def map(self, call: Callable[[Any], T], items: Iterable[Any]) -> Iterator[T]:
        """As that of an executor."""
        futures = [self.submit(call, item) for item in items]
        return (future.result() for future in futures)

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._queue:
                    self._live -= 1
                    break
                future = self._queue.popleft()
            future.run()
        self._clock.end()
