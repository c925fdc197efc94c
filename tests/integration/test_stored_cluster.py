"""What each version since 1.0.0 has stored can be read, updated and destroyed by this one (docs/versions.md)."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.conftest import Project
from tests.integration.stored_cluster import restore

VERSIONS = sorted(Path(__file__).parent.glob("stored/*.json"))


@pytest.fixture(params=VERSIONS, ids=lambda file: file.stem)
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Project]:
    found = restore(request.param, tmp_path / "project")
    yield found
    found.clean()


def test_a_cluster_of_an_earlier_version_is_shown_stays_finished_and_is_destroyed(stored: Project) -> None:
    (run,) = json.loads(stored.tfdeploy("runs", "--json"))
    assert (run["result"], run["metrics"]) == ("succeeded", {"accuracy": 0.9})
    assert stored.tfdeploy("logs", "worker-0") == "worker-0 | accuracy: 0.9\n"
    before = [(task["hostname"], task["status"], task["created"]) for task in stored.outputs()["tasks"]]
    done = stored.up()
    assert done.steps().keys() <= {"unchanged", "updated"}, done.output
    assert [(task["hostname"], task["status"], task["created"]) for task in stored.outputs()["tasks"]] == before
    assert stored.outputs()["metrics"] == {"accuracy": 0.9}
    stored.destroy()
