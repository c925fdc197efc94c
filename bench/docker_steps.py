"""Training steps a second on Docker, against the same program in containers that `docker run` made; turns as in `steps`.

A container stands still by `docker pause`, `pulumi up` by SIGSTOP.
"""

from functools import partial

from tests.engine.images import tensorflow_image
from tfdeploy.backends.docker.engine import address

from . import mnist
from .baselines.containers import containers
from .baselines.containers import docker as by_hand
from .engine import STACK, UP, Workplace
from .steps import HOSTNAMES, Training, alternate, family, resume, rounds, suspend
from .swarm import docker, on_swarm
from .table import Row, ratio

_TRAIN = "/tmp/train"


def run() -> list[Row]:
    """Both networks, each against containers on the machine's own."""
    image = tensorflow_image(address(""))
    return [_row(image, "host", 0.97), _row(image, "overlay", None)]


def _row(image: str, network: str, target: float | None) -> Row:
    mine, other = rounds(partial(_round, image, network))
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
        "tfdeploy:network": network,
        "tfdeploy:wait": "1h",
    }
    with on_swarm(place, "ours", image, config) as cluster:
        mnist.lay_out(cluster.made.code)
        call = cluster.made.start(*UP)
        mine: list[str] = []

        def go() -> None:
            docker("unpause", *mine)
            resume(family(call.process.pid))

        def stop() -> None:
            suspend(family(call.process.pid))
            docker("pause", *mine)

        ours = Training(lambda: cluster.outputs(HOSTNAMES), go, stop)
        ours.warm_up()
        mine += cluster.containers()
        with ours.stopped():
            hand = [*command, f"--train_dir={_TRAIN}"]
            with containers(f"{STACK}-hand", image, cluster.made.code, mnist.WORKERS, hand) as started:
                peer = Training(
                    lambda: [by_hand("logs", f"{STACK}-hand-{name}") for name in HOSTNAMES],
                    lambda: _docker("unpause", started),
                    lambda: _docker("pause", started),
                )
                peer.warm_up()
                with peer.stopped():
                    return alternate(ours, peer, f"{what}, {network}")


def _docker(word: str, names: list[str]) -> None:
    docker(word, *names)
