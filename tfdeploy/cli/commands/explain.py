"""`tfdeploy explain`: why a cluster or task does not run."""

import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated

from ...agent.events import STEPS_CONTINUED, STEPS_STOPPED
from ...agent.record.record import Record
from ...agent.record.terminal_text import safe
from ...agent.run_state import SUCCEEDED
from ...backends.load import load
from ...backends.task_access import no_task
from ...errors import BackendError
from ...report import diagnosis
from ...report.diagnosis import LINES, Facts
from ...report.program_problems import Finding
from ...report.remedies import in_words_of_run
from ...units import moment, text_of_seconds
from .. import completion
from ..common import print_json, print_prose
from ..exit_codes import FAILED
from ..option import Argument
from ..run.stack import PROJECT
from ..select import ClusterQuery, select_cluster
from ..snapshot import Snapshot, take_snapshot
from ..task_sights import dump_cluster, recorded_dump


def explain(
    query: ClusterQuery,
    hostname: Annotated[
        str, Argument(help="Task, such as ps-0.", show_default=False, autocompletion=completion.hostnames)
    ] = "",
) -> None:
    """Explain problems and how to fix them.

    Causes come before their consequences. The exit code is 0 if there is no problem, else 1.
    """
    snapshot = take_snapshot(select_cluster(query), log_lines=LINES)
    hostnames = [task["hostname"] for task in snapshot.report.tasks]
    if hostname and hostname not in hostnames:
        raise no_task(snapshot.entry.title, hostname, hostnames)
    findings, found = diagnosis.explain(_facts(snapshot), hostname), []
    if not any(finding.wrong for finding in findings) and not snapshot.is_finished:
        found = _dumped(snapshot, hostname)
    findings = [*found, *findings, *_stalled(snapshot, bool(found))]
    if snapshot.entry.cluster["project"] == PROJECT:
        findings = [finding._replace(remedy=in_words_of_run(finding.remedy)) for finding in findings]
    if query.as_json:
        print_json([finding._asdict() for finding in findings])
    else:
        print_findings(findings)
    if any(finding.wrong for finding in findings):
        sys.exit(FAILED)


def _dumped(snapshot: Snapshot, hostname: str) -> list[Finding]:
    """What `tfdeploy dump` finds in tasks that run; nothing where the controller cannot ask them."""
    with suppress(BackendError):
        return [item for item in dump_cluster(snapshot.entry).findings if hostname in item.text]
    return []


def _stalled(snapshot: Snapshot, is_explained: bool) -> list[Finding]:
    """That the run made no step for long, and was not seen to continue. Its dump explains it, where the present one does not."""
    run, kinds = snapshot.run_state, (STEPS_STOPPED, STEPS_CONTINUED)
    last = next((event for event in reversed(snapshot.events) if event.kind in kinds), None)
    if run is None or last is None or last.kind == STEPS_CONTINUED or (run.result and run.result.state == SUCCEEDED):
        return []
    dumped = recorded_dump(Record(Path(snapshot.observed.record_folder)), run)
    lines = [] if is_explained else [finding.text for finding in dumped.findings]
    text = f"At {moment(last.at)} no task had made a step for {text_of_seconds(last.delay)}."
    remedy = f"`tfdeploy dump --run {run.spec.id}` shows what each task did then." if dumped.sights else ""
    return [Finding("", text, remedy, lines, wrong=False)]


def _facts(snapshot: Snapshot) -> Facts:
    entry = snapshot.entry
    heal = load(entry.cluster["backend"]).heal_command
    return Facts(snapshot.report, snapshot.observed, heal, entry.expected.serve, entry.ended)


def print_findings(findings: Sequence[Finding]) -> None:
    """Print findings, each with its lines and what to do."""
    for finding in findings:
        print_prose(safe(finding.text, False))
        for line in finding.lines:
            print_prose(f"    {safe(line, False)}")
        if finding.remedy:
            print_prose(f"  {finding.remedy}")
