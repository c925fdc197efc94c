"""`tfdeploy diff`: two runs of a cluster side by side, what had changed between them, and the difference of their code."""

import time
import zipfile
from collections.abc import Sequence
from typing import Annotated

import typer

from ... import receipts
from ...errors import NotFound
from ...report.run_diff import FileChange, RunDiff, code_changes
from ...report.run_history import StoredRun, changes, summaries
from ..common import print_json, print_result
from ..select import ClusterQuery, select_cluster
from .runs import collect_runs


def diff(
    query: ClusterQuery,
    older: Annotated[str, typer.Argument(help="Id of a run, or its beginning.", show_default="the run before")] = "",
    newer: Annotated[str, typer.Argument(help="Id of a later run.", show_default="the last run")] = "",
) -> None:
    """Compare two runs: results, metrics, arguments, versions and code.

    `tfdeploy runs` shows their ids. The code of a run is compared if it was submitted from this computer.
    """
    entry = select_cluster(query)
    runs = sorted(collect_runs([entry]), key=lambda run: run.state.submitted_at)
    if len(runs) < 2:
        raise NotFound(f"{entry.title} has fewer than two runs.")
    second = _find(entry.title, runs, newer) if newer else runs[-1]
    others = [run for run in runs if run is not second]
    first = _find(entry.title, others, older) if older else _before(others, second)
    result = _compare(first, second)
    if query.as_json:
        print_json(result.to_dict())
    else:
        print_result(result.text(time.time()))


def _before(others: Sequence[StoredRun], newer: StoredRun) -> StoredRun:
    earlier = [run for run in others if run.state.submitted_at <= newer.state.submitted_at]
    return earlier[-1] if earlier else others[0]


def _find(title: str, runs: Sequence[StoredRun], name: str) -> StoredRun:
    """The last run with an id that begins so.

    Raises:
        NotFound: there is none, or the beginning fits several.
    """
    matches = [run for run in runs if run.state.spec.id.startswith(name)]
    ids = list(dict.fromkeys(run.state.spec.id for run in matches))
    if len(ids) > 1:
        raise NotFound(f"{title}: {name!r} is the beginning of several runs: {', '.join(ids)}.")
    if not ids:
        run_ids = ", ".join(dict.fromkeys(run.state.spec.id for run in runs))
        raise NotFound(f"{title} has no other run {name!r}. Its runs are: {run_ids}.")
    return matches[-1]


def _compare(older: StoredRun, newer: StoredRun) -> RunDiff:
    first, second = (summaries([run])[0] for run in (older, newer))
    return RunDiff(first, second, changes(older, newer), _code(older.state.spec.code, newer.state.spec.code))


def _code(older: str, newer: str) -> list[FileChange] | None:
    if older == newer:
        return []
    paths = [receipts.code_path(name) for name in (older, newer)]
    try:
        return code_changes(paths[0], paths[1]) if paths[0] and paths[1] else None
    except (OSError, zipfile.BadZipFile):
        return None
