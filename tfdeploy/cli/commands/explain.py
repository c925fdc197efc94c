"""`tfdeploy explain`: why a cluster or task does not run."""

import sys
from collections.abc import Sequence

from ...agent.model.run_state import SUCCEEDED
from ...agent.record.terminal_text import safe
from ...backends.backend import load
from ...backends.task_access import no_task
from ...report import diagnosis
from ...report.diagnosis import LINES, Facts
from ...report.events import stopped_steps
from ...report.program_problems import Finding
from ...report.remedies import in_words_of_run
from ..cluster_selection import ClusterQuery, select_cluster
from ..command_table import FAILED
from ..output import print_json, print_prose
from ..parser import Parser
from ..run.stack import PROJECT
from ..snapshot import Snapshot, take_snapshot


def add_arguments(parser: Parser) -> None:
    """Its options and arguments."""
    parser.add_argument("hostname", nargs="?", default="", metavar="HOSTNAME", help="Task, such as ps-0.")


def explain(query: ClusterQuery, hostname: str = "") -> None:
    """Explain problems and how to fix them.

    Causes come before their consequences. The exit code is 0 if there is no problem, else 1.
    """
    snapshot = take_snapshot(select_cluster(query), log_lines=LINES)
    hostnames = [task["hostname"] for task in snapshot.report.tasks]
    if hostname and hostname not in hostnames:
        raise no_task(snapshot.entry.title, hostname, hostnames)
    entry = snapshot.entry
    restore = load(entry.cluster["backend"]).restore_command
    facts = Facts(snapshot.report, snapshot.observed, restore, entry.expected.serve, entry.ended)
    findings = [*diagnosis.explain(facts, hostname), *_stopped(snapshot)]
    if entry.cluster["project"] == PROJECT:
        findings = [finding._replace(remedy=in_words_of_run(finding.remedy)) for finding in findings]
    if query.as_json:
        print_json([finding._asdict() for finding in findings])
    else:
        print_findings(findings)
    if any(finding.wrong for finding in findings):
        sys.exit(FAILED)


def _stopped(snapshot: Snapshot) -> list[Finding]:
    """That the run made no step for long, and was not seen to continue."""
    run, text = snapshot.run_state, stopped_steps(snapshot.events)
    if run is None or not text or (run.result and run.result.state == SUCCEEDED):
        return []
    remedy = "" if snapshot.is_finished else "`tfdeploy dump` shows what each task does."
    return [Finding("", text, remedy, wrong=False)]


def print_findings(findings: Sequence[Finding]) -> None:
    """Print findings, each with its lines and what to do."""
    for finding in findings:
        print_prose(safe(finding.text, False))
        for line in finding.lines:
            print_prose(f"    {safe(line, False)}")
        if finding.remedy:
            print_prose(f"  {finding.remedy}")
