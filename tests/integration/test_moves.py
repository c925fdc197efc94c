"""A run moves between backends, driven by the real engine: its record, its curve and its newest checkpoint move with it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.moving import MovingProject, assert_continuous, assert_goes_on, continued_at
from tests.toy_backend.backend import BACKEND as TOY
from tests.toy_backend.backend import discover
from tfdeploy.agent.model.run_state import STOP_REQUESTED, STOPPED


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MovingProject]:
    folder = tmp_path / "project"
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    project = MovingProject(folder)
    yield project
    project.clean()
    for cluster in discover():
        TOY.runner.delete_all(cluster.cluster, "", {"volumes": False, "record": False})


def test_a_run_that_the_user_has_stopped_continues_where_it_moves_to(project: MovingProject) -> None:
    project.begin_on("local")
    first = project.run_at("local").spec.id
    project.until_step("local", 12)
    project.tfdeploy("stop", "--yes", "--cluster", "test")
    result, last = project.run_at("local").result, project.steps_at("local")[-1]
    assert result is not None
    assert (result.state, result.cause) == (STOPPED, STOP_REQUESTED)

    updated = project.move_to("toy")
    assert not project.has_place("local")
    run, lines = project.run_at("toy"), project.lines_at("toy")
    assert (run.spec.id, run.result) == (first, None)
    starts = continued_at(lines)
    assert (starts[0], len(starts)) == (0, 2)
    assert starts[1] > last - 10, "from the newest checkpoint"
    assert_goes_on(updated, "toy", lines)
    assert_continuous(lines)
    project.destroy()
