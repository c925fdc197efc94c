"""The command `tfrun`: `tfdeploy run` with the options of TFMesos' `tfrun`. Its letters mean other things in `tfdeploy`."""

from collections.abc import Sequence

from .commands.run import add_arguments, run
from .main import exit_with
from .parser import Parser

OPTIONS = {
    "--workers": ("-w", "--nworker"),
    "--ps": ("-s", "--nserver"),
    "--worker-gpus": ("-Gw",),
    "--ps-gpus": ("-Gs", "--server-gpus"),
    "--worker-cpus": ("-Cw",),
    "--ps-cpus": ("-Cs", "--server-cpus"),
    "--worker-memory": ("-Mw", "--worker-mem"),
    "--ps-memory": ("-Ms", "--server-mem"),
    "--volume": ("-V",),
    "--name": ("-n",),
    "--verbose": ("-v",),
}
"""Option of `run` to TFMesos' names for it: https://github.com/douban/tfmesos/blob/master/script/tfrun."""


def call(words: Sequence[str]) -> None:
    """Run a command on a new cluster."""
    parser = Parser("tfrun", run.__doc__ or "", "[--] COMMAND...")
    add_arguments(parser, OPTIONS)
    run(parser.parse(words, has_remainder=True))


def main() -> None:
    """Run the command. An error becomes a message and an exit code."""
    exit_with(call, "tfrun")
