"""A second record, kept up to date from the first: what a look at a distant cluster leaves on the user's own disk.

`beyond` runs where the keeper is, `apply` where somebody looks. A copy is brought on at its own ends, so a call that is cut
short or repeated does no harm.
"""

import base64
import re
from typing import Any, Callable, Dict, List, Optional, Tuple

from .lines import NAMES, PIPES
from .record import Record
from .states import Job
from .stream import Stream

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
"""Runs and hostnames, which are folders of the record."""

_MOST_BYTES = 1024 * 1024
"""How many bytes of logs one answer holds at most, before they are written as text."""

_MOST_ROUNDS = 256
"""How many answers one look takes at most; the next look goes on."""

Answer = Dict[str, Any]


def have(record: Record, run: str) -> Dict[str, Any]:
    """How far this record's account of a run goes; run "" is for one that has nothing yet."""
    job = record.load(run) if run else None
    ends = {hostname: record.log(run, hostname).ends() for hostname in job.tasks} if job else {}
    return {"run": run, "ends": ends, "events": record.events_end(run) if run else 0, "life": record.life()}


def beyond(record: Record, job: Optional[Job], ask: Dict[str, Any]) -> Answer:
    """What this record, whose present job is `job`, has of a run beyond what `ask` (see `have`) says is there.

    The account is that of the present run where `ask` names none that is known.
    """
    current = job.run["id"] if job else ""
    runs = record.runs()
    run = ask["run"] if ask["run"] in runs else current
    about = job if run == current else record.load(run)
    answer: Answer = {"life": record.life(), "runs": runs, "current": current, "run": run, "more": False}
    answer["job"] = about.to_dict() if about else None
    if about is None or ask["life"] != answer["life"]:
        return answer
    begin: Dict[str, Any] = ask if run == ask["run"] else {"ends": {}, "events": 0}
    answer["events_at"], answer["events"] = begin["events"], record.events_from(run, begin["events"])
    answer["logs"], left = {}, _MOST_BYTES
    for hostname in about.tasks:
        pieces, whole = _pieces(record.log(run, hostname).streams, begin["ends"].get(hostname, {}), left)
        answer["logs"][hostname], answer["more"] = pieces, answer["more"] or not whole
        left -= sum(len(piece[1]) for piece in pieces.values())
        if left <= 0:
            return {**answer, "more": True}
    return answer


def _pieces(streams: Dict[str, Stream], ends: Dict[str, int], limit: int) -> Tuple[Dict[str, List[Any]], bool]:
    """Name of a stream to position and bytes (as base64), and whether that is all. The index never tells of bytes to come."""
    found: Dict[str, List[Any]] = {}
    goals = {name: streams[name].end for name in reversed(NAMES)}
    whole = True
    for name in NAMES:
        at, data = _next(streams[name], ends.get(name, 0), goals[name], limit)
        if name in PIPES.values() or whole:
            if data:
                found[name] = [at, base64.b64encode(data).decode()]
            whole = whole and at + len(data) >= goals[name]
    return found, whole


def _next(stream: Stream, position: int, goal: int, limit: int) -> Tuple[int, bytes]:
    """The bytes of one segment from this position on, but none beyond `goal`; where they begin."""
    at = max(position, stream.start)
    data = stream.read(at, max(0, min(limit, goal - at)))
    following = stream.next_segment(at) if not data else None
    if following is None:
        return at, data
    return following, stream.read(following, max(0, min(limit, goal - following)))


def apply(record: Record, answer: Answer) -> None:
    """Take an answer of `beyond` into this record; one about another life is none."""
    job = answer["job"] or {"run": {"id": ""}, "tasks": {}}
    names = [answer["run"], job["run"]["id"], *job["tasks"], *answer.get("logs", {})]
    if not all(_NAME.fullmatch(name) for name in names if name):
        return  # what comes from a cluster names no other place on this disk
    if answer["job"] is None or answer["life"] != record.life():
        return
    run = answer["run"]
    for hostname, pieces in answer["logs"].items():
        streams = record.log(run, hostname).streams
        for name in NAMES:
            if name in pieces:
                at, text = pieces[name]
                streams[name].put(at, base64.b64decode(text))
    record.put_events(run, answer["events_at"], answer["events"])
    if run == answer["current"]:
        record.save(Job.from_dict(answer["job"]))
    else:
        record.keep(Job.from_dict(answer["job"]))
    record.touch(answer.get("at"))


def bring_on(record: Record, call: Callable[[Dict[str, Any]], Answer], begin_anew: Callable[[], None]) -> Answer:
    """Bring this record on to the keeper's; the last answer, which has the present job.

    `call` asks the keeper. `begin_anew` puts the record aside: the keeper's is that of another life of the cluster.
    """
    present = record.current()
    run = present.run["id"] if present else ""
    for _ in range(_MOST_ROUNDS):
        answer = call(have(record, run))
        if answer["life"] != record.life():
            begin_anew()
            record.live(answer["life"])
            run = ""
            continue
        apply(record, answer)
        if not answer["more"] and answer["run"] == answer["current"]:
            break
        run = answer["run"] if answer["more"] else answer["current"]
    return answer


def bring_all(record: Record, call: Callable[[Dict[str, Any]], Answer]) -> None:
    """Bring on this record's accounts of all runs, after `bring_on`."""
    for run in call(have(record, ""))["runs"]:
        while True:
            before = have(record, run)
            answer = call(before)
            apply(record, answer)
            if answer["run"] != run or not answer["more"] or have(record, run) == before:
                break
