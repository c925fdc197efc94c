"""How results, messages, tables and log lines are written: to a terminal with colours and in its width, to a pipe or file unchanged, or
as JSON; and how the user is asked."""

import datetime
import json
import os
import select
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO

from ..agent.record.terminal_text import RESET, safe
from ..errors import BackendError, SpecError, UsageError
from ..units import DURATION_FORM, seconds, wrapped
from .command_table import FAILED

if TYPE_CHECKING:
    from .snapshot import LogLine

_COLOURS = (36, 33, 32, 35, 34, 96, 93, 92, 95, 94)

Writer = Callable[[Iterable["LogLine"]], None]


def print_result(text: str = "") -> None:
    """Print what the user asked for, on stdout."""
    print(_safe_for(sys.stdout, text), flush=True)


def print_styled(text: str) -> None:
    """Print a result that has our own colours, on stdout."""
    print("\n".join(map(safe, text.split("\n"))) if sys.stdout.isatty() else text, flush=True)


def has_colours() -> bool:
    """Whether results have colours: in a terminal, unless NO_COLOR is set."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def print_message(text: str) -> None:
    """Print progress, a question or an error, on stderr."""
    print(_fitted(sys.stderr, _safe_for(sys.stderr, text)), file=sys.stderr, flush=True)


def print_prose(text: str) -> None:
    """Print sentences that the user asked for, on stdout. In a terminal no word of them is broken."""
    print(_fitted(sys.stdout, _safe_for(sys.stdout, text)), flush=True)


def _fitted(out: TextIO, text: str) -> str:
    return "\n".join(wrapped(text, columns(out)))


def columns(out: TextIO) -> int:
    """The width of the terminal that `out` is; 0 if it is none."""
    if not out.isatty():
        return 0
    import shutil  # takes long to load

    return shutil.get_terminal_size().columns


def print_json(document: Any) -> None:
    """Print a result as JSON."""
    print_result(json.dumps(document, indent=2, default=str))


def print_answer(as_json: bool, document: Any, sentences: str) -> None:
    """Print what a command has done or found: as JSON, or in sentences."""
    if as_json:
        print_json(document)
    else:
        print_prose(sentences)


def _safe_for(out: TextIO, text: str) -> str:
    """The text without escape sequences if it is for a terminal: it may contain what programs and engines printed."""
    return "\n".join(safe(line, False) for line in text.split("\n")) if out.isatty() else text


def screen_width(wide: bool = False) -> int:
    """The terminal's width in columns; 0 for no limit: without a terminal, or if the user wants all columns."""
    return 0 if wide else columns(sys.stdout)


def print_table(rows: Sequence[Mapping[str, str]], columns: Sequence[str], wide: bool) -> None:
    """Print a table in the width of the terminal, or with all columns in full."""
    from ..report.tables import text_table  # takes long to load

    print_styled(text_table(rows, columns, screen_width(wide), has_colours()))


def parse_timeout(text: str) -> float:
    """The duration in seconds; infinity if the option is not used."""
    if not text:
        return float("inf")
    try:
        return seconds(text)
    except ValueError:
        raise UsageError(f"{text!r} is not a valid duration. Use {DURATION_FORM}.") from None


def ask_to_confirm(yes: bool, question: str) -> None:
    """Return if the user confirms, by `--yes` or at the terminal; otherwise exit.

    Raises:
        SpecError: there is no terminal to ask on.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise SpecError("--yes", "cannot ask without a terminal", "Use --yes to continue.")
    print(f"{question} [y/N]: ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        print_message("Aborted.")
        sys.exit(FAILED)


def prefix(hostname: str, at: float = 0.0) -> str:
    """The prefix of a task's lines: `worker-0 | `, with the time before it if it is given: `2026-11-21T04:12:07.123Z worker-0 | `."""
    return f"{timestamp(at)} {hostname} | " if at else f"{hostname} | "


def timestamp(at: float) -> str:
    """A time as `docker logs --timestamps` prints it, in milliseconds."""
    moment = datetime.datetime.fromtimestamp(at, datetime.UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03}Z"


@contextmanager
def line_writer(
    as_json: bool, follow: bool, save: Path | None, hostnames: Sequence[str], timestamps: bool = False
) -> Iterator[Writer]:
    """The function that writes log lines of these tasks, according to the options."""
    if save is not None:
        with _open(save) as file:
            yield _bytes_writer(file, len(hostnames) != 1, timestamps)
    elif as_json:
        yield _write_json_lines if follow else _write_json_list
    elif sys.stdout.isatty():
        yield _terminal_writer(hostnames, timestamps)
    else:
        yield _bytes_writer(sys.stdout.buffer, True, timestamps)


def _open(path: Path) -> BinaryIO:
    try:
        return path.expanduser().open("wb")
    except (OSError, RuntimeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise BackendError(f"cannot write {path}: {reason}. Use another file: --save FILE.") from None


def _bytes_writer(file: BinaryIO, prefixed: bool, timestamps: bool) -> Writer:
    def begin(line: "LogLine") -> str:
        if prefixed:
            return prefix(line.hostname, line.at if timestamps else 0.0)
        return f"{timestamp(line.at)} " if timestamps else ""

    def write(lines: Iterable["LogLine"]) -> None:
        file.writelines(begin(line).encode() + line.content + b"\n" for line in lines)
        file.flush()

    return write


def _terminal_writer(hostnames: Sequence[str], timestamps: bool) -> Writer:
    colours = {hostname: index for index, hostname in enumerate(hostnames)}
    has_colours = "NO_COLOR" not in os.environ

    def write(lines: Iterable["LogLine"]) -> None:
        for line in lines:
            text = prefix(line.hostname, line.at if timestamps else 0.0)
            if has_colours:
                index = colours.setdefault(line.hostname, len(colours))
                text = f"\x1b[{_COLOURS[index % len(_COLOURS)]}m{text}{RESET}"
            print(text + safe(line.text, has_colours))
        sys.stdout.flush()

    return write


def _write_json_lines(lines: Iterable["LogLine"]) -> None:
    for line in lines:
        print(json.dumps(_to_dict(line)))
    sys.stdout.flush()


def _write_json_list(lines: Iterable["LogLine"]) -> None:
    separator = "[\n"
    for line in lines:
        sys.stdout.write(separator + json.dumps(_to_dict(line)))
        separator = ",\n"
    print("[]" if separator == "[\n" else "\n]", flush=True)


def _to_dict(line: "LogLine") -> dict[str, object]:
    text = line.content.decode("utf-8", "replace")
    return {"at": line.at, "task": line.hostname, "stream": line.pipe, "attempt": line.attempt, "text": text}


def sleep_while_read(duration: float) -> None:
    """Sleep, but return at once if stdout is closed.

    Raises:
        BrokenPipeError: stdout is closed.
    """
    poll = select.poll()
    poll.register(sys.stdout, 0)
    if any(event & select.POLLERR for _, event in poll.poll(duration * 1000)):
        raise BrokenPipeError
