"""`tfdeploy leftovers`: what carries our labels or tags and belongs to no stack."""

import json
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from .. import registry
from ..backends.base import Found, load
from ..backends.folders import state_folder
from ..errors import BackendError, NotFound, SpecError, TfdeployError
from ..quantities import counted, dollars, text_of_size
from ..registry import Entry
from ..report import moment, table
from . import calls
from .asking import FAILED, Asked, Yes, agree, answer, say, tell
from .at_once import at_once
from .belonging import BUSY, KEPT, LEFT, STACK, Answer, belonging, clusters_of, entry_of, refusal
from .finding import project_of, stack_here
from .foreground import take_away
from .labelled import at_home, everywhere
from .pulumi_command import NO_STACK, locked, pulumi
from .settings import places, settings
from .tables import ago

_SECONDS = 30.0
_COLUMNS = ("backend", "cluster", "what", "age", "per_hour", "state")


@dataclass
class _Search:
    found: list["_Row"] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Row:
    found: Found
    state: str
    why: str
    call: calls.Call | None = None
    """The one of `run` whose stack has it, and takes it away."""

    @property
    def title(self) -> str:
        cluster = self.found.cluster
        return "/".join((cluster["project"], cluster["stack"], cluster["name"]))

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        has, cluster = dict(self.found.has), dict(self.found.cluster)
        about = {"since": self.found.since, "per_hour": self.found.per_hour, "state": self.state, "why": self.why}
        return {**cluster, "what": has, **about}


def leftovers(
    asked: Asked,
    delete: Annotated[
        bool, typer.Option("--delete", help="Remove them, after a question.", show_default=False)
    ] = False,
    yes: Yes = False,
) -> None:
    """Show what clusters have left that belong to no stack, on this machine, the Docker engine and EC2; `--delete` removes it.

    What an update may be making is never removed, nor what belongs to a stack. What was not made from here, or whose stack Pulumi
    cannot be asked for, is `unknown`: only `--cluster PROJECT/STACK/NAME` removes it, and volumes that `keep_volumes` has kept.
    Records that `pulumi destroy` has kept are no leftovers.
    """
    search = _searched(asked)
    rows = [row for row in search.found if _meant(row, asked)]
    for problem in search.problems:
        tell(f"tfdeploy: {problem}")
    if delete:
        _delete(asked, rows, yes)
        return
    meant = [row for row in rows if row.state == KEPT]
    rows = [row for row in rows if row.state not in (STACK, KEPT)]
    if asked.as_json:
        kept = {**_kept(), "volumes": [row.document() for row in meant]}
        answer({"leftovers": [row.document() for row in rows], "problems": search.problems, "kept": kept})
        return
    say(table([_shown(row) for row in rows], _COLUMNS) if rows else "Nothing is left over.")
    for row in rows:
        if row.state != LEFT:
            say(f"{row.title} is {row.state}: {row.why}.")
    for row in meant:
        say(f"{row.title} has {_what(row.found)} on {row.found.cluster['backend']}: {row.why}.")
    if _kept()["records"]:
        say(f"{counted(_kept()['records'], 'record')} of destroyed clusters are kept on purpose: {_kept()['told']}.")


def _searched(asked: Asked) -> _Search:
    """All that is found where the settings, or clusters that are known, say; and to what it belongs."""
    entries = registry.entries()
    file, stack = stack_here(asked)
    wanted = set(places(settings(file, stack)).items())
    wanted |= {(entry.cluster["backend"], entry.cluster["home"]) for entry in entries if not _local(entry)}
    found, silent = everywhere(sorted(wanted), _SECONDS)
    problems = [
        f"{backend} could not be asked: {why}"
        for (backend, place), why in silent.items()
        if place or not isinstance(why, TfdeployError)
    ]
    # One engine has several addresses: the same things are told once.
    unique = {(*_key(one), str(sorted(one.has.items())), one.since): one for one in found}
    return _Search(_judged(list(unique.values()), entries), problems)


def _judged(found: Sequence[Found], entries: Sequence[Entry]) -> list[_Row]:
    known = [entry_of(one.cluster, entries) for one in found]
    stacks = {_stack(entry): entry for entry in known if entry is not None}
    said = at_once({key: partial(_export, entry) for key, entry in stacks.items()}, _SECONDS)
    now = time.time()
    rows = []
    for one, entry in zip(found, known, strict=True):
        told = said[_stack(entry)] if entry else Answer()
        told = Answer(silent=str(told) or repr(told)) if isinstance(told, Exception) else told
        state, why = belonging(one, entry, told, now)
        call = _abandoned(one) if state in (STACK, BUSY) else None
        rows.append(_Row(one, LEFT, "its `tfdeploy run` was cut short", call) if call else _Row(one, state, why))
    return rows


def _abandoned(found: Found) -> calls.Call | None:
    """The call of `run` that was for this cluster, and was cut short; None where there is none such."""
    if found.cluster["project"] != calls.PROJECT:
        return None
    with suppress(TfdeployError):
        call = calls.known(found.cluster["stack"])
        return call if call.abandoned else None
    return None


def _export(entry: Entry) -> Answer:
    """What a stack's state has, where it was kept when the cluster was last brought up.

    Raises:
        BackendError: that cannot be known.
    """
    project, stack = entry.cluster["project"], entry.cluster["stack"]
    now = project_of(Path(entry.folder))[0]
    if now != project:
        raise BackendError(f"{entry.folder} has the program of {now} now")
    held = locked(project, stack, entry.login or registry.login())
    name = f"{entry.organization}/{project}/{stack}" if entry.organization else stack
    done = pulumi(Path(entry.folder), "stack", "export", "--stack", name, seconds=_SECONDS, where=entry.login)
    if done.returncode == 0:
        return Answer(clusters_of(json.loads(done.stdout)), locked=held)
    if NO_STACK in done.stderr:
        return Answer(missing=True, locked=held)
    last = next((line for line in done.stderr.splitlines() if line.strip()), "it says nothing")
    raise BackendError(last.removeprefix("error: "))


def _delete(asked: Asked, rows: Sequence[_Row], yes: bool) -> None:
    chosen = _named(asked, rows) if asked.cluster else [row for row in rows if row.state == LEFT]
    if not chosen:
        say("Nothing is left over.") if not asked.as_json else answer([])
        return
    for row in [] if yes else chosen:
        tell(f"  {row.title} on {row.found.cluster['backend']}: {_what(row.found)}")
    silent = SpecError("--delete", "asks first, and there is no terminal", "Say --yes.")
    agree(yes, "Remove all of this for good (records are kept)?", silent)
    told = [_removed(row) for row in chosen]
    if asked.as_json:
        answer(told)
    for one in told:
        (tell if asked.as_json else say)(f"{one['cluster']}: {one['error'] or one['said'] or 'removed'}")
    if any(one["error"] for one in told):
        raise typer.Exit(FAILED)


def _named(asked: Asked, rows: Sequence[_Row]) -> list[_Row]:
    """The one that is named, if it may go.

    Raises:
        NotFound: there is none, or more than one.
        SpecError: it may not go.
    """
    rows = [row for row in rows if at_home(row.found)] or rows
    if len(rows) != 1:
        names = ", ".join(f"{row.title} ({row.found.cluster['home'] or 'nowhere'})" for row in rows)
        raise NotFound(
            f"{asked.cluster} has left nothing."
            if not rows
            else f"{asked.cluster!r} names several: {names}. Give PROJECT/STACK/NAME."
        )
    (row,) = rows
    why = refusal(row.state, row.why, row.found, time.time())
    if why:
        raise SpecError(row.title, "is not removed", f"{why[0].upper()}{why[1:]}.")
    if row.state != LEFT and asked.cluster != row.title:
        raise SpecError(
            row.title, f"is {row.state}: {row.why}", f"Only its full name removes it: --cluster {row.title}."
        )
    return [row]


def _removed(row: _Row) -> dict[str, str]:
    cluster = row.found.cluster
    try:
        if row.call:
            take_away(row.call, shown=False)
            return {"cluster": row.title, "said": "", "error": ""}
        said = load(cluster["backend"]).clear(cluster, "", {"volumes": False, "record": True})
        registry.end(cluster)
    except Exception as error:  # of one: the others are still to go
        return {
            "cluster": row.title,
            "said": "",
            "error": str(error) if isinstance(error, TfdeployError) else repr(error),
        }
    return {"cluster": row.title, "said": said, "error": ""}


def _meant(row: _Row, asked: Asked) -> bool:
    stack = asked.stack.rpartition("/")[2]
    named = asked.cluster in ("", row.found.cluster["name"], row.title)
    return named and stack in ("", row.found.cluster["stack"])


def _shown(row: _Row) -> dict[str, str]:
    since, usd = row.found.since, row.found.per_hour
    return {
        "backend": row.found.cluster["backend"],
        "cluster": row.title,
        "what": _what(row.found),
        "age": ago(moment(since), time.time()).removesuffix(" ago"),
        "per_hour": "unknown" if usd is None else dollars(usd) if usd else "",
        "state": row.state,
    }


def _what(found: Found) -> str:
    return ", ".join(_counted(count, kind) for kind, count in found.has.items())


def _counted(count: int, kind: str) -> str:
    return f"{count} {kind}es" if kind.endswith("s") and count > 1 else counted(count, kind)


def _kept() -> dict[str, Any]:
    """The records of clusters that were destroyed."""
    folder = state_folder() / "kept"
    records = list(folder.glob("*/*/record"))
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return {"folder": str(folder), "records": len(records), "bytes": size, "told": f"{text_of_size(size)} in {folder}"}


def _local(entry: Entry) -> bool:
    return entry.cluster["backend"] == "local"


def _key(found: Found) -> tuple[str, ...]:
    cluster = found.cluster
    return (cluster["backend"], cluster["project"], cluster["stack"], cluster["name"])


def _stack(entry: Entry) -> tuple[str, ...]:
    return entry.folder, entry.login, entry.organization, entry.cluster["project"], entry.cluster["stack"]
