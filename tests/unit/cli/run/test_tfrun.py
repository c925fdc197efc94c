"""`tfrun` takes what TFMesos' `tfrun` takes."""

from argparse import Namespace
from typing import Any

import pytest

from tests.unit.cli.calling import invoke
from tfdeploy.cli import tfrun
from tfdeploy.cli.commands import run as run_command
from tfdeploy.cli.run.session import Outcome
from tfdeploy.cli.run.stack import Call

GIVEN = "-w 2 -s 1 -Gw 1 -Gs 3 -Cw 1.5 -Cs 0.5 -Mw 512 -Ms 256 -V /data:/data -n mine -v".split()  # noqa: SIM905
LONG = """
    --nworker 2 --nserver 1 --worker-gpus 1 --server-gpus 3 --worker-cpus 1.5 --server-cpus 0.5
    --worker-mem 512 --server-mem 256 --volume /data:/data --name mine --verbose
""".split()  # noqa: SIM905


@pytest.mark.parametrize("given", [GIVEN, LONG])
def test_tfmesos_options_mean_what_they_mean_there(given: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def run(call: Call, options: Namespace, seconds: float) -> Outcome:
        asked.extend([call, options.verbose])
        return Outcome(0, None)

    monkeypatch.setattr(run_command, "_run", run)
    words = [*given, "--code=", "--on=docker", "--", "python", "train.py", "-w", "{task_index}"]
    done = invoke(words, tfrun.call)
    assert done.exit_code == 0, done
    call, is_verbose = asked
    assert (call.stack, is_verbose) == ("mine", True)
    assert (call.args["workers"], call.args["ps"]) == (2, 1)
    assert call.args["jobs"] == {
        "worker": {"gpus": 1, "cpus": 1.5, "memory": "512MiB"},
        "ps": {"gpus": 3, "cpus": 0.5, "memory": "256MiB"},
    }
    assert call.args["container"]["volumes"] == ["/data:/data"]
    assert call.args["command"] == ["python", "train.py", "-w", "{task_index}"]
