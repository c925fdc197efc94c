"""What training programs print becomes curves, and other lines do not."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdeploy.agent.record.reading import reading
from tfdeploy.report.log_curves import EPOCH, STEP, TIME, Curve, curves

TOKENS = [
    "step ",
    "global_step",
    "epoch",
    "loss",
    "accuracy",
    "val_",
    "=",
    ": ",
    " ",
    "1",
    "0.5",
    "1e999",
    "nan",
    *"/%,-",
]
PRINTED = st.lists(st.sampled_from(TOKENS) | st.text(max_size=5), max_size=14).map("".join)


@pytest.mark.parametrize(
    ("line", "step", "values"),
    [
        ("step 100 loss 0.5213", 100, {"loss": 0.5213}),
        ("Step #100: loss = .5", 100, {"loss": 0.5}),
        ("step 1,200 loss 0.31", 1200, {"loss": 0.31}),
        ("step 100/2000 loss 5", 100, {"loss": 5}),
        ("INFO:tensorflow:loss = 0.52, step = 100 (1.234 sec)", 100, {"loss": 0.52}),
        (
            "INFO:tensorflow:Saving dict for global step 2000: accuracy = 0.96, global_step = 2000, loss = 0.1",
            2000,
            {"test accuracy": 0.96, "test loss": 0.1},
        ),
        ("Worker 0: training step 7 done (global step: 12), loss 0.5", 12, {"loss": 0.5}),
        ("After 200 training step(s), validation cross entropy = 1235.56", 200, {"validation cross entropy": 1235.56}),
        ("Minibatch loss at step 100: 2.5", 100, {"loss": 2.5}),
        ("Minibatch accuracy: 92.5%", None, {"accuracy": 0.925}),
        ('{"step": 100, "loss": 0.5, "val_acc": 0.9}', 100, {"loss": 0.5, "validation accuracy": 0.9}),
        ("step 5 d_loss: 0.7 g_loss: 1.2", 5, {"d loss": 0.7, "g loss": 1.2}),
        ("\x1b[32mstep\x1b[0m 3 loss \x1b[1m0.5\x1b[0m", 3, {"loss": 0.5}),
        ("final loss 0.0812", None, {"final loss": 0.0812}),
    ],
)
def test_usual_forms_are_read(line: str, step: float | None, values: dict[str, float]) -> None:
    read = reading(line)
    assert (read.step, read.values) == (step, values)


@pytest.mark.parametrize(
    "line",
    [
        *(
            "packet loss 0.5%",
            "3% packet loss: 0.5",
            "loss of 3 workers",
            "loss 4 workers left",
            "precision loss: 5",
            "",
        ),
        *("loss scale: 1024", "loss_scale = 1024", "lossless: 5", "loss: 2026-11-21", "loss: 12:30:11", "loss: 1.2.3"),
        *("loss: 5ms", "loss: 0x5f", "accuracy: 3/10", "accuracy: 4711", "acc 127.0.0.1", "glossy: 0.5"),
        "http://host/loss=0.5",
    ],
)
def test_other_lines_tell_nothing(line: str) -> None:
    assert reading(line).values == {}


@pytest.mark.parametrize("line", ["global_step/sec: 123.4", "12 ms/step 5", "0.2 sec per step 7", "footstep 3"])
def test_what_is_no_step_is_none(line: str) -> None:
    assert reading(line).step is None


def test_keras_lines_go_by_epoch() -> None:
    found = curves(
        {
            "worker-0": [
                (0.0, "Epoch 1/2"),
                (
                    1.0,
                    "\x1b[1m 50/100\x1b[0m \x1b[32m━━━━\x1b[0m \x1b[1m0s\x1b[0m 5ms/step - accuracy: 0.5 - loss: 1.5",
                ),
                (
                    2.0,
                    "100/100 [==============================] - 1s 5ms/step - loss: 0.9 - accuracy: 0.7 - val_loss: 1.0",
                ),
                (3.0, "Epoch 2/2"),
                (4.0, "100/100 - 1s - 5ms/step - accuracy: 0.9 - loss: 0.3 - val_loss: 0.4"),
            ]
        }
    )
    assert found["loss"] == Curve(EPOCH, {"worker-0": [(0.5, 1.5), (1.0, 0.9), (2.0, 0.3)]})
    assert found["accuracy"].series["worker-0"] == [(0.5, 0.5), (1.0, 0.7), (2.0, 0.9)]
    assert found["validation loss"] == Curve(EPOCH, {"worker-0": [(1.0, 1.0), (2.0, 0.4)]})
    assert list(found) == ["loss", "validation loss", "accuracy"]


def test_a_line_of_an_epoch_goes_by_it() -> None:
    found = curves({"worker-0": [(0.0, "Epoch 3 - loss: 0.5"), (1.0, "Epoch [4/5] loss: 0.4")]})
    assert found["loss"] == Curve(EPOCH, {"worker-0": [(3.0, 0.5), (4.0, 0.4)]})


def test_without_a_step_curves_go_by_time_since_the_first_line() -> None:
    found = curves({"worker-0": [(100.0, "hello"), (101.0, "loss: 0.5")], "worker-1": [(103.5, "loss: 0.25")]})
    assert found == {"loss": Curve(TIME, {"worker-0": [(1.0, 0.5)], "worker-1": [(3.5, 0.25)]})}


def test_a_quantity_goes_by_what_most_of_its_lines_tell() -> None:
    found = curves({"worker-0": [(0.0, "step 1 loss 0.5"), (1.0, "step 2 loss 0.4"), (2.0, "loss 0.1")]})
    assert found == {"loss": Curve(STEP, {"worker-0": [(1.0, 0.5), (2.0, 0.4)]})}


def test_values_that_are_no_numbers_stay_in_their_places() -> None:
    points = curves({"worker-0": [(0.0, "step 1 loss nan"), (1.0, "step 2 loss: -inf"), (2.0, "step 3 loss inf")]})
    values = [value for _, value in points["loss"].series["worker-0"]]
    assert math.isnan(values[0])
    assert values[1:] == [-math.inf, math.inf]


@given(st.lists(st.tuples(st.floats(0, 1e10), PRINTED), max_size=8))
def test_no_line_is_too_much(lines: list[tuple[float, str]]) -> None:
    for curve in curves({"worker-0": lines}).values():
        assert curve.by in (STEP, EPOCH, TIME)
        assert all(math.isfinite(x) for points in curve.series.values() for x, _ in points)


def test_a_long_line_is_read_in_no_time() -> None:
    assert reading("loss " * 100_000 + "a_" * 100_000).values == {}
    assert reading("epoch " + " " * 100_000).epoch is None
    assert reading("1" * 100_000 + " step " + "9" * 4000).step is None


def test_what_is_beyond_the_limit_of_a_line_is_not_stored() -> None:
    assert reading("step 7 loss 0.5 " + "." * 5000 + " accuracy 0.5").values == {"loss": 0.5}
    assert reading("." * 5000 + "\rstep 7").step == 7
