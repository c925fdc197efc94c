"""Tables in the room that there is."""

from typing import Any

import pytest

from tfdeploy.cli.tables import ago, tables
from tfdeploy.report import table

NOW = 1_795_262_400.0
"""2026-11-21 12:00:00Z."""

MACHINE = {
    "machine": "lab",
    "role": "Master",
    "provider": "local",
    "region": "",
    "size": "2 cpus, 23.5 GiB",
    "public_ip": "",
    "status": "connected",
}


def task(**more: Any) -> dict[str, Any]:
    """A row of the output `tasks`."""
    row = {
        "container": "18047",
        "machine": "lab",
        "command": "python train.py --steps=2000 --batch_size=100 --learning_rate=0.01",
        "hostname": "worker-0",
        "status": "stopped (job finished)",
        "created": "2026-11-21 11:58:00Z",
        "public_ip": "",
    }
    return {**row, **more}


@pytest.mark.parametrize("width", [80, 100, 140])
@pytest.mark.parametrize("more", [{}, {"container": "4cc6c1021f35", "machine": "mnist-worker-m0"}])
def test_tables_fit_the_terminal(width: int, more: dict[str, str]) -> None:
    found = tables([MACHINE], [task(**more)], width)
    assert max(map(len, found.splitlines())) <= width
    assert "worker-0" in found
    assert "COMMAND" in found


def test_with_room_nothing_is_lost() -> None:
    found = tables([MACHINE], [task()], 500)
    assert "--learning_rate=0.01" in found
    assert "CONTAINER   MACHINE   COMMAND" in found
    assert found.splitlines()[3].endswith("PUBLIC IP")


def test_a_public_address_is_never_left_out() -> None:
    assert "54.215.248.77" in tables([{**MACHINE, "public_ip": "54.215.248.77"}], [task(public_ip="54.215.248.77")], 80)


def test_money_has_a_column_where_it_is_spent() -> None:
    assert "$0.35" in tables([{**MACHINE, "spent": 0.35}], [task()], 500)


@pytest.mark.parametrize(
    ("moment", "words"),
    [
        ("2026-11-21 12:00:00Z", "0 seconds ago"),
        ("2026-11-21 11:59:59Z", "1 second ago"),
        ("2026-11-21 11:58:00Z", "2 minutes ago"),
        ("2026-11-21 10:30:00Z", "1 hour ago"),
        ("2026-11-19 12:00:00Z", "2 days ago"),
        ("2026-11-21 12:00:09Z", "0 seconds ago"),
        ("", ""),
    ],
)
def test_moments_are_told_as_people_do(moment: str, words: str) -> None:
    assert ago(moment, NOW) == words


def test_a_table_without_rows_has_its_head() -> None:
    assert table([], ("a", "b")) == "A   B"
