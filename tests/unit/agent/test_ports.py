"""Ports that the controller reserves for workers that do not exist yet."""

from collections.abc import Iterator

import psutil
import pytest

from tfdeploy.agent.system.ports import MAX_HELD, PORTS, Port, PortReservations, PortTaken


@pytest.fixture
def ports() -> Iterator[PortReservations]:
    made = PortReservations()
    yield made
    made.hold(set())


def test_no_launcher_takes_a_reserved_port(ports: PortReservations) -> None:
    number = ports.choose()
    assert number in PORTS
    with pytest.raises(PortTaken):
        Port("127.0.0.1").choose(number, fixed=True)
    assert ports.choose() != number


def test_a_released_port_is_free_for_the_launcher_that_is_to_use_it(ports: PortReservations) -> None:
    number, other = ports.choose(), ports.choose()
    ports.hold({other})
    assert Port("127.0.0.1").choose(number, fixed=True) == number
    with pytest.raises(PortTaken):
        Port("127.0.0.1").choose(other, fixed=True)


def test_a_port_that_is_in_use_is_reserved_as_soon_as_it_is_free(ports: PortReservations) -> None:
    number = ports.choose()
    ports.hold(set())
    launcher = Port("127.0.0.1")
    launcher.choose(number, fixed=True)
    ports.hold({number})
    del launcher
    ports.hold({number})
    with pytest.raises(PortTaken):
        Port("127.0.0.1").choose(number, fixed=True)


def test_many_ports_leave_files_for_the_record(ports: PortReservations) -> None:
    before = psutil.Process().num_fds()
    chosen = [ports.choose() for _ in range(MAX_HELD + 20)]
    assert set(chosen) <= set(PORTS)
    ports.hold(set(chosen))
    assert psutil.Process().num_fds() <= before + MAX_HELD
