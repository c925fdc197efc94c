"""`tfdeploy report`: an HTML page about a cluster."""

import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...errors import BackendError
from ...registry import Entry
from ..common import print_json, print_message, print_result
from ..select import ClusterQuery, select_cluster
from ..snapshot import take_snapshot

if TYPE_CHECKING:
    from ...report.html.content import Content

_LINES, _ALL_LINES = 20_000, 200_000
"""How many lines of each task, from the end, are read for the curves, and how many of all tasks."""


def report(
    query: ClusterQuery,
    save: Annotated[Path, typer.Option(help="File to write. Default: CLUSTER.html.", show_default=False)] = Path(),
    live: Annotated[bool, typer.Option("--serve", help="Serve a live page on this computer until Ctrl-C.")] = False,
    port: Annotated[int, typer.Option(help="Port of --serve; 0 chooses a free one.", min=0, max=65535)] = 0,
) -> None:
    """Write an HTML page about the cluster.

    It has the tables, endpoints, a timeline, curves and the last log lines, and opens without a network.
    """
    from ...report.html.document import page  # imported here: it is a fifth of the start-up time of every command

    entry = select_cluster(query)
    if live:
        _serve(query, entry, port)
        return
    path = save if save.name else Path(f"{entry.cluster['name']}.html")
    text = page(page_content(entry))
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BackendError(f"cannot write {path}: {error.strerror}. Use another file: --save FILE.") from None
    if query.as_json:
        print_json({"file": str(path.absolute()), "bytes": len(text.encode())})
    else:
        print_result(str(path))


def page_content(entry: Entry) -> "Content":
    """The content of the page now."""
    from ...report.html.content import Content

    tasks = max(1, len(entry.expected.tasks))
    snapshot = take_snapshot(entry, min(_LINES, _ALL_LINES // tasks))
    return Content(
        name=entry.cluster["name"],
        backend=entry.cluster["backend"],
        project=entry.cluster["project"],
        stack=entry.cluster["stack"],
        report=snapshot.report,
        events=snapshot.events,
        lines=snapshot.report.timed,
        options=entry.options,
        versions=entry.versions,
    )


def _serve(query: ClusterQuery, entry: Entry, port: int) -> None:
    from ..report_server import LOOPBACK, serve

    with serve(LOOPBACK, port, lambda: page_content(select_cluster(query))) as url:
        if query.as_json:
            print_json({"url": url})
        else:
            print_result(url)
        print_message("Press Ctrl-C to stop.")
        with suppress(KeyboardInterrupt):
            threading.Event().wait()
