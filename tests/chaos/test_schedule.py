"""The same seed draws the same faults."""

from tests.chaos.rounds import BACKENDS
from tests.chaos.schedule import COMMAND_SECONDS, COMMANDS, MOST_FAULTS, Kind, draw

KINDS = {
    "alone": Kind(tasks=True, during=False),
    "never": Kind(weight=0),
    "only_during": Kind(alone=False),
    "often": Kind(weight=8),
}


def test_a_round_depends_on_seed_and_number_alone() -> None:
    assert draw(7, 3, KINDS) == draw(7, 3, dict(reversed(KINDS.items())))
    assert len({draw(seed, number, KINDS).steps for seed in range(5) for number in range(5)}) == 25


def test_a_round_keeps_to_the_table_of_faults() -> None:
    rounds = [draw(1, number, KINDS) for number in range(300)]
    steps = [step for one in rounds for step in one.steps]
    assert {len(one.steps) for one in rounds} == set(range(1, MOST_FAULTS + 1))
    assert {step.fault for step in steps} == {"alone", "only_during", "often"}
    assert all(bool(step.task) == (step.fault == "alone") for step in steps)
    assert {step.during for step in steps if step.fault == "alone"} == {""}
    assert {step.during for step in steps if step.fault == "only_during"} == set(COMMANDS)
    assert {bool(step.during) for step in steps if step.fault == "often"} == {True, False}
    assert all(list(one.steps) == sorted(one.steps, key=lambda step: step.at) for one in rounds)
    assert all(
        0 <= step.at <= 1 and 0 <= step.delay <= COMMAND_SECONDS and 0.2 <= step.seconds <= 3.2 for step in steps
    )


def test_every_fault_of_every_backend_is_drawn() -> None:
    for backend in BACKENDS.values():
        drawn = {step.fault for number in range(200) for step in draw(1, number, backend.kinds).steps}
        assert drawn == set(backend.kinds)
