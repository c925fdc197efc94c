"""The calls by which version 0.1.0 copies a record, `POST /copy` and `POST /artifact`: they are answered for its users, and made to its
controllers. The next version removes this module.
"""

import base64
import json
from typing import Any, Callable, Dict, List, Optional, Sequence

from ..run_state import RunState
from ..transport.rpc import PROTOCOL
from .artifact_manifest import ArtifactList, load_manifest
from .log_lines import NAMES, PIPES
from .log_segments import Stream
from .record import NAME, Record
from .record_files import PART, Range, RecordFile, RecordList, is_record_file, small_file

_MAX_BYTES = 1024 * 1024
"""How many bytes of logs one response contains at most, before base64."""

_MAX_CALLS = 256
"""For one update of a run."""


def changes_since(record: Record, run: Optional[RunState], since: Dict[str, Any], at: float) -> Dict[str, Any]:
    """What a record has of one run beyond a copy's position, as JSON. `run` is the current run; it is also the subject where the copy's
    is unknown."""
    record_id, current, runs = record.record_id(), run.spec.id if run else "", record.runs()
    run_id = since.get("run_id") if since.get("run_id") in runs else current
    subject = run if run_id == current else record.load(str(run_id))
    changes: Dict[str, Any] = {
        "record_id": record_id,
        "runs": runs,
        "current": current,
        "run_id": run_id,
        "more": False,
        "at": at,
    }
    changes.update(run_state=subject.to_dict() if subject else None, protocol=PROTOCOL, events_at=0, events="", logs={})
    if subject is None or since["record_id"] != record_id:
        return changes
    begin = since if run_id == since.get("run_id") else {}
    left, more, ends = _MAX_BYTES, False, begin.get("ends", {})
    for hostname in record.hostnames(subject):
        more = more or left <= 0
        if left > 0:
            streams = record.log(subject.spec.id, hostname).streams
            pieces, is_complete = _next_pieces(streams, ends.get(hostname, {}), left)
            changes["logs"][hostname], more = pieces, more or not is_complete
            left -= sum(len(piece[1]) for piece in pieces.values())
    position = begin.get("events", 0)
    changes.update(events_at=position, events=record.events_from(subject.spec.id, position), more=more or left <= 0)
    return {**changes, "artifacts": _artifacts(record, subject.spec.id)}


def _artifacts(record: Record, run_id: str) -> Optional[Dict[str, Any]]:
    try:
        manifest = load_manifest(record.run_folder(run_id))
    except OSError:  # the copy stays as it is
        return None
    return manifest.to_dict() if manifest != ArtifactList() else None


def _next_pieces(streams: Dict[str, Stream], ends: Dict[str, int], limit: int) -> Any:
    """The next pieces of a task's streams, and whether these are all. The index never describes bytes that are still missing."""
    pieces: Dict[str, Any] = {}
    goals = {name: streams[name].end for name in reversed(NAMES)}
    is_complete = True
    for name in NAMES:
        stream, goal = streams[name], goals[name]
        start = max(ends.get(name, 0), stream.start)
        data = stream.read(start, max(0, min(limit, goal - start)))
        following = stream.next_segment(start) if not data else None
        if following is not None:
            start, data = following, stream.read(following, max(0, min(limit, goal - following)))
        if name in PIPES.values() or is_complete:
            if data:
                pieces[name] = [start, base64.b64encode(data).decode()]
            is_complete = is_complete and start + len(data) >= goal
    return pieces, is_complete


class FormerController:
    """The record at a controller of version 0.1.0. Output and events are written into the copy as they arrive: that version lists no
    files."""

    def __init__(
        self, call: Callable[[str, Dict[str, Any]], bytes], copy: Record, begin: Callable[[str], Record]
    ) -> None:
        """`call` makes a POST call; `begin` makes the copy one of the record with this id."""
        self._call, self._copy, self._begin = call, copy, begin

    def files(self, runs: Sequence[str]) -> RecordList:
        """The current run, where an id is empty, and the others that the controller has.

        Raises:
            ValueError, KeyError, TypeError, AttributeError: this version does not understand it.
        """
        replies = [self._brought(run) for run in runs or [""]]
        files = [file for reply in replies for file in _listed(reply)]
        last = replies[0]
        return RecordList(last["record_id"], last["at"] or 0.0, files, last["current"], last["runs"]).checked()

    def _brought(self, run_id: str) -> Dict[str, Any]:
        before: object = None
        for _ in range(_MAX_CALLS):
            ends = {} if not run_id else _ends(self._copy, run_id)
            position = {"record_id": self._copy.record_id(), "run_id": run_id, **ends}
            reply: Dict[str, Any] = json.loads(self._call("/copy", position))
            if reply["record_id"] != self._copy.record_id():
                self._copy, run_id = self._begin(reply["record_id"]), ""
                continue
            if reply["run_state"] is None or (run_id and reply["run_id"] != run_id) or position == before:
                return reply
            self._write(reply)
            if run_id and not reply["more"]:
                return reply
            before, run_id = position, reply["run_id"]
        return reply  # the next update continues

    def _write(self, reply: Dict[str, Any]) -> None:
        run_id, logs = reply["run_id"], reply["logs"]
        if not all(NAME.fullmatch(name) for name in (run_id, *logs)):
            return  # a cluster must not name files outside of the record
        for hostname, pieces in logs.items():
            streams = self._copy.log(run_id, hostname).streams
            for name in NAMES:
                if name in pieces:
                    streams[name].put(pieces[name][0], base64.b64decode(pieces[name][1]))
        self._copy.put_events(run_id, reply["events_at"], reply["events"])

    def read(self, ranges: Sequence[Range]) -> List[bytes]:
        """The bytes of an artifact."""
        part = ranges[0]
        _, run_id, _, name = part.name.split("/", 3)
        request = {"run_id": run_id, "name": name, "offset": part.offset, "size": min(part.size, PART)}
        return [self._call("/artifact", request)]


def _ends(copy: Record, run_id: str) -> Dict[str, Any]:
    folder = copy.run_folder(run_id) / "logs"
    hostnames = [path.name for path in folder.iterdir()] if folder.exists() else []
    ends = {hostname: copy.log(run_id, hostname).ends() for hostname in hostnames}
    return {"ends": ends, "events": copy.events_end(run_id)}


def _listed(reply: Dict[str, Any]) -> List[RecordFile]:
    """The files of a run that are replaced."""
    if reply["run_state"] is None:
        return []
    folder, manifest = f"runs/{reply['run_id']}", reply.get("artifacts")
    files = [small_file(f"{folder}/run_state.json", json.dumps(reply["run_state"]))]
    if reply["run_id"] == reply["current"]:
        files.append(small_file("current", reply["current"]))
    if manifest:
        files.append(small_file(f"{folder}/artifacts.json", json.dumps(manifest)))
        listed = [file for artifact in manifest["artifacts"] for file in artifact["files"]]
        files += [RecordFile(f"{folder}/artifacts/{file['name']}", file["size"], file["sha256"]) for file in listed]
    return [file for file in files if is_record_file(file.name)]
