"""A training whose steps stop: `events`, `status` and `explain` say so until they continue, and when the cluster is destroyed."""

import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.components.conftest import Standing
from tests.components.registered import verbs_of
from tests.waiting import until
from tfdeploy import agent, registry
from tfdeploy.agent.model.events import STEPS_CONTINUED, STEPS_STOPPED
from tfdeploy.backends import zipapp

PAIR = """
import os, time
from steps import begin, here, hostname

queue = here / "queue"
if hostname == "worker-1":
    os.mkfifo(queue)
while not queue.exists():
    time.sleep(0.02)
pipe = os.open(queue, os.O_RDWR)
begin()
step = 0
while True:
    if hostname == "worker-1":
        os.write(pipe, b"x")
        time.sleep(0.05)
    else:
        os.read(pipe, 1)
        step += 1
        print("step", step, flush=True)
"""
"""One makes a step for each byte that the other sends."""

IMPATIENT = {
    "POLL_SECONDS = 2.0": "POLL_SECONDS = 0.5",
    "STALL_SECONDS, STALL_INTERVALS = 300.0, 10.0": "STALL_SECONDS, STALL_INTERVALS = 8.0, 10.0",
}


@pytest.fixture
def impatient_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An agent that waits for seconds instead of minutes."""
    sources, file = zipapp._sources(agent), "control/step_watch.py"
    text = sources[file].read_text()
    for line, changed in IMPATIENT.items():
        assert line in text
        text = text.replace(line, changed)
    path = tmp_path / "control" / "step_watch.py"
    path.parent.mkdir()
    path.write_text(text)
    cached = (zipapp.application, zipapp.compiled_application, zipapp.version)
    for function in cached:
        function.cache_clear()
    with monkeypatch.context() as context:
        context.setattr(zipapp, "_sources", lambda _: {**sources, file: path})
        yield
    for function in cached:
        function.cache_clear()


@pytest.mark.usefixtures("impatient_agent")
def test_the_run_is_said_to_make_no_steps_until_it_continues(cluster: Standing) -> None:
    cluster.run(PAIR, workers=2, stop_grace_period="1s")
    verbs, sender = verbs_of(cluster), cluster.started("worker-1")[0]

    def seen() -> list[str]:
        kinds = [event.kind for event in cluster.events()]
        return [kind for kind in kinds if kind in (STEPS_STOPPED, STEPS_CONTINUED)]

    def stop_until_noticed() -> None:
        steps, noticed = cluster.output("worker-0"), len(seen())
        until(lambda: cluster.output("worker-0").count(b"\n") > steps.count(b"\n") + 10, "steps are made")
        os.kill(sender, signal.SIGSTOP)
        until(lambda: seen()[noticed:][-1:] == [STEPS_STOPPED], "the steps have stopped", seen=seen)

    def said(verb: str) -> str:
        code, text, _ = verbs.call(verb)
        assert code == 0
        return " ".join(text.decode().split())

    stop_until_noticed()
    assert "no task had made a step for" in said("status")
    assert "`tfdeploy dump` shows what each task does." in said("explain")
    assert "no step for" in said("events")

    os.kill(sender, signal.SIGCONT)
    until(lambda: seen()[-1:] == [STEPS_CONTINUED], "the steps continued", seen=seen)
    assert not [verb for verb in ("status", "explain") if "no task had made a step" in said(verb)]
    stop_until_noticed()

    (entry,) = registry.entries()
    cluster.clear()
    registry.write(replace(entry, ended=2.0))
    assert "no task had made a step for" in said("explain")
    assert "tfdeploy dump" not in said("explain")
