"""The engine and what goes with it, as fixtures: each is made once, when the first test asks for it."""

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tests.engine import daemon, images
from tests.engine import nested as machines

WITHOUT = "TFDEPLOY_TESTS_WITHOUT_DOCKER"
LABELS = {"m0": {"zone": "a"}, "m1": {"zone": "b"}, "m2": {"zone": "b"}}


def needs_engine(paths: Sequence[str]) -> bool:
    """Whether tests at these paths may need an engine. It would be a Swarm that another run on this machine may use or leave."""
    return any(not {"unit", "checks"} & {*Path(path).parts} for path in paths)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config) -> None:
    """One engine for all processes of a run: it is there before they are, and each finds that it answers."""
    if os.environ.get(WITHOUT) or not needs_engine(config.args):
        return
    stack = ExitStack()
    config.add_cleanup(stack.close)
    # Who needs one and has none says so.
    with suppress(daemon.NoEngine):
        os.environ["DOCKER_HOST"] = stack.enter_context(daemon.engine())


@pytest.fixture(scope="session")
def engine() -> Iterator[str]:
    """The address of an engine in swarm mode; docker commands and Pulumi's provider find it by DOCKER_HOST too."""
    if os.environ.get(WITHOUT):
        pytest.skip(f"needs a Docker engine, and {WITHOUT} is set")
    with pytest.MonkeyPatch.context() as patch:
        try:
            with daemon.engine() as address:
                patch.setenv("DOCKER_HOST", address)
                yield address
        except daemon.NoEngine as reason:
            pytest.fail(f"{reason} ({WITHOUT}=1 leaves these tests out)", pytrace=False)


@pytest.fixture(scope="session")
def python_image(engine: str) -> str:
    """An image with Python, whose user is root."""
    return images.python_image(engine)


@pytest.fixture(scope="session")
def user_image(engine: str) -> str:
    """An image with Python, whose user is not root."""
    return images.user_image(engine)


@pytest.fixture(scope="session")
def tensorflow_image(engine: str) -> str:
    """An image with Python and TensorFlow."""
    return images.tensorflow_image(engine)


@pytest.fixture(scope="session")
def tensorflow_volume() -> str:
    """What gives the image with Python a TensorFlow, among a task's `volumes`."""
    return f"{images.tensorflow_packages()}:{images.SITE}:ro"


@pytest.fixture(scope="session")
def nested(engine: str, python_image: str) -> Iterator[machines.Nested]:
    """Three machines that make one Swarm: they have the image with Python, and a label `zone` each."""
    with machines.nested(engine, labels=LABELS) as found:
        found.load(python_image)
        yield found
