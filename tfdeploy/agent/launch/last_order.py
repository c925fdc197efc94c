"""What a launcher does while its controller is away: it follows the last order, and the restart policy that came with it."""

from dataclasses import replace
from typing import Optional

from ..model.restart_delay import restart_delay
from ..model.sync import NOTHING, RUN, Order
from ..system.polling import boot_seconds
from .program import Program

AWAY_SECONDS = 10.0
"""A controller is away if the last call to it got no response, and none did for so long: one that was killed is there again earlier."""

MAX_RESTARTS = 100
"""A launcher that has begun so many attempts itself waits for its controller, which has to be told each of them."""


class LastOrder:
    """The last order to run the program, for as long as it holds."""

    def __init__(self) -> None:
        self._order: Optional[Order] = None
        self._heard_at = boot_seconds()
        self._is_silent = True

    def note_response(self, order: Optional[Order] = None) -> None:
        """The controller has responded: with this order, or with an error."""
        self._heard_at, self._is_silent = boot_seconds(), False
        if order is None or order.action == NOTHING:
            return
        known = self._order
        if order.restart is None:
            self._order = None
        elif order.action == RUN and order.address_book:
            self._order = order
        elif known is not None:  # further orders for the attempt, which has its addresses
            self._order = replace(known, restart=order.restart, failures=order.failures)

    def note_silence(self) -> None:
        """A call has got no response."""
        self._is_silent = True

    def seconds_until_restart(self, program: Program) -> Optional[float]:
        """Seconds until the program may be started again without the controller; None where it may not."""
        order = self._order
        if order is None or order.restart is None or not self._is_silent:
            return None
        away = self._heard_at + AWAY_SECONDS - boot_seconds()
        if program.exit is None or program.attempt != order.attempt:
            return None if program.is_running else max(0.0, away)
        delay = restart_delay(order.restart, order.failures, program.exit)
        if program.exit.cause or delay is None or len(program.restarted) >= MAX_RESTARTS:
            return None
        return max(0.0, away, delay - program.seconds_since_end)

    def follow(self, program: Program) -> Optional[Order]:
        """The order to start the program now; None where it may not be started."""
        order = self._order
        if order is None or self.seconds_until_restart(program) != 0.0:
            return None
        if program.exit is not None and program.attempt == order.attempt:
            program.keep_end()
            self._order = order = replace(order, attempt=order.attempt + 1, failures=order.failures + 1)
        return order
