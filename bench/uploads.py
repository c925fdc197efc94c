"""Training steps a second of a program that saves a checkpoint of 20 MiB every 3 s, with and without its upload while it trains.

As in `steps`, both trainings exist at once, and by turns of a few seconds all processes of one are stopped, its controller and its
launcher included.
"""

import shutil
from contextlib import ExitStack
from pathlib import Path

from tfdeploy.backends.local.supervisor import marked

from .engine import CLUSTER, TASKS, UP, project, workplace
from .halting import of_processes
from .observed import Cluster, output
from .steps import Training, alternate
from .table import Row, ratio

_COMMAND = ["python", "stamped.py", "saving.py", "20", "3"]


def run() -> list[Row]:
    """Each interval against none."""
    rows = []
    for interval, target, words in (
        ("3s", None, "each uploaded"),
        ("5m", 0.99, "one uploaded in 5 minutes (the default)"),
    ):
        measure = f"training steps a second with a checkpoint of 20 MiB every 3 s, {words}, against none"
        with ExitStack() as stack:
            ours, peer = (_training(stack, name, value) for name, value in (("ours", interval), ("peer", "0")))
            mine, other = alternate(ours, peer, f"uploads {interval}")
            rows.append(ratio(measure, mine, other, target, unit=" steps/s", at_least=True))
    return rows


def _training(stack: ExitStack, name: str, interval: str) -> Training:
    """A cluster that has begun, and is stopped until its turn."""
    config = {
        "tfdeploy:workers": 1,
        "tfdeploy:command": _COMMAND,
        "tfdeploy:wait": "0",
        "tfdeploy:checkpoint_upload_interval": interval,
    }
    made = stack.enter_context(project(stack.enter_context(workplace()), CLUSTER, name, config))
    for file in ("stamped.py", "saving.py"):
        shutil.copy(TASKS / file, Path(made.code))
    made.pulumi(*UP)
    training = Training(lambda: [output(made.home, "worker-0").decode()], [Cluster(made.home)])
    training.warm_up()
    stack.enter_context(training.stopped(of_processes(list(marked(made.home)))))
    return training
