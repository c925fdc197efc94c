"""`tfdeploy report`: an HTML page about a cluster."""

import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import BackendError
from ...registry import Entry
from ...report.run_history import run_facts
from ..cluster_selection import ClusterQuery, select_cluster
from ..output import print_answer, print_message
from ..parser import Parser, whole_number
from ..snapshot import take_snapshot

if TYPE_CHECKING:
    from ...report.html.document import Content

PAGE_LINES, ALL_PAGE_LINES = 20_000, 200_000
"""How many lines of each task, from the end, are read for the curves, and how many of all tasks."""


def add_arguments(parser: Parser) -> None:
    """Its options and arguments."""
    save = "File to write. Default: CLUSTER.html."
    parser.add_argument("--save", type=Path, default=Path(), metavar="FILE", help=save)
    serve = "Serve a live page on this computer until Ctrl-C."
    parser.add_argument("--serve", action="store_true", dest="live", help=serve)
    port = "Port of --serve. Default: 0, a free one."
    parser.add_argument("--port", type=whole_number(0, 65535), default=0, help=port)


def report(query: ClusterQuery, save: Path = Path(), live: bool = False, port: int = 0) -> None:
    """Write an HTML page about the cluster.

    It has the tables, endpoints, a timeline, curves, the last log lines and what was submitted, and opens without a network.
    """
    from ...report.html.document import page  # imported here: it is a fifth of the start-up time of every command

    entry = select_cluster(query)
    if live:
        _serve(query, entry, port)
        return
    path = save if save.name else Path(f"{entry.cluster['name']}.html")
    write_page(path, page(page_content(entry)), "--save", query.as_json)


def write_page(path: Path, text: str, option: str, as_json: bool) -> None:
    """Write a page to the file of an option, and print its name.

    Raises:
        BackendError: the file cannot be written.
    """
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BackendError(f"cannot write {path}: {error.strerror}. Use another file: {option} FILE.") from None
    print_answer(as_json, {"file": str(path.absolute()), "bytes": len(text.encode())}, str(path))


def page_content(entry: Entry) -> "Content":
    """The content of the page now."""
    from ...report.html.document import Content

    tasks = max(1, len(entry.expected.tasks))
    snapshot = take_snapshot(entry, min(PAGE_LINES, ALL_PAGE_LINES // tasks))
    state = snapshot.run_state
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
        run=run_facts(state, snapshot.observed.view.artifacts) if state else {},
    )


def _serve(query: ClusterQuery, entry: Entry, port: int) -> None:
    from ...report.html.document import page
    from ..report_server import serve

    with serve(port, lambda: page(page_content(select_cluster(query)), live=True)) as url:
        print_answer(query.as_json, {"url": url}, url)
        print_message("Press Ctrl-C to stop.")
        with suppress(KeyboardInterrupt):
            threading.Event().wait()
