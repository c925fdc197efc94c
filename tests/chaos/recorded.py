"""What a record says of its runs, read as tolerantly as a record with damaged parts needs."""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from tests.chaos.invariants import START, RunAccount
from tfdeploy.agent.record.artifact_manifest import stored_artifacts
from tfdeploy.agent.record.output import Reader
from tfdeploy.agent.record.output_lines import STDOUT
from tfdeploy.agent.record.record import Record

OUTPUT_DROPPED = "output_dropped"
"""The kind of event that counts bytes of output that could not be stored."""


def accounts(folder: Path) -> list[RunAccount]:
    """The runs in a record, the current one last."""
    record = Record(folder)
    runs = record.runs()
    with suppress(OSError):
        current = (folder / "current").read_text()
        runs = [name for name in runs if name != current] + [current]
    return [_account(record, name) for name in runs]


def _account(record: Record, run_id: str) -> RunAccount:
    folder = record.run_folder(run_id)
    state = cause = ""
    with suppress(OSError, ValueError):
        result = json.loads((folder / "run_state.json").read_text())["result"] or {}
        state, cause = result.get("state", ""), result.get("cause", "")
    events = list(_events(folder / "events.jsonl"))
    dropped: dict[str, int] = {}
    for event in events:
        count, task = event.get("count"), str(event.get("task", ""))
        if event.get("kind") == OUTPUT_DROPPED and isinstance(count, int):
            dropped[task] = dropped.get(task, 0) + count
    streams, attempts = {}, {}
    for path in sorted((folder / "logs").glob("*")):
        log = record.log(run_id, path.name)
        streams[path.name] = log.printed(STDOUT)
        begins = [(START.match(line.content + b" "), line.attempt) for line in Reader(log).more()]
        attempts[path.name] = [(begin[1].decode(), attempt) for begin, attempt in begins if begin]
    artifacts: list[str] = []
    with suppress(OSError):
        artifacts = [item.name for item in stored_artifacts(folder)[0] if item.is_complete]
    return RunAccount(state, cause, events, streams, dropped, artifacts, attempts)


def _events(file: Path) -> Iterator[Mapping[str, object]]:
    lines = file.read_text(encoding="utf-8", errors="surrogateescape").splitlines() if file.exists() else []
    for line in lines:
        with suppress(ValueError):
            event = json.loads(line)
            if isinstance(event, dict):
                yield event
