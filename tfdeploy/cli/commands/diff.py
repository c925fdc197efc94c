"""`tfdeploy diff`: two runs of a cluster side by side, and what had changed between them."""

import time
from collections.abc import Sequence
from pathlib import Path

from ...agent.record.record import Record
from ...agent.record.terminal_text import shown_text
from ...errors import NotFound
from ...report.log_curves import Curve, curves
from ...report.run_diff import RunDiff
from ...report.run_history import StoredRun
from ..cluster_selection import ClusterQuery, find_run_id, select_cluster
from ..output import print_json, print_result
from ..parser import Parser
from .report import ALL_PAGE_LINES, PAGE_LINES, write_page
from .runs import collect_runs


def add_arguments(parser: Parser) -> None:
    """Its options and arguments."""
    older, newer = (
        "Id of a run, or its beginning. Default: the run before.",
        "Id of a later run. Default: the last run.",
    )
    parser.add_argument("older", nargs="?", default="", metavar="OLDER", help=older)
    parser.add_argument("newer", nargs="?", default="", metavar="NEWER", help=newer)
    html = "File for a page with the curves of both runs over each other."
    parser.add_argument("--html", type=Path, metavar="FILE", help=html)


def diff(query: ClusterQuery, older: str = "", newer: str = "", html: Path | None = None) -> None:
    """Compare two runs by results and arguments.

    Metrics, speed and numbers of tasks are compared too. `tfdeploy runs` shows the ids of runs. Arguments that differ have both values;
    variables of the environment have only names. Of the code, only whether it differs is shown.
    """
    entry = select_cluster(query)
    runs = sorted(collect_runs([entry]), key=lambda run: run.state.submitted_at)
    if len(runs) < 2:
        raise NotFound(f"{entry.title} has fewer than two runs.")
    second = _find(entry.title, runs, newer) if newer else runs[-1]
    others = [run for run in runs if run is not second]
    first = _find(entry.title, others, older) if older else _before(others, second)
    result = RunDiff(first, second)
    if html is not None:
        _write_page(html, result, query.as_json)
    elif query.as_json:
        print_json(result.to_dict())
    else:
        print_result(result.text(time.time()))


def _write_page(path: Path, result: RunDiff, as_json: bool) -> None:
    from ...report.html.comparison import comparison_page  # takes long to load

    older, newer = (_curves(run) for run in (result.older, result.newer))
    write_page(path, comparison_page(result, older, newer, time.time()), "--html", as_json)


def _curves(run: StoredRun) -> dict[str, Curve]:
    """The curves in the output of a run."""
    record = Record(run.record)
    logs = {hostname: record.log(run.spec.id, hostname) for hostname in record.hostnames(run.state)}
    count = min(PAGE_LINES, ALL_PAGE_LINES // max(1, len(logs)))
    return curves(
        {hostname: [(line.at, shown_text(line.text)) for line in log.tail(count)] for hostname, log in logs.items()}
    )


def _before(others: Sequence[StoredRun], newer: StoredRun) -> StoredRun:
    earlier = [run for run in others if run.state.submitted_at <= newer.state.submitted_at]
    return earlier[-1] if earlier else others[0]


def _find(title: str, runs: Sequence[StoredRun], name: str) -> StoredRun:
    """The last run with an id that begins so."""
    found = find_run_id(title, name, (run.spec.id for run in runs))
    return [run for run in runs if run.spec.id == found][-1]
