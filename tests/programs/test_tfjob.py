"""A TFJob's replicas: Keras under each strategy, wired by `TF_CONFIG`; what is lost; and the page that serves the model."""

import math
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli import browser as chromium
from tests.programs.program import Program
from tests.waiting import until

CLUSTER = "tfjob"


@pytest.fixture
def tfjob(programs: Callable[[str], Program]) -> Program:
    return programs("tfjob_keras")


def steps(program: Program) -> list[int]:
    """The steps that the chief told of, in all its attempts."""
    return [int(found) for found in re.findall(r"^step (\d+) loss", program.log("chief-0", CLUSTER), re.MULTILINE)]


def test_chief_and_workers_train_one_model(tfjob: Program) -> None:
    tfjob.set("steps", "100")
    tfjob.up()
    outputs = tfjob.outputs()
    assert outputs["accuracy"] > 0.7
    assert tfjob.statuses()["chief-0"] == "succeeded"
    for hostname, role in (("chief-0", "chief"), ("worker-0", "worker")):
        assert f"{role} 0 of {{'chief': 1, 'worker': 1}}, strategy multi_worker" in tfjob.log(hostname, CLUSTER)
    losses = {
        name: re.findall(r"^step \d+ loss (\S+)", tfjob.log(name, CLUSTER), re.MULTILINE)
        for name in ("chief-0", "worker-0")
    }
    assert losses["chief-0"] == losses["worker-0"]  # the mean over both of them
    assert Path(outputs["export"], "saved_model.pb").is_file()
    tfjob.destroy()


@pytest.mark.full
def test_a_lost_worker_is_tolerated_and_a_lost_ps_sends_the_chief_back_to_its_checkpoint(tfjob: Program) -> None:
    tfjob.set("strategy", "parameter_server")
    tfjob.set("steps", "20_000")
    tfjob.up(env={"TFDEPLOY_WAIT": "0"})
    until(lambda: len(steps(tfjob)) >= 2, "the chief trains", 240)

    tfjob.child("worker-1", CLUSTER).send_signal(signal.SIGKILL)
    before = steps(tfjob)[-1]
    until(lambda: steps(tfjob)[-1] >= before + 100, "the others go on", 240)
    assert "a peer is lost" not in tfjob.log("chief-0", CLUSTER)

    tfjob.child("ps-0", CLUSTER).send_signal(signal.SIGKILL)
    until(lambda: "resumed at step" in tfjob.log("chief-0", CLUSTER), "the chief starts again", 240)
    log = tfjob.log("chief-0", CLUSTER)
    lost, resumed = log.index("a peer is lost"), log.index("resumed at step")
    assert lost < resumed
    saved = int(re.findall(r"resumed at step (\d+)", log)[0])
    assert saved >= before
    until(lambda: steps(tfjob)[-1] > saved, "it goes on from there", 240)
    until(lambda: "evaluated: accuracy" in tfjob.log("evaluator-0", CLUSTER), "the evaluator looks on", 120)
    assert "'evaluator'" not in tfjob.log("evaluator-0", CLUSTER)
    tfjob.destroy()


@pytest.mark.full
def test_only_the_chief_ends_and_the_evaluator_sees_the_last_step(tfjob: Program) -> None:
    tfjob.set("strategy", "parameter_server")
    tfjob.set("steps", "100")
    tfjob.configure(workers=1, jobs={"evaluator": {"env": {"TF_NUM_INTRAOP_THREADS": "1"}}})
    tfjob.up()
    assert tfjob.outputs()["accuracy"] > 0.7
    assert tfjob.statuses() == {
        "chief-0": "succeeded",
        "ps-0": "stopped (run finished)",
        "worker-0": "stopped (run finished)",
        "evaluator-0": "succeeded",
    }
    assert re.search(r"^step 100 evaluated: accuracy 0\.[789]", tfjob.log("evaluator-0", CLUSTER), re.MULTILINE)
    tfjob.destroy()


@pytest.fixture
def page(tfjob: Program) -> Iterator[str]:
    """The URL of the digit page, over this program's models."""
    process = subprocess.Popen(
        [sys.executable, "-u", "serve.py", "--port", "0"], cwd=tfjob.program, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    try:
        yield process.stdout.readline().split()[-1]
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def draw(tab: chromium.Tab, stroke: list[tuple[float, float]]) -> None:
    """With the mouse: from point to point, in pixels of the canvas."""
    frame = tab.ask(
        "(({left, top, width}) => ({left, top, scale: width / 280}))(document.querySelector('canvas').getBoundingClientRect())"
    )

    def mouse(kind: str, point: tuple[float, float]) -> None:
        x, y = (frame[side] + frame["scale"] * at for side, at in zip(("left", "top"), point, strict=True))
        tab.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1)

    mouse("mousePressed", stroke[0])
    for point in stroke[1:]:
        mouse("mouseMoved", point)
    mouse("mouseReleased", stroke[-1])


ZERO = [(140 + 55 * math.sin(turn / 4), 140 - 85 * math.cos(turn / 4)) for turn in range(26)]
ONE = [(140.0, 50.0 + step) for step in range(0, 181, 20)]


def told(tab: chromium.Tab, selector: str) -> str:
    return tab.texts(selector)[0]


@pytest.mark.full
def test_a_digit_is_drawn_and_the_newest_model_answers(tfjob: Program, page: str, browser: chromium.Browser) -> None:
    tfjob.set("strategy", "alone")
    tfjob.set("steps", "1")
    tab = browser.open(page)
    assert told(tab, "#model") == "none yet"
    tfjob.up()
    assert "chief 0 of {'chief': 1}" in tfjob.log("chief-0", CLUSTER), "a replica that is alone has no TF_CONFIG"
    until(lambda: told(tab, "#model").endswith("/1"), "the first model", 120)
    draw(tab, ONE)
    until(lambda: told(tab, "#digit") != "", "an answer", 60)

    tfjob.set("steps", "600")
    tfjob.up()
    until(lambda: told(tab, "#model").endswith("/600"), "the newer model", 120)
    until(lambda: told(tab, "#digit") == "1", "its answer to what is drawn", 60)
    tab.ask("document.querySelector('button').click()")
    draw(tab, ZERO)
    until(lambda: told(tab, "#digit") == "0", "the other digit", 60)
    tab.picture("digit.png")
    assert tab.complaints() == []
    assert tfjob.outputs()["accuracy"] > 0.85
    assert {url.split("/")[2] for url in tab.requested() if url.startswith("http")} == {page.split("/")[2]}
    tfjob.destroy()
