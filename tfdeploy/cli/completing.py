"""What the shell completes: names from the registry, without a look at any cluster."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import typer

from .. import registry
from ..errors import TfdeployError


def hostnames(ctx: typer.Context, incomplete: str) -> list[str]:
    """The tasks of the clusters that are asked about."""
    given = ctx.params.get("names") or ()
    return [name for name in _tasks(ctx) if name.startswith(incomplete) and name not in given]


def clusters(ctx: typer.Context, incomplete: str) -> list[str]:
    """The clusters of the stack; those of all stacks where none is to be found."""
    return [name for name in dict.fromkeys(_clusters(ctx)) if name.startswith(incomplete)]


def stacks(ctx: typer.Context, incomplete: str) -> list[str]:
    """The stacks in which there are clusters."""
    found = dict.fromkeys(entry.cluster["stack"] for entry in registry.entries())
    return [name for name in found if name.startswith(incomplete)]


def _tasks(ctx: typer.Context) -> Iterator[str]:
    for entry in _entries(ctx, str(ctx.params.get("cluster") or "")):
        yield from (task.hostname for task in entry.outline.tasks)


def _clusters(ctx: typer.Context) -> Iterator[str]:
    return (entry.cluster["name"] for entry in _entries(ctx, "") or registry.entries())


def _entries(ctx: typer.Context, cluster: str) -> list[registry.Entry]:
    from .asking import Asked
    from .finding import several

    with suppress(TfdeployError, OSError):
        return several(Asked(Path(ctx.params.get("cwd") or "."), str(ctx.params.get("stack") or ""), cluster))
    return []
