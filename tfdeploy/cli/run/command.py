"""`tfdeploy run`: run one command on a new cluster."""

import os
import re
import secrets
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from ... import registry
from ...agent.record.terminal_text import safe
from ...errors import BundleError, EmptyBundle, SpecError, UsageError
from ...report.remedies import in_words_of_run
from ...spec.backends import DEFAULT_BACKEND
from ..commands.status import to_dict
from ..common import parse_timeout, print_json, print_message
from ..exit_codes import FAILED
from ..option import Argument, Option
from ..output import prefix
from ..snapshot import LogLine, Snapshot
from .arguments import RunRequest, Share, arguments, configuration
from .session import Abandoned, Outcome, Session, remove_cluster
from .stack import Call, home, stored_call
from .terminal import Terminal
from .terminal_relay import HERE

_STACK = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")

_Count = Annotated[int, Option("--workers", help="Number of workers.")]
_Ps = Annotated[int, Option("--ps", help="Number of parameter servers.")]
_GpusW = Annotated[int, Option("--worker-gpus", help="GPUs per worker.")]
_GpusS = Annotated[int, Option("--ps-gpus", help="GPUs per parameter server.")]
_CpusW = Annotated[float, Option("--worker-cpus", help="CPUs reserved per worker.")]
_CpusS = Annotated[float, Option("--ps-cpus", help="CPUs reserved per parameter server.")]
_MEMORY = "Memory limit per {}, such as 2GiB. A number without a unit is in megabytes."
_MemoryW = Annotated[str, Option("--worker-memory", help=_MEMORY.format("worker"), show_default=False)]
_MemoryS = Annotated[str, Option("--ps-memory", help=_MEMORY.format("parameter server"), show_default=False)]
_Volumes = Annotated[list[str] | None, Option("--volume", help="Mount SRC:DST[:ro] in each task. Can be repeated.")]
_Env = Annotated[
    list[str] | None, Option("-e", "--env", help="Environment variable NAME=VALUE of each task. Can be repeated.")
]
_Settings = Annotated[
    list[str] | None,
    Option("--set", help="Any other argument as NAME=VALUE; see `tfdeploy options`. Can be repeated."),
]
_On = Annotated[str, Option("--on", help="Backend: local, docker, ec2 or kubernetes.")]
_Image = Annotated[str, Option(help="Image of all tasks.", show_default=False)]
_Code = Annotated[str, Option(help="Folder that is copied to each task as its working directory; '' for none.")]
_Here = Annotated[bool, Option("--here", help="Run worker 0 in this terminal (only --on local).", show_default=False)]
_StackName = Annotated[str, Option("--name", help="Name of this run's stack.", show_default="run-…")]
_Keep = Annotated[bool, Option("--keep", help="Keep the cluster after the run.", show_default=False)]
_Wait = Annotated[
    str,
    Option("--timeout", "--wait", help="Time limit of the run, such as 2h; then exit with 5.", show_default="no limit"),
]
_Remove = Annotated[str, Option(help="Remove the cluster of an earlier run, by name.", show_default=False)]
_AsJson = Annotated[bool, Option("--json", help="Print JSON at the end; log lines go to stderr.", show_default=False)]
_Verbose = Annotated[bool, Option("--verbose", help="Show the output of Pulumi.", show_default=False)]
_Command = Annotated[list[str] | None, Argument(metavar="[--] COMMAND...", show_default=False)]


def run(
    command: _Command = None,
    workers: _Count = 1,
    ps: _Ps = 0,
    worker_gpus: _GpusW = 0,
    ps_gpus: _GpusS = 0,
    worker_cpus: _CpusW = 0.0,
    ps_cpus: _CpusS = 0.0,
    worker_memory: _MemoryW = "",
    ps_memory: _MemoryS = "",
    volume: _Volumes = None,
    env: _Env = None,
    settings: _Settings = None,
    on: _On = DEFAULT_BACKEND,
    image: _Image = "",
    code: _Code = ".",
    in_terminal: _Here = False,
    name: _StackName = "",
    keep: _Keep = False,
    wait: _Wait = "",
    remove: _Remove = "",
    as_json: _AsJson = False,
    verbose: _Verbose = False,
) -> None:
    """Run a command on a new cluster, and remove it.

    With --ps, the flags --job_name --task_index --ps_hosts --worker_hosts are appended to the command, unless it has placeholders
    such as {job_name}. The exit code is 0 for success, else that of the task that failed first.
    """
    if remove:
        remove_cluster(stored_call(remove), verbose)
        return
    if not command:
        raise UsageError("COMMAND: write it after --. `tfdeploy run --help` lists the options.")
    request = RunRequest(
        command=command,
        workers=Share(workers, worker_cpus, worker_memory, worker_gpus),
        ps=Share(ps, ps_cpus, ps_memory, ps_gpus),
        backend=on,
        code=_folder(code),
        image=image,
        user=f"{os.getuid()}:{os.getgid()}",
        env=env or (),
        volumes=volume or (),
        in_terminal=in_terminal,
        settings=settings or (),
    )
    call = Call(_stack_name(name), arguments(request), configuration(request.settings), keep)
    is_verbose = verbose or bool(os.environ.get("TFDEPLOY_DEBUG"))
    sys.exit(_run(call, request, parse_timeout(wait), is_verbose, as_json).code)


def _run(call: Call, request: RunRequest, seconds: float, is_verbose: bool, as_json: bool) -> Outcome:
    terminal = Terminal(Path(request.code or Path.cwd())) if request.in_terminal else None
    outcome = Outcome(FAILED, None)
    try:
        if terminal:
            call = replace(call, args={**call.args, "command": terminal.command(request.command)})
        print_line = line_printer(as_json, HERE if terminal else "")
        with call.begin():
            outcome = Session(call, print_line, seconds, is_verbose).run()
    except Abandoned as abandoned:
        print_message(_abandoned_message(call, request.backend, abandoned))
        outcome = Outcome(abandoned.code, None)
    finally:
        if terminal:
            terminal.close()
    _print_outcome(call, outcome, as_json)
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
        remedy = in_words_of_run(failure.remedy).replace(failure.hostname, "TASK")
        names.setdefault(remedy, []).append(failure.hostname)
    return [f"{', '.join(hostnames)}: {remedy.replace('TASK', hostnames[0])}" for remedy, hostnames in names.items()]


def line_printer(as_json: bool, hidden: str) -> Callable[[LogLine], None]:
    """Print a log line to stdout or stderr; not those of the task `hidden`, which runs in this terminal."""

    def print_line(line: LogLine) -> None:
        if line.hostname != hidden:
            out = sys.stderr if as_json or line.pipe == "stderr" else sys.stdout
            text = safe(line.text, "NO_COLOR" not in os.environ) if out.isatty() else line.text
            # With escapes for characters that the encoding lacks.
            text = text.encode(out.encoding, "backslashreplace").decode(out.encoding)
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
