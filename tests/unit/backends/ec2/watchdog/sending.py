"""A record, and a bucket that remembers what is put into it."""

import hashlib
import json
from pathlib import Path
from typing import Any

from tfdeploy.agent.model.events import RUN_SUBMITTED, Event
from tfdeploy.agent.model.run_spec import RunSpec, TaskSpec
from tfdeploy.agent.model.run_state import RunState
from tfdeploy.agent.record.artifact_manifest import ArtifactList, ManifestArtifact, ManifestFile, save_manifest
from tfdeploy.agent.record.record import Record
from tfdeploy.agent.system.files import write_whole
from tfdeploy.backends.ec2.watchdog.record_upload import LIST, part_name
from tfdeploy.backends.ec2.watchdog.s3 import PutError

RUN = RunSpec("0123456789ab", [TaskSpec("worker-0", "worker", 0)], {}, success="worker-0")


class Sent:
    """Remembers what is put; refuses what it is told to."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.order: list[str] = []
        self.refused = ""

    def put(self, key: str, body: bytes) -> None:
        if self.refused and self.refused in key:
            raise PutError(key)
        self.objects[key] = body
        self.order.append(key)

    def news(self) -> list[str]:
        """What has been put since the last call, without the life in it."""
        found, self.order = self.order, []
        return [key.split("/", 2)[2] if key != LIST else LIST for key in found]

    @property
    def told(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self.objects[LIST])
        return told


def stored_record(folder: Path) -> Record:
    record = Record(folder)
    record.save(RunState(RUN, 1.0))
    record.set_record_id("first-life")
    record.add_events(RUN.id, [Event(RUN_SUBMITTED, 1.0)])
    path = record.log(RUN.id, "worker-0").path(0)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"step 1\n")
    record.touch()
    return record


def store(record: Record, files: dict[str, bytes]) -> None:
    """What a controller does when these artifacts have arrived: each gets its name, then it is listed; former ones are deleted."""
    folder = record.artifacts_folder(RUN.id)
    for name, content in files.items():
        write_whole(folder / name, content)
    listed = [ManifestFile(name, len(data), "1", hashlib.sha256(data).hexdigest()) for name, data in files.items()]
    save_manifest(
        record.run_folder(RUN.id), ArtifactList([ManifestArtifact("checkpoint", next(iter(files)), "a", 0, listed)])
    )
    for path in folder.rglob("*"):
        if path.is_file() and path.relative_to(folder).as_posix() not in files:
            path.unlink()


TEXTS = ("record_id", "format", "current", "run_state.json", "search.json", "artifacts.json")


def consistent(objects: dict[str, bytes]) -> dict[str, Any]:
    """The list, when each file that it names is there as it says."""
    told: dict[str, Any] = json.loads(objects[LIST])
    for name, (size, sha256, *text) in told["files"].items():
        assert bool(text) == (name.rpartition("/")[2] in TEXTS)
        content = text[0].encode() if text else uploaded(objects, told, name, size)
        assert (size, sha256) == (len(content), hashlib.sha256(content).hexdigest())
    return told


def uploaded(objects: dict[str, bytes], told: dict[str, Any], name: str, size: int) -> bytes:
    place, count = told["places"].get(name, ""), -(-size // told["part"])
    keys = [f"record/{told['record_id']}/{part_name(name, number, place)}" for number in range(count)]
    return b"".join(objects[key] for key in keys)[:size]
