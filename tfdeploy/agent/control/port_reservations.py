"""Ports that the controller reserves on its machine for workers that do not exist yet."""

import random
import socket
from typing import AbstractSet, Dict, List

from ..launch.workdir import PORTS, reserve_port

MAX_HELD = 256
"""Each reservation is an open file, of 1,024 that a process may usually have. Further ports are chosen, but another program may take
them: the worker's launcher reports another one then."""


class PortReservations:
    """The ports are reserved while the controller runs. A launcher that is to use one of them finds it free: it is released before."""

    def __init__(self) -> None:
        self._held: Dict[int, socket.socket] = {}

    def choose(self) -> int:
        """Reserve a free port."""
        start = random.randrange(len(PORTS))
        numbers: List[int] = [*PORTS[start:], *PORTS[:start]]
        return next((number for number in numbers if self._reserve(number)), numbers[0])

    def hold(self, numbers: AbstractSet[int]) -> None:
        """Reserve these ports, as far as they are free, and release all others."""
        for number in [number for number in self._held if number not in numbers]:
            self._held.pop(number).close()
        for number in numbers:
            self._reserve(number)

    def _reserve(self, number: int) -> bool:
        """Reserve a port that this object has not reserved; whether it is reserved now and was not before."""
        if number in self._held or len(self._held) >= MAX_HELD:
            return False
        reservation = reserve_port(number)
        if reservation is not None:
            self._held[number] = reservation
        return reservation is not None
