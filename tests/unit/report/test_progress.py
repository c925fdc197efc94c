"""How far a training is, from all the ways in which programs say so."""

import math
from typing import Any

import pytest

from tests.unit.printing import progressed
from tfdeploy.agent.record.progress import Progress
from tfdeploy.report.progress import goal, progress_text, sparkline, with_goals


@pytest.mark.parametrize(
    ("command", "last"),
    [
        ("python train.py --steps=2000", 2000),
        ("python -m train --train_steps 1000 --lr 0.1", 1000),
        ("python train.py --max-steps=5_000", 5000),
        ("python train.py --global_max_steps 9", 9),
        ("python train.py --steps-per-epoch=10", None),
        ("python train.py --save_every_steps=10", None),
        ("python train.py", None),
    ],
)
def test_the_command_tells_the_last_step(command: str, last: float | None) -> None:
    assert goal(command) == last


def lines(*texts: str, every: float = 1.0) -> list[tuple[float, str]]:
    return [(100.0 + place * every, text) for place, text in enumerate(texts)]


def progress(command: str, lines: list[tuple[float, str]]) -> Progress:
    """How far a task is that runs this command and has printed these lines."""
    return with_goals({"worker-0": progressed(*lines)}, {"worker-0": command})["worker-0"]


@pytest.mark.parametrize(
    ("command", "printed", "expected"),
    [
        (
            "--steps=200",
            lines("begins", "step 10 loss 2.0", "step 20 loss 1.0", "step 30 loss 0.5"),
            {"step": 30, "goal": 200, "loss": 0.5, "rate": 10.0, "part": 0.15, "left": 17.0, "losses": [2.0, 1.0, 0.5]},
        ),
        # The log tells the last step where the command does not.
        ("train", lines("step 1/50 loss: 3", "step 25 of 50 loss: 2"), {"step": 25, "goal": 50, "part": 0.5}),
        # A training that begins anew has a speed of its own.
        ("--steps=100", lines("step 90", "step 91", "step 50", "step 52", every=2), {"step": 52, "rate": 1.0}),
        ("--steps=10", lines("step 9", "step 12"), {"part": 1.0, "left": 0.0}),
    ],
)
def test_steps_loss_and_speed_come_from_lines(
    command: str, printed: list[tuple[float, str]], expected: dict[str, Any]
) -> None:
    now = progress(command, printed)
    assert {name: getattr(now, name) for name in expected} == expected


def test_only_the_last_half_minute_makes_the_speed() -> None:
    slow = [(float(second), f"step {second}") for second in range(0, 100, 10)]
    quick = [(100.0 + second, f"step {90 + 50 * second}") for second in range(1, 41)]
    now = progress("", [*slow, *quick])
    assert now.rate == 50


def test_lines_that_arrive_at_once_are_no_speed() -> None:
    burst = [(50.0, f"step {step}") for step in range(0, 500, 10)]
    steady = [(50.0 + second, f"step {490 + 10 * second}") for second in range(1, 13)]
    now = progress("", [*burst, *steady])
    assert (now.step, now.rate) == (610, 10)


@pytest.mark.parametrize("text", ["", "hello", "\x1b[31m", "loss of packets 3", "step", "step x/y"])
def test_where_nothing_is_told_nothing_is_known(text: str) -> None:
    now = progress("python train.py", lines(text))
    assert (now.step, now.goal, now.loss, now.rate, now.part, now.left) == (None,) * 6


def test_a_loss_that_is_no_number_is_told_but_not_drawn() -> None:
    now = progress("", lines("step 1 loss 1.0", "step 2 loss nan"))
    assert now.loss is not None
    assert math.isnan(now.loss)
    assert now.losses == [1.0]


def test_a_long_training_is_not_remembered_whole() -> None:
    kept = progress("", [(float(step), f"step {step} loss {1 / (step + 1)}") for step in range(20_000)]).losses
    assert len(kept) <= 64
    assert kept[0] > 0.1 > kept[-1]


@pytest.mark.parametrize(
    ("values", "drawn"),
    [
        ([], ""),
        ([math.nan], ""),
        ([2.0, 2.0], "▁▁"),
        ([0, 1, 2, 3, 4, 5, 6, 7], "▁▂▃▄▅▆▇█"),
        ([float(value) for value in range(64, 0, -1)], "██▇▇▆▆▅▅▄▄▃▃▂▂▁▁"),
    ],
)
def test_values_become_blocks(values: list[float], drawn: str) -> None:
    assert len(sparkline(values)) == len(drawn)
    assert sparkline(values)[:1] == drawn[:1]
    assert sparkline(values)[-1:] == drawn[-1:]


@pytest.mark.parametrize("digits", [16, 5000])
def test_a_number_with_too_many_digits_is_no_goal(digits: int) -> None:
    number = "9" * digits
    assert goal(f"python train.py --steps={number}") is None
    found = progress(
        "--steps=200", lines("step 10 loss 2", f"step 20/{number} loss 1", f"step {number}/{number} loss 1")
    )
    assert (found.step, found.goal) == (20, 200)
    unknown = progress("", lines("step 10", f"step 20/{number}"))
    assert progress_text(unknown) == "step 20  10.0 steps/s"


TRAINING = ["step 100 loss 0.9", "step 200 loss 0.5", "step 300 loss 0.1 val_loss 0.7"]


@pytest.mark.parametrize(
    "evaluation",
    [
        ["final loss 0.7", "MNIST accuracy: 0.9570"],
        ["loss 0.7"],
        ["step 300 validation loss 0.7"],
        ["Evaluation at step 300: loss 0.7"],
        ["[eval] step 300 loss 0.7"],
        ["INFO:tensorflow:Saving dict for global step 300: accuracy = 0.9, global_step = 300, loss = 0.7"],
        ["cost: 0.7", "total cost 0.7"],
    ],
)
@pytest.mark.parametrize("is_first", [False, True])
def test_progress_and_curve_are_of_the_loss_of_the_training(evaluation: list[str], is_first: bool) -> None:
    printed = [*evaluation, *TRAINING] if is_first else [*TRAINING, *evaluation]
    now = progress("--steps=300", lines(*printed))
    assert (now.loss, now.losses) == (0.1, [0.9, 0.5, 0.1])


def test_an_evaluation_after_the_epochs_of_keras_is_another_series() -> None:
    fit = ["Epoch 1/2", "10/10 - 1s - loss: 0.9", "Epoch 2/2", " 5/10 [==>..] - loss: 0.5", "10/10 - 1s - loss: 0.4"]
    evaluation = [" 3/5 [==>..] - loss: 0.7", "5/5 [=====] - loss: 0.8"]
    assert progress("", lines(*fit, *evaluation)).losses == [0.9, 0.5, 0.4]
    assert progress("", lines(*fit, *evaluation, "Epoch 1/1", "10/10 - 1s - loss: 0.3")).losses[-1] == 0.3


def test_where_only_an_evaluation_prints_a_loss_it_is_shown_and_a_training_replaces_it() -> None:
    assert progress("", lines("test loss 0.7", "test loss 0.6")).losses == [0.7, 0.6]
    assert progress("", lines("test loss 0.7", "d_loss 0.5", "g_loss 3.0", "d_loss 0.4")).losses == [0.5, 0.4]
