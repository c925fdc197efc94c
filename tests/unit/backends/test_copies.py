"""Each way in which a record is copied brings every byte of it: also of tasks that were removed, and of runs that are over."""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.clusters import cluster_ref
from tests.unit.agent.imported import given
from tests.unit.backends.distant import Distant, distant_record
from tfdeploy.agent.control.controller import Controller
from tfdeploy.agent.model.run_state import STOPPED, RunResult
from tfdeploy.agent.record.output_lines import STDERR, STDOUT
from tfdeploy.agent.record.record import Record
from tfdeploy.agent.record.record_files import Range, grows, list_files
from tfdeploy.backends.ec2.record_bucket import Manifest
from tfdeploy.backends.ec2.watchdog.record_upload import LIST, PART, RecordUpload, part_name
from tfdeploy.backends.record_copy import RecordCopy


@pytest.fixture
def distant() -> Iterator[Distant]:
    with distant_record() as distant:
        yield distant


def by_the_controller(distant: Distant) -> Path:
    copy = RecordCopy(cluster_ref())
    assert copy.download(distant)
    return copy.folder


def by_the_bucket(distant: Distant) -> Path:
    objects: dict[str, bytes] = {}
    assert RecordUpload(distant.record.folder, objects.__setitem__).upload()
    manifest = Manifest.from_dict(json.loads(objects[LIST]))
    listed, places = manifest.record, manifest.places

    def read(ranges: Sequence[Range]) -> list[bytes]:
        name, offset, size = ranges[0]
        part = objects[f"record/{listed.record_id}/{part_name(name, offset // PART, places.get(name, ''))}"]
        return [part[offset % PART :][:size]]

    copy = RecordCopy(cluster_ref())
    assert copy.follow(listed, read) == []
    return copy.folder


def by_an_import(distant: Distant) -> Path:
    assert distant.run is not None
    distant.run.result = RunResult(STOPPED, "moved", 2.0)
    distant.record.save(distant.run)
    here = Controller(Record(distant.record.folder.with_name("here")))
    given(here, distant.record)
    return here.record.folder


@pytest.mark.parametrize("way", [by_the_controller, by_the_bucket, by_an_import])
def test_every_byte_of_the_record_is_in_the_copy(distant: Distant, way: Callable[[Distant], Path]) -> None:
    distant.record.record_id()
    distant.submit("earlier", 2)
    distant.print(1, [(STDOUT, b"earlier " * 1_000)])
    distant.submit("run", 3)
    distant.print(2, [(STDOUT, b"last words " * 600_000), (STDERR, b"\xff\0\r")])
    distant.shrink()
    distant.shrink()
    distant.happen("removed")
    distant.store(model=b"weights")
    original = {
        file.name: (distant.record.folder / file.name).read_bytes() for file in list_files(distant.record.folder)
    }
    expected = {name: data for name, data in original.items() if name.endswith(".log") or "/artifacts/" in name}
    assert "runs/run/logs/worker-2/0.log" in expected
    folder = way(distant)
    assert {name: (folder / name).read_bytes() for name in expected} == expected
    events = {name: data for name, data in original.items() if grows(name) and name not in expected}
    assert all((folder / name).read_bytes().startswith(data) for name, data in events.items())
    assert Record(folder).record_id() == distant.record.record_id()
    run = Record(folder).load("run")
    assert run is not None
    assert Record(folder).hostnames(run) == ["worker-0", "worker-1", "worker-2"]
