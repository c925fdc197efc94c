"""The images of `images/`, built from Debian's and PyPI's packages."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.docker.test_dockerfiles import version
from tests.engine import published
from tests.engine.cli import docker
from tests.engine.images import NAME

pytestmark = pytest.mark.full

LEFT = "/root/.cache /home/*/.cache /var/lib/apt/lists /var/cache/apt /var/log/apt /tmp"
SECRETS = "-name .netrc -o -name pip.conf -o -name 'id_*sa' -o -name .git-credentials -o -path '*/.docker/config.json'"


@pytest.fixture(scope="module")
def base(engine: str) -> str:
    """What the images stand on here."""
    return published.base(engine)


@pytest.fixture(scope="module")
def built(engine: str, base: str) -> dict[str, str]:
    """The images for CPUs and with HDFS, this one without Hadoop itself; built side by side."""
    with ThreadPoolExecutor() as pool:
        made = {kind: pool.submit(published.image, engine, kind) for kind in ("cpu", "hdfs")}
    return {kind: image.result() for kind, image in made.items()}


@pytest.fixture(scope="module")
def cpu(built: dict[str, str]) -> str:
    """The image for CPUs."""
    return built["cpu"]


def test_cpu_runs_as_a_user_with_a_home(engine: str, cpu: str) -> None:
    script = "id -u; id -g; cd; pwd; touch here && echo writable; command -v python; command -v python3; test -w / || echo shut"
    assert _sh(engine, cpu, script).split() == [
        *("1000", "1000", "/home/tfdeploy", "writable"),
        *("/opt/tensorflow/bin/python", "/opt/tensorflow/bin/python3", "shut"),
    ]


def test_cpu_trains_with_the_tensorflow_that_is_pinned(engine: str, cpu: str) -> None:
    script = """
import numpy, tensorboard.program, tensorflow as tf
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile(loss="mse")
model.fit(numpy.zeros((4, 3)), numpy.zeros((4, 1)), verbose=0)
model.save("model.keras")
print(tf.__version__)
"""
    assert _python(engine, cpu, script) == version("cpu", "tensorflow-cpu")


def test_cpu_holds_no_leftovers(engine: str, cpu: str) -> None:
    _assert_clean(engine, cpu)


def test_a_program_may_have_an_entry_point_of_its_own(engine: str, cpu: str, tmp_path: Path) -> None:
    lines = [f"FROM {cpu}", "COPY --chown=1000:1000 train.py ./", 'ENTRYPOINT ["python", "/home/tfdeploy/train.py"]']
    (tmp_path / "Dockerfile").write_text("\n".join(lines))
    (tmp_path / "train.py").write_text("import sys; print(sys.argv[1:])")
    name = f"{NAME}/images-program"
    try:
        docker(engine, "build", "--quiet", "--tag", name, tmp_path)
        assert docker(engine, "run", "--rm", name, "--task_index=0") == "['--task_index=0']"
    finally:
        docker(engine, "image", "rm", "--no-prune", name)


def test_hdfs_loads_tensorflow_io_and_java(engine: str, built: dict[str, str]) -> None:
    script = """
import ctypes, os, sys, tensorflow as tf, tensorflow_io as tfio
ctypes.CDLL("libjvm.so")
try:
    tf.io.gfile.GFile("hdfs://namenode/file").read()
except tf.errors.OpError as reason:
    found = str(reason)
print(tf.__version__, tfio.__version__, "libhdfs.so" in found, os.getuid(), flush=True)
os._exit(0)
"""
    expected = f"{version('hdfs', 'tensorflow-cpu')} {version('hdfs', 'tensorflow-io')} True 1000"
    assert _python(engine, built["hdfs"], script) == expected
    _assert_clean(engine, built["hdfs"])


def _sh(address: str, image: str, script: str, *options: str) -> str:
    return docker(address, "run", "--rm", "--network=none", *options, image, "sh", "-c", script)


def _python(address: str, image: str, script: str) -> str:
    return docker(address, "run", "--rm", "--network=none", "--interactive", image, "python", "-", stdin=script)


def _assert_clean(address: str, image: str) -> None:
    """Nothing of apt or pip is left, and no file or step of the build that holds credentials."""
    assert _sh(address, image, f"find {LEFT} -type f 2>/dev/null || true", "--user=0") == ""
    assert _sh(address, image, f"find / -xdev {SECRETS}", "--user=0") == ""
    told = docker(address, "history", "--no-trunc", "--format", "{{.CreatedBy}}", image)
    told += docker(address, "image", "inspect", "--format", "{{.Config.Env}}", image)
    assert not re.search(r"(?i)password|passwd|token|secret|credential|api_?key|https?://[^ ]*@", told)
