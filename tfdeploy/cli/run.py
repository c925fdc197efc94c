"""`tfdeploy run`: a cluster for one command."""

import os
import re
import secrets
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from .. import registry
from ..errors import SpecError
from . import calls
from .asking import answer, limit, tell
from .calls import Call
from .commanding import Share, Wanted, arguments, pairs
from .following import Line
from .foreground import Abandoned, Foreground, Outcome, take_away
from .here import Terminal
from .relay import HERE
from .show import document
from .terminal import prefix, safe

_STACK = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")

_Count = Annotated[int, typer.Option("-w", "--workers", help="How many workers.")]
_Ps = Annotated[int, typer.Option("-s", "--ps", help="How many parameter servers.")]
_GpusW = Annotated[int, typer.Option("-Gw", "--worker-gpus", help="GPUs of each worker.")]
_GpusS = Annotated[int, typer.Option("-Gs", "--ps-gpus", help="GPUs of each parameter server.")]
_CpusW = Annotated[float, typer.Option("-Cw", "--worker-cpus", help="Processors reserved for each worker.")]
_CpusS = Annotated[float, typer.Option("-Cs", "--ps-cpus", help="Processors reserved for each parameter server.")]
_MEMORY = "The most memory of each {}, such as 2GiB; a number alone is megabytes."
_MemoryW = Annotated[str, typer.Option("-Mw", "--worker-memory", help=_MEMORY.format("worker"), show_default=False)]
_MemoryS = Annotated[
    str, typer.Option("-Ms", "--ps-memory", help=_MEMORY.format("parameter server"), show_default=False)
]
_Volumes = Annotated[
    list[str] | None, typer.Option("-V", "--volume", help="SRC:DST[:ro], mounted in each task; may be repeated.")
]
_Env = Annotated[
    list[str] | None, typer.Option("-e", "--env", help="NAME=VALUE in each task's environment; may be repeated.")
]
_Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="NAME=VALUE: any other argument, as `tfdeploy options` lists them; may be repeated."),
]
_On = Annotated[str, typer.Option("--on", help="Where: local, docker or ec2.")]
_Image = Annotated[str, typer.Option(help="The image of every task.", show_default=False)]
_Code = Annotated[
    str, typer.Option(help="The folder that is shipped to every task and is its working directory; '' for none.")
]
_Here = Annotated[bool, typer.Option("--here", help="Worker 0 runs in this terminal; on local.", show_default=False)]
_StackName = Annotated[str, typer.Option("-n", "--name", help="What the call is called.", show_default="run-…")]
_Keep = Annotated[bool, typer.Option("--keep", help="Leave the cluster when the job is over.", show_default=False)]
_Wait = Annotated[
    str,
    typer.Option(
        "--timeout", "--wait", help="How long the job may take, such as 2h; exit code 5 then.", show_default="no limit"
    ),
]
_Remove = Annotated[str, typer.Option(help="Take away the cluster of that name, which was kept.", show_default=False)]
_AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON document; lines go to stderr.", show_default=False)
]
_Verbose = Annotated[bool, typer.Option("-v", "--verbose", help="Show what Pulumi prints.", show_default=False)]
_Command = Annotated[list[str] | None, typer.Argument(metavar="[--] COMMAND...", show_default=False)]


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
    on: _On = "local",
    image: _Image = "",
    code: _Code = ".",
    here: _Here = False,
    name: _StackName = "",
    keep: _Keep = False,
    wait: _Wait = "",
    remove: _Remove = "",
    as_json: _AsJson = False,
    verbose: _Verbose = False,
) -> None:
    """Run one command on a cluster made for it, and take the cluster away: the exit code is the job's.

    The four flags --job_name --task_index --ps_hosts --worker_hosts are put after the command, unless it uses one of the
    placeholders {job_name} {task_index} {ps_hosts} {worker_hosts}. Each line of output begins with its task.
    """
    if remove:
        take_away(calls.known(remove), verbose)
        return
    if not command:
        raise typer.BadParameter("give the command, after --", param_hint="COMMAND")
    wanted = Wanted(
        command=command,
        workers=Share(workers, worker_cpus, worker_memory, worker_gpus),
        ps=Share(ps, ps_cpus, ps_memory, ps_gpus),
        backend=on,
        code=_folder(code),
        image=image,
        user=f"{os.getuid()}:{os.getgid()}",
        env=env or (),
        volumes=volume or (),
        here=here,
        settings=settings or (),
    )
    call = Call(_stack(name), arguments(wanted), pairs("--set", wanted.settings), keep)
    outcome = _run(call, wanted, _Way(limit(wait), keep, verbose or bool(os.environ.get("TFDEPLOY_DEBUG")), as_json))
    raise typer.Exit(outcome.code)


@dataclass(frozen=True)
class _Way:
    """How a call goes about it."""

    seconds: float
    keep: bool
    verbose: bool
    as_json: bool


def _run(call: Call, wanted: Wanted, way: _Way) -> Outcome:
    terminal = Terminal(Path(wanted.code or Path.cwd())) if wanted.here else None
    hidden = HERE if terminal else ""
    outcome = Outcome(1, None)
    try:
        if terminal:
            call = replace(call, args={**call.args, "command": terminal.command(wanted.command)})
        with call.begin():
            outcome = Foreground(call, shower(way.as_json, hidden), way.seconds, way.keep, way.verbose).run()
    except Abandoned as abandoned:
        begun = "; its removal goes on by itself" if abandoned.goes_on else ""
        other = "" if call.keep else ", or `tfdeploy leftovers --delete`,"
        remedy = f"`tfdeploy run --remove {call.stack}`{other} removes what stays"
        tell(f"tfdeploy run: {call.stack} may be left on {wanted.backend}{begun}. {remedy}.")
        outcome = Outcome(abandoned.code, None)
    finally:
        if terminal:
            terminal.close()
    _conclude(call, outcome, way)
    return outcome


def _conclude(call: Call, outcome: Outcome, way: _Way) -> None:
    """The last words: how it went, and where the record is kept."""
    seen = outcome.seen
    kept = registry.kept(call.entry.cluster) if seen and call.entry.ended else None
    place = str(kept) if kept else seen.sight.kept_at if seen else ""
    if way.as_json:
        shown = document(seen) if seen else {}
        answer({"name": call.stack, "exit_code": outcome.code, "record": place, **shown})
    if seen is None:
        return
    reason = f": {seen.report.reason}" if seen.report.reason else ""
    stands = "" if call.entry.ended else f"; it stands: `tfdeploy run --remove {call.stack}` takes it away"
    look = f"`tfdeploy show --cwd {calls.home()} --stack {call.stack}` shows it"
    tell(f"tfdeploy run: {seen.report.state}{reason}; the record is kept in {place}, {look}{stands}")


def shower(as_json: bool, hidden: str) -> Callable[[Line], None]:
    """Prints lines where they belong; those of the task `hidden` are in this terminal already."""

    def show(line: Line) -> None:
        if line.hostname != hidden:
            out = sys.stderr if as_json or line.pipe == "stderr" else sys.stdout
            text = safe(line.text, "NO_COLOR" not in os.environ) if out.isatty() else line.text
            print(prefix(line.hostname) + _printable(text, out.encoding), file=out, flush=True)

    return show


def _printable(text: str, encoding: str) -> str:
    """The text with what this encoding lacks as escapes."""
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _stack(name: str) -> str:
    if name and not _STACK.fullmatch(name):
        raise SpecError("--name", f"{name!r} cannot be a stack's", "It takes at most 40 letters, digits, - and _.")
    return name or f"run-{secrets.token_hex(3)}"


def _folder(code: str) -> str:
    """The folder of code, absolute; none where there is nothing in the one that nobody has named."""
    folder = Path(code).expanduser().absolute()
    return str(folder) if code and (code != "." or any(folder.iterdir())) else ""
