"""Records that are imported, and the calls that do it."""

import hashlib
import json
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from tests.unit.cases import plan
from tests.unit.printing import write
from tfdeploy.agent.control.controller import Controller
from tfdeploy.agent.control.controller_server import CALLS
from tfdeploy.agent.control.record_import import ImportRequest
from tfdeploy.agent.model import events
from tfdeploy.agent.model.events import Event
from tfdeploy.agent.model.run_state import RunResult, RunState
from tfdeploy.agent.record.artifact_manifest import ArtifactList, ManifestArtifact, ManifestFile, save_manifest
from tfdeploy.agent.record.output_lines import STDOUT
from tfdeploy.agent.record.record import Record
from tfdeploy.backends.lost_record import give_record

SPEC = plan(workers=1).run


def run_state(result: RunResult | None = None, moves: int = 0, **changed: object) -> RunState:
    run = RunState(replace(SPEC, train_dir="/former/run"), 1.0, moves=moves)
    run.result = result
    for name, value in changed.items():
        setattr(run, name, value)
    return run


def recorded(folder: Path, run: RunState) -> Record:
    record = Record(folder)
    record.save(run)
    record.record_id()
    record.add_events(run.spec.id, [Event(events.RUN_SUBMITTED)])
    write(record.log(run.spec.id, "worker-0"), [(STDOUT, b"step 1\n")])
    store(record, run.spec.id, {"saved/model.ckpt-5.data-0": b"x" * 3_000_000})
    (record.run_folder(run.spec.id) / "search.json").write_text("{}")
    return record


def store(record: Record, run_id: str, files: dict[str, bytes]) -> None:
    """The run has these artifacts, and no others."""
    shutil.rmtree(record.artifacts_folder(run_id), ignore_errors=True)
    for name, content in files.items():
        (record.artifacts_folder(run_id) / name).parent.mkdir(parents=True, exist_ok=True)
        (record.artifacts_folder(run_id) / name).write_bytes(content)
    listed = [
        ManifestFile(name, len(content), "1", hashlib.sha256(content).hexdigest()) for name, content in files.items()
    ]
    artifacts = [ManifestArtifact("keras", file.name, "laptop", 0, [file]) for file in listed]
    save_manifest(record.run_folder(run_id), ArtifactList(artifacts))


class Caller:
    """Calls a controller as a client does. The connection is cut after so many calls."""

    def __init__(self, controller: Controller, calls: int = 1_000_000) -> None:
        self._routes = {(it.method, it.path): partial(it.action, controller) for it in CALLS}
        self._calls_left = calls
        self.calls: list[tuple[str, int]] = []

    def call(self, method: str, path: str, body: bytes = b"") -> bytes:
        if not self._calls_left:
            raise ConnectionError("cut")
        self._calls_left -= 1
        self.calls.append((path, len(body)))
        result = self._routes[method, path](body)
        return result if isinstance(result, bytes) else json.dumps(result or {}).encode()

    def json(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(self.call(method, path, json.dumps(body or {}).encode()))
        return content


def given(controller: Controller, record: Record, is_moved: bool = True, returns: bool = False) -> Caller:
    """Give a record to a controller; what it was called for."""
    caller = Caller(controller)
    give_record(caller, record.folder, 1.0, is_moved, returns)
    return caller


class _WithoutEnd(Caller):
    def json(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        self.request = ImportRequest.from_dict(body or {})
        return {}


def sent(controller: Controller, record: Record, is_moved: bool = True) -> ImportRequest:
    """Send a record; the request that ends the import."""
    caller = _WithoutEnd(controller)
    give_record(caller, record.folder, 1.0, is_moved)
    return caller.request


def checkpoint(folder: Path, run: RunState, step: int, has_data: bool = True) -> Record:
    """A record with a checkpoint of the run; `has_data`: a copy has fetched it."""
    record = Record(folder)
    record.save(run)
    files = {f"c-{step}.index": b"i", f"c-{step}.data-0": b"v" * step, "checkpoint": f"c-{step}".encode()}
    listed = [ManifestFile(name, len(data), str(step)) for name, data in files.items()]
    artifact = ManifestArtifact("checkpoint", f"c-{step}", "laptop", 0, listed)
    for name, data in files.items() if has_data else ():
        record.artifacts_folder(run.spec.id).mkdir(exist_ok=True)
        (record.artifacts_folder(run.spec.id) / name).write_bytes(data)
    save_manifest(
        record.run_folder(run.spec.id), ArtifactList(*(([artifact], [], []) if has_data else ([], [], [artifact])))
    )
    return record
