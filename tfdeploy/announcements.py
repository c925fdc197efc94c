"""What a preview and an update print about a cluster before its resources are registered."""

from collections.abc import Callable

import pulumi

from .declaration import Declaration, expired_archives, registry_entry
from .plan import retained_data
from .plan.plan import starts_new_run
from .report.live_display import MIN_COLUMNS, WATCH_COMMAND, LiveDisplay

_listeners: list[Callable[[str], None]] = []


def also_warn(listener: Callable[[str], None]) -> None:
    """Call `listener` with each warning of this process: `tfdeploy run` does not show what Pulumi prints."""
    _listeners.append(listener)


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
    progress = _narrow_terminal_lines(declaration)
    details = [*declaration.move.lines, *not_used, *unknown, *plan.placement, *changes, *_forecast(declaration)]
    details += [*notices, *retained, *progress]
    pulumi.log.info("\n".join([f"{plan.summary}{code}", plan.success_rule, *details]))
    _print_warnings(declaration)


def _print_warnings(declaration: Declaration) -> None:
    for text in declaration.warnings:
        pulumi.log.warn(f"{declaration.spec.name}: {text}.")
        for listener in _listeners:
            listener(text)


def print_notices(declaration: Declaration) -> None:
    """What an update without a preview reports too: the forecast, files that are not shipped, what `pulumi destroy` will keep and
    remove, and the warnings, among them that a cluster of the same project, stack and name exists."""
    _print_warnings(declaration)
    notices = declaration.bundle.notices if declaration.bundle else ()
    if lines := (*declaration.move.lines, *_forecast(declaration), *notices, *_retention_lines(declaration)):
        pulumi.log.info("\n".join([f"{declaration.spec.name}:", *lines]))


def _forecast(declaration: Declaration) -> list[str]:
    if not starts_new_run(declaration.plan, declaration.inventory):
        return []
    from .run_forecast import forecast_lines  # takes long to load, and most updates start no new run

    return forecast_lines(registry_entry(declaration), declaration.plan, declaration.inventory)


def _retention_lines(declaration: Declaration) -> tuple[str, ...]:
    """What `pulumi destroy` will keep and remove, and what the update removes of earlier clusters."""
    expired = [f"  {archive}" for archive in expired_archives(declaration)]
    title = ["older than `retention`, removed by this update:"] if expired else []
    return (*retained_data.lines(declaration.rendered.retained), *title, *expired)


def _narrow_terminal_lines(declaration: Declaration) -> list[str]:
    """What a preview prints if the update will wait for a run, and the terminal is too narrow for its progress."""
    run, current = declaration.plan.run, declaration.inventory.run
    is_over = (
        current is not None and current.result is not None and run.id in (current.spec.id, current.spec.content_id)
    )
    if is_over or declaration.spec.wait <= 0 or not 0 < LiveDisplay().columns < MIN_COLUMNS:
        return []
    return [
        f"progress: `{WATCH_COMMAND}`; `up` itself shows it from {MIN_COLUMNS} columns. Ctrl-C detaches: the training continues"
    ]
