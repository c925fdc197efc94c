"""A run moves from one controller to another, with real processes: whatever is killed meanwhile, it continues from its checkpoint."""

import sys
from collections.abc import Callable
from typing import cast

import pytest

from tests.components.conftest import TOKEN, Standing
from tests.components.test_artifacts import SAVES
from tests.waiting import until
from tfdeploy.agent.launch.artifact_restore import restore
from tfdeploy.agent.model import events
from tfdeploy.agent.wire.rpc import UNIX
from tfdeploy.backends import move_record
from tfdeploy.backends.local.backend import BACKEND
from tfdeploy.backends.move_checks import MovedRunProps

BEGINS = """
found = sorted(path.relative_to(train).as_posix() for path in train.rglob("[!.]*") if path.is_file())
print("found", *found, flush=True)
"""
SAVED = 'print("step 5: loss 1", flush=True); checkpoint(5); put("export/saved_model.pb"); put("export/variables/variables.index")'


@pytest.fixture
def places(clusters: Callable[[str], Standing]) -> tuple[Standing, Standing]:
    """The former place of a cluster, where a run trains that has saved a checkpoint, and the new one, where its tasks wait."""
    return trained(clusters, SAVED)


def trained(clusters: Callable[[str], Standing], saves: str, **args: object) -> tuple[Standing, Standing]:
    former, new = clusters("former"), clusters("new")
    for cluster in (former, new):
        arguments = {"command": [sys.executable, "program.py", BEGINS + saves], "workers": 2, "wait": 0, **args}
        cluster.declare(SAVES, **arguments)
    run = {**former.plan.run.to_dict(), "id": new.plan.run.id}
    former.stand_tasks()
    BACKEND.runner.submit_run({**former.run_props(), "run": run})
    until(lambda: b"step 5" in former.output("worker-0"), "it trains")
    new.stand_tasks()
    return former, new


def props(former: Standing, new: Standing) -> MovedRunProps:
    return cast(MovedRunProps, {**new.run_props(), "moved_from": [former.cluster], "returns": False})


def move(former: Standing, new: Standing) -> None:
    """What the provider of the run does."""
    move_record.bring_here(props(former, new))
    BACKEND.runner.submit_run(new.run_props())


def test_launchers_fill_the_new_folder_before_the_program_begins(places: tuple[Standing, Standing]) -> None:
    former, new = places
    move(former, new)
    new.until_started("worker-0")
    new.until_started("worker-1")
    run = new.job()
    files = b"checkpoint export/saved_model.pb export/variables/variables.index model.ckpt-5.data-00000-of-00001 model.ckpt-5.index"
    for hostname in ("worker-0", "worker-1"):
        until(lambda name=hostname: new.output(name).count(b"found") == 2, "it has begun again")  # type: ignore[misc]
        assert b"found " + files in new.output(hostname), new.output(hostname)
    assert run.spec.train_dir.startswith(str(new.places.train))
    assert not (new.places.train / run.spec.id / ".tfdeploy-restore").exists()
    assert former.job().result is not None
    assert [event.kind for event in new.events()].count(events.RECORD_RESTORED) == 1
    said = BACKEND.runner.delete_all(former.cluster, TOKEN, {"volumes": False, "record": False, "is_elsewhere": True})
    assert said.startswith("the checkpoints are stored in "), "the record is at the new place"


def test_what_a_killed_launcher_has_left_in_the_folder_is_replaced(places: tuple[Standing, Standing]) -> None:
    former, new = places
    move_record.bring_here(props(former, new))
    folder, controller, run = new.folder / "train", f"{UNIX}{new.places.controller_socket}", new.plan.run.id
    (folder / ".tfdeploy-restore").mkdir(parents=True)
    (folder / ".tfdeploy-restore/model.ckpt-4.index").touch()
    (folder / "model.ckpt-5.index").write_text("the first part of it")
    restore(controller, TOKEN, run, str(folder))
    names = [".tfdeploy-restored", "checkpoint", "export", "model.ckpt-5.data-00000-of-00001", "model.ckpt-5.index"]
    assert sorted(path.name for path in folder.iterdir()) == names
    assert (folder / "model.ckpt-5.index").read_text() == "index 5"
    (folder / "model.ckpt-5.data-00000-of-00001").write_text("written later")
    stored = new.places.record / "runs" / run / "artifacts/model.ckpt-5.data-00000-of-00001"
    assert stored.read_text() == "data 5", "the record does not change with it"
    (folder / "model.ckpt-5.index").write_text("the program's own")
    restore(controller, TOKEN, run, str(folder))
    assert (folder / "model.ckpt-5.index").read_text() == "the program's own", "a folder with files is left alone"
