"""`tfdeploy wait`: wait for the end of the run."""

import sys
import time

from ...agent.model.run_state import SUCCEEDED
from ..cluster_selection import ClusterQuery, select_cluster
from ..command_table import FAILED, TIMED_OUT
from ..output import parse_timeout, print_json, print_message
from ..parser import Parser
from ..snapshot import snapshots
from .status import to_dict

_POLL_SECONDS = 0.5


def add_arguments(parser: Parser) -> None:
    """Its options and arguments."""
    text = "Time limit, such as 10m. Default: no limit."
    parser.add_argument("--timeout", default="", metavar="DURATION", help=text)


def wait(query: ClusterQuery, timeout: str = "") -> None:
    """Wait for the end of the run.

    The exit code is 0 if the run succeeded, 1 if it did not, 3 if the cluster no longer exists, and 5 if the run has not ended within
    the time limit.
    """
    deadline = time.monotonic() + parse_timeout(timeout)
    entry = select_cluster(query)
    for snapshot in snapshots(entry, lambda: time.sleep(_POLL_SECONDS)):
        if snapshot.is_finished or time.monotonic() >= deadline:
            break
    if query.as_json:
        print_json(to_dict(snapshot))
    report = snapshot.report
    print_message(f"{entry.title}: {report.state}" + (f": {report.reason}" if report.reason else ""))
    if not report.decided and not snapshot.entry.ended:
        sys.exit(TIMED_OUT)
    if report.state != SUCCEEDED:
        sys.exit(FAILED)
