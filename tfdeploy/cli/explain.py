"""`tfdeploy explain`: why is it not running."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

import typer

from ..backends.access import no_task
from ..backends.base import load
from ..explaining import LINES, Facts, Finding
from ..explaining import explain as why
from . import completing
from .asking import FAILED, Asked, answer, say
from .finding import one
from .looking import Seen, look
from .terminal import safe


def explain(
    asked: Asked,
    hostname: Annotated[
        str, typer.Argument(help="One task, such as ps-0.", show_default=False, autocompletion=completing.hostnames)
    ] = "",
) -> None:
    """Say why it does not run, or how it is: causes first, each with what mends it. Exit code 0 when nothing is wrong, else 1."""
    seen = look(one(asked), log_lines=LINES)
    known = [row["hostname"] for row in seen.report.tasks]
    if hostname and hostname not in known:
        raise no_task(seen.entry.title, hostname, known)
    findings = why(_facts(seen), hostname)
    if asked.as_json:
        answer([asdict(one) for one in findings])
    else:
        _print(findings)
    if any(one.wrong for one in findings):
        raise typer.Exit(FAILED)


def _facts(seen: Seen) -> Facts:
    heal = load(seen.entry.cluster["backend"]).heal
    serve = seen.entry.outline.serve
    return Facts(seen.entry.title, seen.report, seen.sight, heal, serve, seen.entry.ended)


def _print(findings: Sequence[Finding]) -> None:
    for finding in findings:
        say(safe(finding.says, False))
        for line in finding.lines:
            say(f"    {safe(line, False)}")
        if finding.remedy:
            say(f"  {finding.remedy}")
