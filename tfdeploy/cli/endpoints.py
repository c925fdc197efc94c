"""`tfdeploy endpoints`: where tasks are reached."""

from typing import Annotated, Any

import typer

from ..backends.access import no_task
from ..report import table
from . import completing
from .asking import Asked, answer, say
from .finding import one
from .looking import Seen, look

_COLUMNS = ("hostname", "endpoint", "address", "machine", "public_ip")


def endpoints(
    asked: Asked,
    hostname: Annotated[
        str,
        typer.Argument(help="One task, such as worker-0.", show_default=False, autocompletion=completing.hostnames),
    ] = "",
) -> None:
    """Show where each task is reached: by its stable name, at its address, and on which machine.

    The stable name holds among the cluster's tasks; from here, `tfdeploy tunnel` leads there.
    """
    seen = look(one(asked))
    rows = [row for row in _rows(seen) if hostname in ("", row["hostname"])]
    if not rows:
        raise no_task(seen.entry.title, hostname, [row["hostname"] for row in seen.report.tasks])
    if asked.as_json:
        answer(rows)
    else:
        say(table(rows, _COLUMNS))


def _rows(seen: Seen) -> list[dict[str, Any]]:
    return [
        {
            "hostname": row["hostname"],
            "endpoint": f"{row['hostname']}:{row['address'].rpartition(':')[2]}" if row["address"] else "",
            "address": row["address"],
            "machine": row["machine"],
            "public_ip": row["public_ip"],
        }
        for row in seen.report.tasks
    ]
