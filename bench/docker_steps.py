"""Training steps a second on Docker, against the same program in containers that `docker run` made; turns as in `steps`.

A container is stopped by `docker pause`, `pulumi up` by SIGSTOP.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from tests.engine.images import tensorflow_image

from . import mnist
from .baselines.containers import containers
from .engine import STACK, UP, Workplace
from .halting import OfUpdate, of_containers
from .needs import image_of
from .processes import family
from .steps import HOSTNAMES, ROUNDS, Training, rounds
from .swarm import on_swarm
from .table import Row, ratio

_TRAIN = "/tmp/train"


def run() -> list[Row]:
    """Both networks, each against containers on the machine's own."""
    image = image_of(tensorflow_image)
    return [_row(image, "host", 0.97, ROUNDS), _row(image, "overlay", None, 2)]


def _row(image: str, network: str, target: float | None, count: int) -> Row:
    what = f"steps a second, {network}"
    mine, other = rounds(partial(_ours, image, network), partial(_by_docker, image), what, count)
    measure = (
        f"training steps a second on Docker with network `{network}` while `up` waits, 1 ps + 2 workers, against"
        " containers by `docker run --network host`"
    )
    return ratio(measure, mine, other, target, unit=" steps/s", at_least=True)


@contextmanager
def _ours(image: str, network: str, place: Workplace) -> Iterator[Training]:
    config = {
        "tfdeploy:ps": 1,
        "tfdeploy:workers": mnist.WORKERS,
        "tfdeploy:command": ["python", *mnist.command(mnist.ENDLESS)],
        "tfdeploy:container": {"image": image, "network": network},
        "tfdeploy:wait": "1h",
    }
    with on_swarm(place, "ours", image, config) as cluster:
        mnist.lay_out(cluster.made.code)
        call = cluster.made.start(*UP)
        training = Training(lambda: cluster.outputs(HOSTNAMES), [cluster, call])
        training.warm_up()
        with training.stopped([OfUpdate(family(call.pid), cluster.lock), *of_containers(cluster.containers())]):
            yield training


@contextmanager
def _by_docker(image: str, place: Workplace) -> Iterator[Training]:
    name, code = f"{STACK}-hand", place.folder / "hand"
    mnist.lay_out(code)
    command = [*mnist.command(mnist.ENDLESS), f"--train_dir={_TRAIN}"]
    with containers(name, image, code, mnist.WORKERS, command) as started:
        training = Training(lambda: [started.output(f"{name}-{task}") for task in HOSTNAMES], [started])
        training.warm_up()
        with training.stopped(of_containers(started.names)):
            yield training
