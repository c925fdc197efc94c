"""What the tests need of this machine: Debian's programs and images, made before any test asks for them, side by side.

`python -m tests.engine.prepare` makes what `make test` needs; with `--all`, what all tests need. What is there is not made again.
"""

import os
import shutil
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from tests.box import machine_image as box
from tests.debian import NotInstalled, provided
from tests.engine import daemon, images, published
from tests.engine.cli import DockerFailed, cache, digest
from tests.engine.fixtures import WITHOUT
from tests.kube import images as kube
from tests.kube import programs


def _kubernetes(_: str) -> str:
    """What the tests' Kubernetes needs, its images included, which no engine makes."""
    programs.kube()
    return str(kube.archive())


IMAGES: dict[str, Callable[[str], str]] = {"Python": images.python_image, "Python for a plain user": images.user_image}
IMAGES_OF_ALL: dict[str, Callable[[str], str]] = {
    "Kubernetes": _kubernetes,
    "a nested machine": images.machine_image,
    "a machine of EC2 in a box": box.image,
    "TensorFlow": images.tensorflow_image,
    "images/cpu": partial(published.image, kind="cpu"),
    "images/hdfs": partial(published.image, kind="hdfs"),
}
PROGRAMS = ("chromium",)
PROGRAMS_OF_ALL = ("npm", "zsh")
RECIPES = (
    "tests/engine/*.py",
    "tests/box/machine_image.py",
    "tests/box/image/*",
    "tests/kube/images.py",
    "images/*/*",
    "requirements.lock",
)


def prepare(everything: bool) -> None:
    """Install the programs and make the images; one line for each."""
    programs = (*PROGRAMS, *(PROGRAMS_OF_ALL if everything else ()))
    wanted = {**IMAGES, **(IMAGES_OF_ALL if everything else {})}
    with ThreadPoolExecutor() as pool:
        if not os.environ.get(WITHOUT) and not _known(everything):
            with daemon.engine() as address:
                _timed("Debian", partial(images.debian_image, address))
                steps = [pool.submit(_timed, name, partial(make, address)) for name, make in wanted.items()]
                steps += [pool.submit(_timed, name, partial(provided, name)) for name in programs]
                for step in steps:
                    step.result()
            _note(everything)
        else:
            for name in programs:
                _timed(name, partial(provided, name))


def _timed(name: str, make: Callable[[], str]) -> None:
    begun = time.monotonic()
    made = make()
    print(f"for the tests: {name} ({made}): {time.monotonic() - begun:.0f} s", flush=True)


def _stamp(everything: bool) -> Path:
    """In the folder of the tests' own engine: it goes when the images go."""
    sources = sorted(path for pattern in RECIPES for path in images.ROOT.glob(pattern) if path.is_file())
    content = digest(str(everything), *(path.read_bytes().hex() for path in sources))
    return cache() / "docker" / f"tfdeploy-prepared-{content}"


def _known(everything: bool) -> bool:
    """Whether the tests' own engine has the images, without starting it to ask; one that answers is asked."""
    installed = all(shutil.which(name) for name in (*daemon.PROGRAMS, "dockerd"))
    return installed and daemon.running() is None and any(_stamp(kind).exists() for kind in {True, everything})


def _note(everything: bool) -> None:
    if daemon.running() is None:
        _stamp(everything).touch()


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--all"]):
        print("usage: python -m tests.engine.prepare [--all]", file=sys.stderr)
        return 2
    try:
        prepare(bool(arguments))
    except (daemon.NoEngine, DockerFailed, NotInstalled) as reason:
        print(f"{reason} ({WITHOUT}=1 leaves the tests with containers out)", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
