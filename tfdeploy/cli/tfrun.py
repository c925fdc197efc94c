"""The command `tfrun`: `tfdeploy run` with the options of TFMesos' `tfrun`. Its letters mean other things in `tfdeploy`."""

import inspect
from collections.abc import Callable
from functools import partial, wraps
from typing import Annotated, Any, get_args

import typer

from .main import exit_with
from .option import Option
from .run.command import run
from .typer_app import call, with_typer

OPTIONS = {
    "workers": ("-w", "--nworker"),
    "ps": ("-s", "--nserver"),
    "worker_gpus": ("-Gw",),
    "ps_gpus": ("-Gs", "--server-gpus"),
    "worker_cpus": ("-Cw",),
    "ps_cpus": ("-Cs", "--server-cpus"),
    "worker_memory": ("-Mw", "--worker-mem"),
    "ps_memory": ("-Ms", "--server-mem"),
    "volume": ("-V",),
    "name": ("-n",),
    "verbose": ("-v",),
}
"""Parameter of `run` to TFMesos' names for it: https://github.com/douban/tfmesos/blob/master/script/tfrun."""


def _with_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with TFMesos' names beside its own."""

    @wraps(command)
    def tfrun(*args: Any, **options: Any) -> None:
        command(*args, **options)

    parameters = inspect.signature(command).parameters.values()
    signature = inspect.Signature([_with_names(parameter) for parameter in parameters])
    tfrun.__signature__ = signature  # type: ignore[attr-defined]
    return tfrun


def _with_names(parameter: inspect.Parameter) -> inspect.Parameter:
    names = OPTIONS.get(parameter.name)
    if names is None:
        return parameter
    kind, option = get_args(parameter.annotation)
    return parameter.replace(annotation=Annotated[kind, Option(*option.names, *names, **option.settings)])


app = typer.Typer(
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"], "allow_interspersed_args": False},
)
app.command("tfrun")(with_typer(_with_options(run)))


def main() -> None:
    """Run the command. An error becomes a message and an exit code."""
    exit_with(partial(call, app, "tfrun"), "tfrun")
