"""Training steps a second on Docker, against the same program in containers that `docker run` made; turns as in `steps`.

A container is stopped by `docker pause`, `pulumi up` by SIGSTOP. Both have the network of the machine. An encrypted overlay network
is not measured: it needs ESP in the kernel.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from tests.engine.images import tensorflow_image

from . import mnist
from .baselines.containers import containers
from .engine import STACK, UP, Workplace
from .halting import of_containers, of_update
from .needs import image_of
from .processes import family
from .steps import HOSTNAMES, Training, rounds
from .swarm import on_swarm
from .table import Row, ratio

_TRAIN = "/tmp/train"


def run() -> list[Row]:
    """By Swarm, against `docker run --network host` of the same image with the same flags."""
    image = image_of(tensorflow_image)
    mine, other = rounds(partial(_ours, image), partial(_by_docker, image), "steps a second")
    measure = (
        "training steps a second on Docker with network `host` while `up` waits, 1 ps + 2 workers, against"
        " containers by `docker run --network host`"
    )
    return [ratio(measure, mine, other, 0.97, unit=" steps/s", at_least=True)]


@contextmanager
def _ours(image: str, place: Workplace) -> Iterator[Training]:
    config = {
        "tfdeploy:ps": 1,
        "tfdeploy:workers": mnist.WORKERS,
        "tfdeploy:command": ["python", *mnist.command(mnist.ENDLESS)],
        "tfdeploy:container": {"image": image, "network": "host"},
        "tfdeploy:wait": "1h",
    }
    with on_swarm(place, "ours", image, config) as cluster:
        mnist.lay_out(cluster.made.code)
        call = cluster.made.start(*UP)
        training = Training(lambda: cluster.outputs(HOSTNAMES), [cluster, call])
        training.warm_up()
        with training.stopped([of_update(family(call.pid), cluster.lock), *of_containers(cluster.containers())]):
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
