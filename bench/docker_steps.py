"""Training steps a second on Docker, against the same program in containers that `docker run` made; turns as in `steps`.

A container is stopped by `docker pause`, `pulumi up` by SIGSTOP.
"""

from functools import partial

from tests.engine.images import tensorflow_image

from . import mnist
from .baselines.containers import containers
from .engine import STACK, UP, Workplace
from .halting import OfUpdate, of_containers
from .needs import image_of
from .processes import family
from .steps import HOSTNAMES, ROUNDS, Training, alternate, rounds
from .swarm import on_swarm
from .table import Row, ratio

_TRAIN = "/tmp/train"


def run() -> list[Row]:
    """Both networks, each against containers on the machine's own."""
    image = image_of(tensorflow_image)
    return [_row(image, "host", 0.97, ROUNDS), _row(image, "overlay", None, 1)]


def _row(image: str, network: str, target: float | None, count: int) -> Row:
    mine, other = rounds(partial(_round, image, network), count)
    measure = (
        f"training steps a second on Docker with network `{network}` while `up` waits, 1 ps + 2 workers, against"
        " containers by `docker run --network host`"
    )
    return ratio(measure, mine, other, target, unit=" steps/s", at_least=True)


def _round(image: str, network: str, place: Workplace, what: str) -> tuple[list[float], list[float]]:
    command = mnist.command(mnist.ENDLESS)
    config = {
        "tfdeploy:ps": 1,
        "tfdeploy:workers": mnist.WORKERS,
        "tfdeploy:command": ["python", *command],
        "tfdeploy:container": {"image": image, "network": network},
        "tfdeploy:wait": "1h",
    }
    with on_swarm(place, "ours", image, config) as cluster:
        mnist.lay_out(cluster.made.code)
        call = cluster.made.start(*UP)
        ours = Training(lambda: cluster.outputs(HOSTNAMES), [cluster, call])
        ours.warm_up()
        with ours.stopped([OfUpdate(family(call.pid), cluster.lock), *of_containers(cluster.containers())]):
            name, hand = f"{STACK}-hand", [*command, f"--train_dir={_TRAIN}"]
            with containers(name, image, cluster.made.code, mnist.WORKERS, hand) as started:
                peer = Training(lambda: [started.output(f"{name}-{task}") for task in HOSTNAMES], [started])
                peer.warm_up()
                with peer.stopped(of_containers(started.names)):
                    return alternate(ours, peer, f"{what}, {network}")
