"""What a preview and an update print about a cluster before its resources are registered."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from contextvars import copy_context
from functools import partial

import pulumi

from ..backends.requirements_status import installing
from ..plan import retained_data
from ..report.live_display import MIN_COLUMNS, WATCH_COMMAND, LiveDisplay
from . import shipped_code
from .declaration import Declaration, expired_archives

_POLL_SECONDS = 1.0
_INSTALLATION_SECONDS = 3600.0
"""So long an update reports at most that it installs packages."""
_listeners: list[Callable[[str], None]] = []


def also_warn(listener: Callable[[str], None]) -> None:
    """Call `listener` with each warning of this process: `tfdeploy run` does not show what Pulumi prints."""
    _listeners.append(listener)


def refusal(text: str) -> pulumi.RunError:
    """What ends the program with a sentence. In a terminal no word of it is broken."""
    return pulumi.RunError(LiveDisplay().fitted(text, "error: "))


def print_preview(declaration: Declaration) -> None:
    """The plan, and what it changes in what exists."""
    plan = declaration.plan
    code = f"; code: {declaration.bundle}" if declaration.bundle else ""
    skipped = [f"{name} is gone and is not created again: the run is finished" for name in sorted(plan.unneeded)]
    changes = [f"  {line}" for line in (*skipped, *plan.changes, *declaration.rendered.changes)]
    unused = ", ".join(f"`{group}`" for group in declaration.spec.unused_groups)
    not_used = [f"not used on {declaration.spec.backend}: {unused}"] if unused else []
    retained = _retention_lines(declaration)
    unknown = [f"`{item.what}` is known after the update" for item in declaration.unknown]
    notices = declaration.bundle.notices if declaration.bundle else ()
    progress = _progress_lines(declaration)
    files = shipped_code.changed_files(declaration.cluster, declaration.bundle, declaration.inventory.run)
    changes += [f"  code: {files}"] if files else []
    details = [*declaration.move.lines, *not_used, *unknown, *plan.placement, *changes]
    details += [*notices, *retained, *progress]
    _print_lines([f"{plan.summary}{code}", plan.success_rule, *details])
    _print_warnings(declaration)


def _print_warnings(declaration: Declaration) -> None:
    for text in declaration.warnings:
        pulumi.log.warn(LiveDisplay().fitted(f"{declaration.spec.name}: {text}.", "warning: "))
        for listener in _listeners:
            listener(text)


def print_notices(declaration: Declaration) -> None:
    """What an update without a preview reports too: files that are not shipped, what `pulumi destroy` will keep and
    remove, and the warnings, among them that a cluster of the same project, stack and name exists."""
    _print_warnings(declaration)
    notices = declaration.bundle.notices if declaration.bundle else ()
    if lines := (*declaration.move.lines, *notices, *_retention_lines(declaration)):
        _print_lines([f"{declaration.spec.name}:", *lines])


def _print_lines(lines: Iterable[str]) -> None:
    """Print lines as one message. In a terminal no word of them is broken."""
    pulumi.log.info(LiveDisplay().fitted("\n".join(lines)))


def report_installation(declaration: Declaration, component: pulumi.Resource) -> threading.Event:
    """Print which packages the update installs, and show in the row of the component for how long, until the event is set. Pulumi
    installs them in another process."""
    submitted = threading.Event()
    if declaration.spec.requirements:
        log = partial(asyncio.get_event_loop().call_soon_threadsafe, context=copy_context())
        threading.Thread(
            target=_report_installation, args=(declaration, component, log, submitted), daemon=True
        ).start()
    return submitted


def _report_installation(
    declaration: Declaration, component: pulumi.Resource, log: Callable[..., object], submitted: threading.Event
) -> None:
    deadline, is_printed = time.monotonic() + _INSTALLATION_SECONDS, False
    with suppress(RuntimeError):  # the event loop is closed: the update has failed
        while not submitted.wait(_POLL_SECONDS) and time.monotonic() < deadline:
            text = installing(declaration.cluster, time.time())
            if text and not is_printed:
                is_printed = True
                packages = text.rpartition(", ")[0]
                log(partial(pulumi.log.info, f"{declaration.spec.name}: {packages}. The tasks start after that."))
            if text and LiveDisplay().columns >= MIN_COLUMNS:
                log(partial(pulumi.log.info, text, component, ephemeral=True))


def _retention_lines(declaration: Declaration) -> tuple[str, ...]:
    """What `pulumi destroy` will keep and remove, and what the update removes of earlier clusters."""
    expired = [f"  {archive}" for archive in expired_archives(declaration)]
    title = ["older than `retention`, removed by this update:"] if expired else []
    return (*retained_data.lines(declaration.rendered.retained), *title, *expired)


def _progress_lines(declaration: Declaration) -> list[str]:
    """What a preview prints in a terminal if the update will wait for a run: how to leave it, and where its progress is if the terminal
    is too narrow for it."""
    run, current = declaration.plan.run, declaration.inventory.run
    is_over = (
        current is not None and current.result is not None and run.id in (current.spec.id, current.spec.content_id)
    )
    columns = LiveDisplay().columns
    if is_over or declaration.spec.wait <= 0 or not columns:
        return []
    detach = "Ctrl-C detaches: the training continues"
    if columns >= MIN_COLUMNS:
        return [detach]
    return [f"progress: `{WATCH_COMMAND}`; `up` itself shows it from {MIN_COLUMNS} columns. {detach}"]
