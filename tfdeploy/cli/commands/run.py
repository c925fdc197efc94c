"""`tfdeploy run`: run one command on a new cluster."""

import os
import re
import secrets
import sys
from argparse import REMAINDER, Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ... import registry
from ...agent.record.terminal_text import safe
from ...errors import BundleError, EmptyBundle, SpecError, UsageError
from ...report.remedies import in_words_of_run
from ...spec.backends import DEFAULT_BACKEND
from ..command_table import FAILED
from ..output import parse_timeout, prefix, print_json, print_message
from ..parser import Parser, whole_number, without_separator
from ..run.cluster_arguments import arguments, settings
from ..run.session import Abandoned, Outcome, Session, remove_cluster
from ..run.stack import Call, home, stored_call
from ..run.terminal import Terminal
from ..run.terminal_relay import HERE
from ..snapshot import LogLine, Snapshot
from .status import to_dict

_STACK = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")


def add_arguments(parser: Parser, other_names: Mapping[str, Sequence[str]] = MappingProxyType({})) -> None:
    """Its options and arguments; `other_names` has more names of options."""

    def option(name: str, text: str, **settings: Any) -> None:
        parser.add_argument(name, *other_names.get(name, ()), help=text, **settings)

    option("--workers", "Number of workers. Default: 1.", type=whole_number(), default=1)
    option("--ps", "Number of parameter servers. Default: 0.", type=whole_number(), default=0)
    for job, task in (("worker", "worker"), ("ps", "parameter server")):
        option(f"--{job}-gpus", f"GPUs per {task}. Default: 0.", type=whole_number(), default=0)
        option(f"--{job}-cpus", f"CPUs reserved per {task}. Default: 0.", type=float, default=0.0)
        memory = f"Memory limit per {task}, such as 2GiB. A number without a unit is in megabytes."
        option(f"--{job}-memory", memory, default="", metavar="SIZE")
    option("--volume", "Mount SRC:DST[:ro] in each task. Can be repeated.", action="append", default=[])
    environment = "Environment variable NAME=VALUE of each task. Can be repeated."
    parser.add_argument("--env", "-e", action="append", default=[], help=environment)
    settings = "Any other argument as NAME=VALUE; see `tfdeploy options`. Can be repeated."
    option("--set", settings, action="append", default=[], dest="settings")
    option("--on", f"Backend: local, docker, ec2 or kubernetes. Default: {DEFAULT_BACKEND}.", default=DEFAULT_BACKEND)
    option("--image", "Image of all tasks.", default="")
    code = "Folder that is copied to each task as its working directory; '' for none. Default: the current folder."
    option("--code", code, default=".", metavar="FOLDER")
    option("--here", "Run worker 0 in this terminal (only --on local).", action="store_true", dest="in_terminal")
    option("--name", "Name of this run's stack. Default: run-…", default="")
    option("--keep", "Keep the cluster after the run.", action="store_true")
    wait = "Time limit of the run, such as 2h; then exit with 5. Default: no limit."
    parser.add_argument("--timeout", "--wait", default="", dest="wait", metavar="DURATION", help=wait)
    option("--remove", "Remove the cluster of an earlier run, by name.", default="", metavar="NAME")
    option("--json", "Print JSON at the end; log lines go to stderr.", action="store_true", dest="as_json")
    option("--verbose", "Show the output of Pulumi.", action="store_true")
    parser.add_argument("command", nargs=REMAINDER, metavar="COMMAND", help="The command of each task.")


def run(options: Namespace) -> None:
    """Run a command on a new cluster, and remove it.

    With --ps, the flags --job_name --task_index --ps_hosts --worker_hosts are appended to the command, unless it has placeholders
    such as {job_name}. The exit code is 0 for success, else that of the task that failed first.
    """
    if options.remove:
        remove_cluster(stored_call(options.remove), options.verbose)
        return
    options.command, options.code = _command(options.command), _folder(options.code)
    args = arguments(options, f"{os.getuid()}:{os.getgid()}")
    call = Call(_stack_name(options.name), args, settings(options.settings), options.keep)
    sys.exit(_run(call, options, parse_timeout(options.wait)).code)


def _command(words: Sequence[str]) -> Sequence[str]:
    command = without_separator(words)
    if not command:
        raise UsageError("COMMAND: write it after --. `tfdeploy run --help` lists the options.")
    return command


def _run(call: Call, options: Namespace, seconds: float) -> Outcome:
    terminal = Terminal(Path(options.code or Path.cwd())) if options.in_terminal else None
    is_verbose = options.verbose or bool(os.environ.get("TFDEPLOY_DEBUG"))
    outcome = Outcome(FAILED, None)
    try:
        if terminal:
            call = replace(call, args={**call.args, "command": terminal.command(options.command)})
        print_line = line_printer(options.as_json, HERE if terminal else "")
        with call.begin():
            outcome = Session(call, print_line, seconds, is_verbose).run()
    except Abandoned as abandoned:
        print_message(_abandoned_message(call, options.on, abandoned))
        outcome = Outcome(abandoned.code, None)
    finally:
        if terminal:
            terminal.close()
    _print_outcome(call, outcome, options.as_json)
    return outcome


def _abandoned_message(call: Call, backend: str, abandoned: Abandoned) -> str:
    removal = "; its removal continues in the background" if abandoned.removing else ""
    leftovers = "" if call.keep else " or `tfdeploy ls --leftovers --delete`"
    remedy = f"Use `tfdeploy run --remove {call.stack}`{leftovers} to remove the rest."
    return f"tfdeploy run: {call.stack} may still exist on {backend}{removal}. {remedy}"


def _print_outcome(call: Call, outcome: Outcome, as_json: bool) -> None:
    """Print the result, and where the record is stored."""
    snapshot = outcome.snapshot
    stored = registry.latest_record(call.entry) if snapshot and call.entry.ended else None
    record = str(stored) if stored else snapshot.observed.record_folder if snapshot else ""
    if as_json:
        outputs = to_dict(snapshot) if snapshot else {}
        print_json({"name": call.stack, "exit_code": outcome.code, "record": record, **outputs})
    if snapshot is None:
        return
    reason = f": {snapshot.report.reason}" if snapshot.report.reason else ""
    lines = [
        f"tfdeploy run: {snapshot.report.state}{reason}",
        *_remedies(snapshot),
        f"Record: {record}",
        f"Show it: tfdeploy status --cwd {home()} --stack {call.stack}",
    ]
    if not call.entry.ended:
        lines.append(f"The cluster still exists. Remove it: tfdeploy run --remove {call.stack}")
    print_message("\n".join(lines))


def _remedies(snapshot: Snapshot) -> list[str]:
    """What to do about the tasks that failed: their lines were printed before. Tasks that failed alike have one line."""
    names: dict[str, list[str]] = {}
    for failure in snapshot.report.failures:
        remedy = in_words_of_run(failure.remedy).replace(failure.about, "TASK")
        names.setdefault(remedy, []).append(failure.about)
    return [f"{', '.join(hostnames)}: {remedy.replace('TASK', hostnames[0])}" for remedy, hostnames in names.items()]


def line_printer(as_json: bool, hidden: str) -> Callable[[LogLine], None]:
    """Print a log line to stdout or stderr; not those of the task `hidden`, which runs in this terminal."""

    def print_line(line: LogLine) -> None:
        if line.hostname != hidden:
            out = sys.stderr if as_json or line.pipe == "stderr" else sys.stdout
            text = safe(line.text, "NO_COLOR" not in os.environ) if out.isatty() else line.text
            print(prefix(line.hostname) + text, file=out, flush=True)

    return print_line


def _stack_name(name: str) -> str:
    if name and not _STACK.fullmatch(name):
        raise SpecError(
            "--name", f"{name!r} is not a valid name of a stack", "Use at most 40 letters, digits, - and _."
        )
    return name or f"run-{secrets.token_hex(3)}"


def _folder(code: str) -> str:
    """The absolute path of the code folder; empty for none. The default, the current folder, is not used if it has nothing to ship.

    Raises:
        SpecError: the folder cannot be shipped.
    """
    from ...plan.code_bundle import collect  # takes long to load

    folder = Path(code).expanduser().absolute()
    if not code:
        return ""
    try:
        collect("tfdeploy run", folder)
    except EmptyBundle as error:
        if code == ".":
            return ""
        raise SpecError("--code", error.wrong, error.remedy) from None
    except BundleError as error:
        raise SpecError("--code", error.wrong, f"{error.remedy} `--code ''` ships nothing.") from None
    return str(folder)
