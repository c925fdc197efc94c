"""What people ask first of a run: how good it is, how far and how fast, how long it took, and where its model is. Pure."""

from collections.abc import Mapping
from dataclasses import replace

from ..agent.model.run_state import FAILED, RESTARTING, RUNNING, UNKNOWN
from ..agent.record.progress import Progress
from ..outputs import ArtifactRow
from ..units import dollars, named, text_of_size, wrapped
from .program_problems import RECORD
from .progress import first_progress, leaders_first, left_text, loss_text, rate_text, step_text
from .report import Report, metric_text
from .tables import kind

_SHOWN_ARTIFACTS = 3


def summary(report: Report, home: str = "", width: int = 0, in_update: bool = False) -> str:
    """What is known of the run, a line for each, and below it how it ended or that it runs. `home` is the user's folder, which is
    written as ~; `width` is that of the terminal, 0 for no limit. An update has shown the curve of the loss, and prints the cause of a
    failure below."""
    progress = first_progress(report.progress)
    progress = replace(progress, losses=[]) if in_update else progress
    is_running = report.state == RUNNING and not report.decided
    spent = report.cost.get("spent")
    missing = "not printed" if report.decided else "not printed yet"
    rows = {
        "run": f"{report.run}, took {report.took}" if report.decided else report.run,
        **{name: metric_text(value, missing) for name, value in report.metrics.items()},
        "progress": "" if is_running else _progress_text(progress, report.decided),
        "cost": "" if spent is None else f"{dollars(spent)} so far",
        **_stored(report, home),
    }
    shown = {name: text for name, text in rows.items() if text}
    size = max(map(len, shown), default=0)
    lines = [f"{name:<{size}}  {text}" for name, text in shown.items()]
    if is_running:
        detail = ", ".join(filter(None, (report.reason, _progress_text(progress, decided=False))))
        lines += wrapped(f"Run running for {report.took}{f': {detail}' if detail else ''}.", width)
        lasting = {RECORD, *(row["machine"] for row in report.machines)}
        for problem in [problem for problem in report.problems if problem.about in lasting]:
            lines += wrapped(problem.sentences, width)
    elif not (in_update and report.state == FAILED):
        lines += wrapped(report.sentences, width)
    return "\n".join(lines)


def _progress_text(progress: Progress, decided: bool) -> str:
    """`step 1200/2000 (60%), 41.0 steps/s, 20s left, loss 0.31 ▇▅▃▂▁`."""
    step = step_text(progress)
    step = step if step.startswith("step") or not step else f"step {step}"
    part = "" if progress.part is None or decided else f" ({progress.part:.0%})"
    left = "" if decided else left_text(progress)
    return ", ".join(filter(None, (f"{step}{part}", rate_text(progress), left, loss_text(progress))))


def _stored(report: Report, home: str) -> Mapping[str, str]:
    """The models and checkpoints of the run: what was stored and its folder, which is named once, else the folder of the run."""
    stored = [row for row in report.artifacts if row["path"]]
    missing = [row for row in report.artifacts if not row["path"]]
    # All of them are in one folder, each under its name.
    folder = stored[0]["path"].removesuffix(f"/{stored[0]['name']}") if stored else ""
    return {
        "stored": named(list(map(_artifact_text, stored)), _SHOWN_ARTIFACTS),
        "in": _short(folder, home),
        "not stored": f"{missing[0]['name']}: {missing[0]['problem']}" if missing else "",
        "train_dir": "" if folder else _short(report.train_dir, home),
    }


def _artifact_text(row: ArtifactRow) -> str:
    """`export (model, 1.6 MiB)`."""
    kind = "model" if row["kind"] == "keras" else row["kind"]
    return f"{row['name']} ({kind}, {text_of_size(row['size'])})"


def _short(path: str, home: str) -> str:
    return f"~{path.removeprefix(home)}" if home and path.startswith(f"{home}/") else path


def next_steps(report: Report, serves: bool = False, in_status: bool = False) -> str:
    """What to type next; of a problem first `tfdeploy explain`. `in_status`: `tfdeploy status` prints it."""
    if not report.tasks:
        return ""
    first_task = leaders_first(row["hostname"] for row in report.tasks)[0]
    name = next((failed.about for failed in report.failures), first_task)
    is_wrong = report.state in (FAILED, UNKNOWN) or any(
        kind(row["status"]) == "bad" or row["status"].startswith(RESTARTING) for row in report.tasks
    )
    first = "explain" if is_wrong else "status" if report.decided or serves else "status --watch"
    commands = [first, f"logs {name}", "report"][first == "status" and in_status :]
    return f"More: {', '.join(f'`tfdeploy {command}`' for command in commands)}."
