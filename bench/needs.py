"""What a row needs: the set-up's steps, a Docker engine in swarm mode, images. Where one cannot be had, the row is left out."""

import functools
import importlib
import os
from collections.abc import Callable
from contextlib import ExitStack

from .engine import ROOT
from .processes import LeftOut, run

_SETUP_SECONDS = 1800.0
_LONGEST = 300


def nothing(_: ExitStack) -> str:
    """What `make setup` installs is enough."""
    return ""


@functools.cache
def docker(stack: ExitStack) -> str:
    """The set-up of the docker backend, and an engine in swarm mode until `stack` ends; why not, where they cannot be had."""
    return _failure(lambda: _set_up("local", "docker")) or _failure(lambda: _engine(stack))


def engine_if_possible(stack: ExitStack) -> str:
    """What `docker` makes available; where it cannot be had, the row has another peer."""
    docker(stack)
    return ""


@functools.cache
def ec2(stack: ExitStack) -> str:
    """The same, and the tests' emulation of EC2."""
    return docker(stack) or _failure(lambda: _set_up("local", "docker", "tests"))


@functools.cache
def kubernetes(_: ExitStack) -> str:
    """The tests' Kubernetes; why not, where it cannot be built."""
    return _failure(lambda: _set_up("local", "kubernetes", "tests"))


def tfjob(stack: ExitStack) -> str:
    """The same, and TFJob's operator."""
    return kubernetes(stack) or _failure(_operator)


def ec2_and_kubernetes(stack: ExitStack) -> str:
    """Both emulations."""
    return ec2(stack) or kubernetes(stack)


def image_of(provide: Callable[[str], str]) -> str:
    """An image that the tests have too, made where it is missing.

    Raises:
        LeftOut: it cannot be made.
    """
    made: list[str] = []
    if reason := _failure(lambda: made.append(provide(os.environ["DOCKER_HOST"]))):
        raise LeftOut(f"an image cannot be made: {reason}")
    return made[0]


def _set_up(*steps: str) -> None:
    """Run these steps of the set-up; they do nothing where all is there."""
    print(f"tools/setup {' '.join(steps)} …", flush=True)
    run("tools/setup", *steps, seconds=_SETUP_SECONDS, folder=ROOT.parent, merged=True)
    importlib.invalidate_caches()


def _engine(stack: ExitStack) -> None:
    """The engine that responds, else one that the tests would start; DOCKER_HOST names it."""
    from tests.engine.daemon import engine

    os.environ.pop("DOCKER_CONTEXT", None)  # docker commands would prefer it
    os.environ["DOCKER_HOST"] = stack.enter_context(engine())


def _operator() -> None:
    from .baselines import tfjob

    print("TFJob's operator (minutes if it is not built) …", flush=True)
    tfjob.program()


def _failure(provide: Callable[[], None]) -> str:
    """Why something cannot be had, in one line; empty when it can."""
    try:
        provide()
    except Exception as error:  # the set-up, debootstrap, pip, the engine: each has its own
        return " ".join(f"{type(error).__name__}: {error}".split())[-_LONGEST:]
    return ""
