"""The program of people who come from Marathon in its image with HDFS, as far as that goes without a real HDFS."""

from collections.abc import Iterator

import pytest

from tests.engine import published
from tests.engine.cli import DockerFailed, docker
from tests.engine.images import NAME, ROOT

PROGRAM = ROOT / "programs/marathon_mnist/train"
DIGITS = ROOT / "programs/mnist/train/digits.npz"


@pytest.fixture
def image(engine: str) -> Iterator[str]:
    """`Dockerfile.hdfs` on `images/hdfs`."""
    name, base = f"{NAME}/marathon-hdfs", published.image(engine, "hdfs")
    recipe = ("--file", PROGRAM / "Dockerfile.hdfs", "--build-arg", f"BASE={base}")
    docker(engine, "build", "--quiet", "--tag", name, *recipe, PROGRAM)
    yield name
    docker(engine, "image", "rm", "--no-prune", name)


@pytest.mark.full
def test_it_trains_alone_and_leaves_hdfs_addresses_to_tensorflow_io(engine: str, image: str) -> None:
    alone = ["run", "--rm", "--network=none", f"--volume={DIGITS}:/data/mnist.npz:ro", image]
    alone.append("--train_dir=/home/tfdeploy/train")
    trained = docker(engine, *alone, "--data_dir=/data", "--train_steps=20")
    assert "final loss " in trained.splitlines()[-1]
    with pytest.raises(DockerFailed, match=r"libhdfs\.so"):  # the image is built without Hadoop here
        docker(engine, *alone, "--data_dir=hdfs://namenode/mnist")
