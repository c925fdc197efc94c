"""`tfdeploy report`: a page to look at."""

import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import BackendError
from ..registry import Entry
from .asking import Asked, answer, say, tell
from .finding import one
from .looking import look

if TYPE_CHECKING:
    from ..page.content import Content

_LINES = 20_000
"""So many last lines of each task are read for the curves."""


def report(
    asked: Asked,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The file to write; CLUSTER.html by default.", show_default=False)
    ] = Path(),
    live: Annotated[bool, typer.Option("--serve", help="Keep the page live on loopback, until Ctrl-C.")] = False,
    port: Annotated[int, typer.Option(help="The port of --serve; 0 takes a free one.", min=0, max=65535)] = 0,
) -> None:
    """Write one HTML page about the cluster, which needs no network: tables, endpoints, timeline, curves, last lines."""
    from ..page.document import page  # with the pages, a fifth of what every verb would load

    entry = one(asked)
    if live:
        _serve(asked, entry, port)
        return
    target = output if output.name else Path(f"{entry.cluster['name']}.html")
    text = page(content(entry))
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BackendError(f"cannot write {target}: {error.strerror}. Give another file: --output FILE.") from None
    if asked.as_json:
        answer({"file": str(target.absolute()), "bytes": len(text.encode())})
    else:
        say(str(target))


def content(entry: Entry) -> "Content":
    """What the page shows, as it is now."""
    from ..page.content import Content

    seen = look(entry, _LINES)
    return Content(
        name=entry.cluster["name"],
        backend=entry.cluster["backend"],
        project=entry.cluster["project"],
        stack=entry.cluster["stack"],
        report=seen.report,
        events=[{"at": event["at"], "text": event["text"]} for event in seen.events],
        lines=seen.report.timed,
        options=entry.options,
        versions=entry.versions,
    )


def _serve(asked: Asked, entry: Entry, port: int) -> None:
    from .serving import LOOPBACK, serve

    with serve(LOOPBACK, port, lambda: content(one(asked))) as url:
        if asked.as_json:
            answer({"url": url})
        else:
            say(url)
        tell("Ctrl-C ends it.")
        with suppress(KeyboardInterrupt):
            threading.Event().wait()
