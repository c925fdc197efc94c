"""`tfdeploy cp`: copy files from a task, or from what is stored of a run."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from ...agent.record.terminal_text import shown_text
from ...errors import SpecError
from ...units import counted, text_of_size
from ..cluster_selection import ClusterQuery
from ..command_table import FAILED
from ..copy.destination import STDOUT, find_destination, refuse_in_source
from ..copy.source import OpenSource, open_source, parse_source
from ..copy.transfer import CopyResult, copy, copy_to_stdout
from ..output import print_json, print_message, print_result
from ..parser import Parser

_MAX_NAMES = 20
"""How many files that were not copied are named; JSON has all of them."""


def add_arguments(parser: Parser) -> None:
    """Its options and arguments."""
    text = "File or folder of a task, or of a run's stored artifacts."
    parser.add_argument("source", metavar="TASK:PATH|run:RUN/PATH", help=text)
    parser.add_argument("dest", metavar="DEST", help="Folder to copy into, or the new name; `-` for stdout.")


def cp(query: ClusterQuery, source: str, dest: str) -> None:
    """Copy files from a task, or from a stored run.

    In a task, PATH begins in the working directory of its program, in its train_dir (`worker-0:train_dir/…`), or at /. Of a run, its
    artifacts are stored: RUN is its id, or the beginning of it, and `run:RUN/` is all of them, also after `pulumi destroy`.

    Folders are copied with all that is in them. DEST is as for `cp`: an existing folder gets the copy under its own name, and existing
    files are replaced. A file that changes meanwhile is named, and the exit code is 1; one that grows is named, and copied up to the
    size that it had. Links to files in the folder are followed; others are named and left out.
    """
    path = parse_source(source)
    if dest == STDOUT and query.as_json:
        raise SpecError("--json", "the file is written to stdout", "Leave it out.")
    with open_source(query, path) as opened, _progress_bar(opened.arrival.begin.size) as report:
        if dest == STDOUT:
            _refuse_folder(opened, source)
            result, target = copy_to_stdout(opened.arrival, opened.name, report), STDOUT
        else:
            destination = find_destination(dest, opened.name, opened.is_folder)
            if opened.is_here:
                refuse_in_source(destination, opened.root)
            result, target = copy(opened.arrival, opened.name, destination, report), str(destination)
    if query.as_json:
        print_json({"destination": target, **vars(result)})
    else:
        _print(result, target)
    if result.failed or result.changed:
        sys.exit(FAILED)


def _refuse_folder(opened: OpenSource, source: str) -> None:
    if opened.is_folder:
        raise SpecError("DEST", f"{source} is a folder, and stdout takes a single file", "Use a folder as DEST.")


def _print(result: CopyResult, target: str) -> None:
    _print_names(dict.fromkeys(result.grown, "it has grown meanwhile; copied up to the size that it had"))
    _print_names(dict.fromkeys(result.changed, "it has changed while it was copied; copy it again"))
    _print_names({name: f"skipped, {reason}" for name, reason in result.skipped.items()})
    _print_names({name: f"not copied, {reason}" for name, reason in result.failed.items()})
    if target != STDOUT and (result.files or not result.failed):
        print_result(f"{target}: {counted(result.files, 'file')}, {text_of_size(result.bytes)}")


def _print_names(reasons: Mapping[str, str]) -> None:
    for name, reason in list(reasons.items())[:_MAX_NAMES]:
        print_message(f"{shown_text(name)}: {shown_text(reason)}.")
    if len(reasons) > _MAX_NAMES:
        print_message(f"… and {len(reasons) - _MAX_NAMES} more.")


@contextmanager
def _progress_bar(total: int) -> Iterator[Callable[[int], None]]:
    """A function that shows how many of so many bytes are copied: on stderr, if that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

    columns = (BarColumn(), DownloadColumn(binary_units=True), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=total)
        yield lambda completed: progress.update(task, completed=completed)
