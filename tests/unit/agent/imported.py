"""Records that are imported, and the calls that do it."""

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tests.unit.cases import plan
from tests.unit.printing import write
from tfdeploy.agent import events
from tfdeploy.agent.control.controller import Controller
from tfdeploy.agent.events import Event
from tfdeploy.agent.record import record_import
from tfdeploy.agent.record.artifact_manifest import (
    ArtifactList,
    ManifestArtifact,
    ManifestFile,
    save_manifest,
)
from tfdeploy.agent.record.output_lines import STDOUT
from tfdeploy.agent.record.record import Record
from tfdeploy.agent.record.record_import import ImportRequest
from tfdeploy.agent.run_state import RunResult, RunState

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
    (record.artifacts_folder(run.spec.id) / "saved").mkdir(parents=True)
    (record.artifacts_folder(run.spec.id) / "saved/model.ckpt-5.data-0").write_bytes(b"x" * 3_000_000)
    (record.run_folder(run.spec.id) / "metrics.json").write_text("{}")
    return record


def call_of(record: Record) -> Callable[[str, str, bytes], bytes]:
    """The calls of an import at the controller of this record."""

    def call(_: str, path: str, body: bytes) -> bytes:
        if path == "/import":
            return json.dumps({"lacking": record_import.begin(record.folder, body)}).encode()
        record_import.put(record.folder, body)
        return b"{}"

    return call


def sent(controller: Controller, record: Record, is_moved: bool = True) -> ImportRequest:
    """Send a record; the request that ends the import."""
    return ImportRequest(record_import.send(record.folder, call_of(controller.record)), time.time(), is_moved)


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
