"""On a Swarm: found by labels, healed, and what no stack has removed."""

import json
import shutil

from tests.cli.calling import tfdeploy
from tests.docker.project import GATED, DockerProject


def test_a_removed_service_comes_back_and_what_no_stack_has_is_removed(project: DockerProject) -> None:
    arguments = 'command=["python", "train.py"], code="code", ps=1, workers=1, wait="0"'
    project.write(f'{arguments}, env={{"COUNTER": "{project.folder / "counter"}"}}', GATED)
    project.up()
    project.until_running("ps-0", "worker-0")
    project.docker("service", "rm", project.service("worker-0"))
    assert tfdeploy(project, "restart", "--lost", "--dry-run", "--json").data["restored"] == ["test-worker-0"]
    healed = tfdeploy(project, "restart", "--lost")
    assert healed.code == 0, healed.out + healed.err
    project.until_running("ps-0", "worker-0")

    entry = next((project.folder / "state/tfdeploy/registry").glob("*.json"))
    known = json.loads(entry.read_text())
    entry.unlink()
    shown = tfdeploy(project, "show", "--json")
    assert shown.code == 0, shown.err
    assert [row["hostname"] for row in shown.data[0]["tasks"]] == ["ps-0", "worker-0"]

    shutil.rmtree(project.folder / "backend")
    (project.folder / "backend").mkdir()
    title = f"{project.name}/test/test"
    (row,) = tfdeploy(project, "ls", "--leftovers", "--json", "--cluster", title).data["leftovers"]
    assert (row["state"], row["what"]["service"]) == ("unknown", 3)
    entry.write_text(json.dumps(known))
    (row,) = tfdeploy(project, "ls", "--leftovers", "--json", "--cluster", title).data["leftovers"]
    assert row["state"] == "left over"
    removed = tfdeploy(project, "ls", "--leftovers", "--delete", "--yes", "--cluster", title)
    assert removed.code == 0, removed.err
    project.assert_nothing_left()
