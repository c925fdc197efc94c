"""What a row needs: the set-up's steps, a Docker engine in swarm mode, images. Where one cannot be had, the row is left out."""

import functools
import importlib
import os
from collections.abc import Callable
from contextlib import ExitStack
from typing import TypeVar

from .baselines import tfjob as operator
from .processes import LeftOut, run
from .results import FOLDER

T = TypeVar("T")

_SETUP_SECONDS = 1800.0
_LONGEST = 300


def nothing(_: ExitStack) -> None:
    """What `make setup` installs is enough."""


@functools.cache
def docker(stack: ExitStack) -> None:
    """The set-up of the docker backend, and an engine in swarm mode until `stack` ends; DOCKER_HOST names it.

    Raises:
        LeftOut: it cannot be had; likewise in the functions below.
    """
    _set_up("local", "docker")
    from tests.engine.daemon import engine

    os.environ.pop("DOCKER_CONTEXT", None)  # docker commands would prefer it
    os.environ["DOCKER_HOST"] = _provided(lambda: stack.enter_context(engine()))


@functools.cache
def kubernetes(_: ExitStack) -> None:
    """The tests' Kubernetes."""
    _set_up("local", "kubernetes", "tests")


def tfjob(stack: ExitStack) -> None:
    """The same, and TFJob's operator, which takes minutes if it is not built."""
    kubernetes(stack)
    _provided(operator.program)


def ec2_and_kubernetes(stack: ExitStack) -> None:
    """The tests' emulation of EC2 in an engine, and their Kubernetes."""
    docker(stack)
    kubernetes(stack)


def image_of(provide: Callable[[str], str]) -> str:
    """An image that the tests have too, made where it is missing.

    Raises:
        LeftOut: it cannot be made.
    """
    return _provided(lambda: provide(os.environ["DOCKER_HOST"]))


def _set_up(*steps: str) -> None:
    """Run these steps of the set-up; they do nothing where all is there."""
    print(f"tools/setup {' '.join(steps)} …", flush=True)
    _provided(lambda: run("tools/setup", *steps, seconds=_SETUP_SECONDS, folder=FOLDER.parent, merged=True))
    importlib.invalidate_caches()


def _provided(provide: Callable[[], T]) -> T:
    try:
        return provide()
    except Exception as error:  # the set-up, debootstrap, pip, the engine: each has its own
        text = " ".join(f"{type(error).__name__}: {error}".split())
        raise LeftOut(text[-_LONGEST:]) from error
