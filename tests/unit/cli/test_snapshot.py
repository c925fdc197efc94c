"""Each line is given once, wherever the record stands by then."""

import shutil
from pathlib import Path

import pytest

from tests.clusters import ID, cluster_ref
from tests.unit.cases import plan, stored_run
from tests.unit.cli.calling import registered
from tests.unit.printing import write
from tfdeploy import registry
from tfdeploy.agent.model.run_state import RunState
from tfdeploy.agent.record.output_lines import STDERR, STDOUT
from tfdeploy.agent.record.record import Record
from tfdeploy.cli.snapshot import Follower


@pytest.fixture
def entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> registry.Entry:
    """A cluster of which only the record stands: nobody answers for it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    cluster = cluster_ref("local", str(tmp_path / f"tfdeploy/clusters/mnist-{ID}"))
    found = registered(cluster, {"ps": 1, "workers": 1})
    record_of(found).save(RunState(plan(ps=1, workers=1).run, 1.0))
    return found


def record_of(entry: registry.Entry) -> Record:
    return Record(Path(entry.cluster["home"]) / "record")


def say(record: Record, hostname: str, *texts: str, at: float, pipe: int = STDOUT) -> None:
    """Have a task print these pieces, one a second."""
    job = stored_run(record)
    write(record.log(job.spec.id, hostname), [(pipe, text.encode()) for text in texts], begin=at)


def new(follower: Follower) -> list[str]:
    """What has come since the last time, after a look."""
    follower.take_snapshot()
    return [f"{line.hostname} {line.pipe} {line.text}" for line in follower.lines()]


def test_lines_of_all_tasks_come_once_in_the_order_of_time(entry: registry.Entry) -> None:
    record, follower = record_of(entry), Follower(entry)
    say(record, "worker-0", "one\n", "three\nhal", at=10)
    say(record, "ps-0", "two\n", at=10.5, pipe=STDERR)
    assert new(follower) == ["worker-0 stdout one", "ps-0 stderr two", "worker-0 stdout three"]
    assert new(follower) == []
    say(record, "worker-0", "f\n", at=20)
    assert new(follower) == ["worker-0 stdout half"]


def test_it_goes_on_where_it_was_when_the_cluster_is_destroyed(entry: registry.Entry) -> None:
    record, follower = record_of(entry), Follower(entry)
    say(record, "worker-0", "before\nlast wo", at=10)
    assert new(follower) == ["worker-0 stdout before"]
    say(record, "worker-0", "rds\n", at=20)
    kept = registry.folder().parent / f"retained/mnist-{ID}/20260101T000000Z"
    kept.mkdir(parents=True)
    shutil.move(record.folder, kept)
    assert new(follower) == []
    registry.mark_destroyed(entry.cluster)
    assert new(follower) == ["worker-0 stdout last words"]


def test_a_run_begun_anew_is_read_from_its_beginning(entry: registry.Entry) -> None:
    record, follower = record_of(entry), Follower(entry)
    say(record, "worker-0", "the first\n", at=10)
    assert new(follower) == ["worker-0 stdout the first"]
    job = stored_run(record)
    shutil.rmtree(record.folder)
    record = record_of(entry)
    record.save(RunState(job.spec, 2.0))
    say(record, "worker-0", "again\n", at=30)
    assert new(follower) == ["worker-0 stdout again"]
