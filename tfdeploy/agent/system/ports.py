"""The ports of tasks: each is reserved by one process of a machine, so that two tasks never choose the same one.

A reservation is a Unix socket in Linux' abstract namespace: all users see it, it is not a file, and it ends with its process.
"""

import random
import socket
from typing import AbstractSet, Dict, List, Optional

PORTS = range(20000, 32000)
"""The ports to choose from, below those that Linux uses for outgoing connections (32768 and up)."""

_CONNECT_SECONDS = 1.0

MAX_HELD = 256
"""How many ports `PortReservations` reserves: each is an open file, of 1,024 that a process may usually have. Further ports are chosen,
but another program may take them: the worker's launcher reports another one then."""


class PortTaken(Exception):
    """The port that the user has chosen is not free."""


class Port:
    """The port of one task, reserved while its launcher runs."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._reservation: Optional[socket.socket] = None
        self.number = 0

    def choose(self, wanted: int, fixed: bool) -> int:
        """Reserve `wanted` if it is free, else (unless `fixed`) any free port.

        Raises:
            PortTaken: the fixed port is not free.
        """
        if self.number and self.number == wanted:
            return wanted
        for number in [*([wanted] if wanted else []), *([] if fixed else _any_order())]:
            reservation = reserve_port(number)
            if reservation is not None:
                self._reservation, self.number = reservation, number
                return number
        raise PortTaken(f"port {wanted} of {self._host} is in use by another program")


def _any_order() -> List[int]:
    """All ports to choose from, from a random one on."""
    start = random.randrange(len(PORTS))
    return [*PORTS[start:], *PORTS[:start]]


def reserve_port(number: int) -> Optional[socket.socket]:
    """The reservation of a port, which holds until it is closed; None where the port is in use or reserved."""
    if not is_bindable(number):
        return None
    reservation = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        reservation.bind(f"\0tfdeploy-port-{number}")
    except OSError:
        reservation.close()
        return None
    return reservation


def is_bindable(number: int) -> bool:
    """Whether a port is free on every address: TensorFlow's servers listen on all of them."""
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(("", number))
        except OSError:
            return False
        return True


def is_listening(host: str, number: int, seconds: float = _CONNECT_SECONDS) -> bool:
    """Whether a program accepts connections at this address, within so many seconds."""
    try:
        socket.create_connection((host, number), seconds).close()
    except OSError:
        return False
    return True


class PortReservations:
    """The ports of workers that do not exist yet, reserved on the controller's machine while the controller runs.

    A launcher that is to use one of them finds it free: it is released before.
    """

    def __init__(self) -> None:
        self._held: Dict[int, socket.socket] = {}

    def choose(self) -> int:
        """Reserve a free port."""
        numbers = _any_order()
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
