"""The Dockerfiles of `images/`: read by rule, and built from Debian's and PyPI's packages."""

import hashlib
import io
import json
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.engine import published
from tests.engine.cli import docker
from tests.engine.images import NAME, ROOT
from tfdeploy.backends.docker.images import DEFAULT, DEFAULT_GPU

IMAGES = ROOT / "images"
KINDS = ("cpu", "gpu", "hdfs")
TRUSTED = "/etc/ssl/certs/ca-certificates.crt"
PIN = re.compile(r"[a-z0-9-]+==[0-9][0-9a-z.]*")
BASE = re.compile(r"BASE=[a-z0-9./-]+:[0-9][0-9a-z.-]*[.][0-9a-z.-]*(@sha256:[0-9a-f]{64})?")
LEFT = "/root/.cache /home/*/.cache /var/lib/apt/lists /var/cache/apt /var/log/apt /tmp"
SECRETS = "-name .netrc -o -name pip.conf -o -name 'id_*sa' -o -name .git-credentials -o -path '*/.docker/config.json'"


def instructions(dockerfile: str) -> list[tuple[str, str]]:
    """Word and rest of each instruction, its continued lines joined."""
    lines = [line for line in dockerfile.splitlines() if not line.startswith("#")]
    whole = "\n".join(lines).replace("\\\n", " ").splitlines()
    return [(word.upper(), " ".join(rest.split())) for word, _, rest in (line.partition(" ") for line in whole) if word]


def complaints(dockerfile: str) -> Iterator[str]:
    """What breaks a rule of the house, one line each."""
    steps = instructions(dockerfile)
    stages = {rest.split()[2] for word, rest in steps if word == "FROM" and " AS " in rest}
    users = [index for index, step in enumerate(steps) if step[0] in ("FROM", "USER")]
    if steps[0][0] != "ARG" or not BASE.fullmatch(steps[0][1]):
        yield "does not begin with a pinned BASE"
    if "latest" in dockerfile:
        yield "latest"
    if not re.fullmatch(r"USER [1-9][0-9]*:[1-9][0-9]*", " ".join(steps[users[-1]])):
        yield "its user is root, or has no fixed number"
    for word, rest in steps:
        if word == "FROM" and rest.split()[0] not in ("${BASE}", *stages):
            yield f"an image that is not pinned: {rest}"
        if word == "ADD":
            yield f"ADD checks nothing: {rest}"
        if word == "RUN":
            yield from _complaints_of_run(rest)
    yield from _complaints_of_downloads(steps)


def _complaints_of_run(command: str) -> Iterator[str]:
    if "pip install" in command and not {"--no-cache-dir", "--no-deps", "--requirement"} <= set(command.split()):
        yield f"pip: {command}"
    if "apt-get" in command and "rm -rf /var/lib/apt/lists/*" not in command:
        yield f"apt's lists stay: {command}"


def _complaints_of_downloads(steps: list[tuple[str, str]]) -> Iterator[str]:
    """An address is an argument `X_URL`, and goes only to unpack.py, together with `X_SHA512`."""
    arguments = dict(rest.split("=", 1) for word, rest in steps if word == "ARG" and "=" in rest)
    addresses = {name for name, value in arguments.items() if name.endswith("_URL")}
    for word, rest in steps:
        plain = re.search(r"https?:", rest) and not (word == "ARG" and rest.partition("=")[0] in addresses)
        if plain:
            yield f"a download without a checksum: {rest}"
    for name in addresses:
        checksum = name.removesuffix("URL") + "SHA512"
        if not re.fullmatch("[0-9a-f]{128}", arguments.get(checksum, "")):
            yield f"a download without a checksum: {name} has none"
        for word, rest in steps:
            checked = f'/unpack.py "${{{name}}}" "${{{checksum}}}" '
            if word != "ARG" and rest.count(name) != rest.count(checked):
                yield f"a download without a checksum: {rest}"


@pytest.mark.parametrize("kind", KINDS)
def test_dockerfiles_keep_the_rules(kind: str) -> None:
    assert list(complaints((IMAGES / kind / "Dockerfile").read_text())) == []


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("ARG BASE=python:3.11.13-slim-bookworm", "ARG BASE=python", "does not begin with a pinned BASE"),
        ("ARG BASE=python:3.11.13-slim", "ARG BASE=python:latest-3.1", "latest"),
        ("FROM ${BASE}\n", "FROM python:3\n", "an image that is not pinned"),
        ("USER 1000:1000\n", "", "its user is root"),
        ("USER 1000:1000\n", "USER 1000:1000\nUSER root\n", "its user is root"),
        ("USER 1000:1000\n", "USER 0:0\n", "its user is root"),
        ("--no-cache-dir ", "", "pip: "),
        ("--no-deps", "", "pip: "),
        ("COPY requirements.txt", "ADD requirements.txt", "ADD checks nothing"),
        ("ENTRYPOINT", "RUN curl https://example.org\nENTRYPOINT", "a download without a checksum"),
        ("ENTRYPOINT", "RUN apt-get update\nENTRYPOINT", "apt's lists stay"),
    ],
)
def test_a_broken_rule_is_found(old: str, new: str, complaint: str) -> None:
    text = (IMAGES / "cpu/Dockerfile").read_text()
    assert old in text
    assert any(found.startswith(complaint) for found in complaints(text.replace(old, new)))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("ENTRYPOINT", "RUN curl https://example.org\nENTRYPOINT"),
        ("ENTRYPOINT", 'RUN curl "${HADOOP_URL}"\nENTRYPOINT'),
        ("ENTRYPOINT", "ARG OTHER_URL=https://example.org\nENTRYPOINT"),
        ("ARG HADOOP_SHA512=", "ARG OTHER_SHA512="),
        ("ARG HADOOP_SHA512=de3eaca2", "ARG HADOOP_SHA512=de3"),
        ('"${HADOOP_SHA512}"', '"${OTHER_SHA512}"'),
    ],
)
def test_each_download_is_checked_by_a_checksum_of_its_own(old: str, new: str) -> None:
    text = (IMAGES / "hdfs/Dockerfile").read_text()
    assert old in text
    assert any(found.startswith("a download without a checksum") for found in complaints(text.replace(old, new)))


@pytest.mark.parametrize("kind", KINDS)
def test_packages_are_pinned_exactly(kind: str) -> None:
    pins = _pins(kind)
    assert [pin for pin in pins if not PIN.fullmatch(pin)] == []
    assert pins == sorted(set(pins))


def test_versions_are_those_that_are_told() -> None:
    assert f"tensorflow/tensorflow:{_version('cpu', 'tensorflow-cpu')}" == DEFAULT
    assert f"tensorflow/tensorflow:{_version('gpu', 'tensorflow')}-gpu" == DEFAULT_GPU
    for kind, package in (("cpu", "tensorflow-cpu"), ("gpu", "tensorflow"), ("hdfs", "tensorflow-cpu")):
        assert f'version="{_version(kind, package)}"' in (IMAGES / kind / "Dockerfile").read_text()


@pytest.mark.parametrize("kind", KINDS)
def test_the_context_holds_what_the_build_needs_and_nothing_else(kind: str) -> None:
    ignored = (IMAGES / kind / ".dockerignore").read_text().split()
    files = {path.name for path in (IMAGES / kind).iterdir() if path.is_file()} - {".dockerignore"}
    assert ignored[0] == "*"
    assert {name.removeprefix("!") for name in ignored[1:]} == files


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


@pytest.mark.full
def test_cpu_runs_as_a_user_with_a_home(engine: str, cpu: str) -> None:
    script = "id -u; id -g; cd; pwd; touch here && echo writable; command -v python; command -v python3; test -w / || echo shut"
    assert _sh(engine, cpu, script).split() == [
        *("1000", "1000", "/home/tfdeploy", "writable"),
        *("/opt/tensorflow/bin/python", "/opt/tensorflow/bin/python3", "shut"),
    ]


@pytest.mark.full
def test_cpu_has_what_the_agent_needs(engine: str, cpu: str) -> None:
    script = "import sys, zlib, ctypes, http.server; print(sys.version_info >= (3, 8))"
    assert docker(engine, "run", "--rm", cpu, "python3", "-I", "-S", "-c", script) == "True"


@pytest.mark.full
def test_cpu_trains_with_the_tensorflow_that_is_pinned(engine: str, cpu: str) -> None:
    script = """
import numpy, tensorboard.program, tensorflow as tf
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile(loss="mse")
model.fit(numpy.zeros((4, 3)), numpy.zeros((4, 1)), verbose=0)
model.save("model.keras")
print(tf.__version__)
"""
    assert _python(engine, cpu, script) == _version("cpu", "tensorflow-cpu")


@pytest.mark.full
def test_cpu_takes_more_packages_as_its_user(engine: str, cpu: str) -> None:
    install = "python3 -m pip install --no-cache-dir --quiet --no-deps --force-reinstall six==1.17.0"
    assert "/opt/tensorflow/" in docker(engine, "run", "--rm", cpu, "sh", "-c", f"{install} && pip show -f six")


@pytest.mark.full
def test_cpu_holds_no_leftovers(engine: str, cpu: str) -> None:
    _assert_clean(engine, cpu)


@pytest.mark.full
def test_cpu_says_what_it_is(engine: str, cpu: str, base: str) -> None:
    config = json.loads(docker(engine, "image", "inspect", "--format", "{{json .Config}}", cpu))
    told = {key.rpartition(".")[2]: value for key, value in config["Labels"].items() if "opencontainers" in key}
    assert told.keys() == {"title", "description", "version", "name"}
    assert told["version"] == _version("cpu", "tensorflow-cpu")
    assert told["name"] == base
    assert not config.get("Entrypoint")
    assert not config.get("Cmd")


@pytest.mark.full
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


@pytest.mark.full
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
    expected = f"{_version('hdfs', 'tensorflow-cpu')} {_version('hdfs', 'tensorflow-io')} True 1000"
    assert _python(engine, built["hdfs"], script) == expected
    _assert_clean(engine, built["hdfs"])


CLIENT = ("LICENSE.txt", "etc/hadoop/core-site.xml", "lib/native/libhdfs.so.0.0.0", "share/hadoop/common/lib/a.jar")
REST = ("lib/native/libhdfs.a", "share/doc/index.html", "share/hadoop/hdfs/a-tests.jar", "share/hadoop/yarn/a.jar")


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """An archive laid out as Hadoop's."""
    path = tmp_path / "hadoop-3.3.6.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name in (*CLIENT, *REST):
            archive.addfile(tarfile.TarInfo(f"hadoop-3.3.6/{name}"), io.BytesIO())
        link = tarfile.TarInfo("hadoop-3.3.6/lib/native/libhdfs.so")
        link.type, link.linkname = tarfile.SYMTYPE, "libhdfs.so.0.0.0"
        archive.addfile(link)
    return path


def test_of_hadoop_a_client_is_unpacked(release: Path, tmp_path: Path) -> None:
    done = _unpack(release.as_uri(), hashlib.sha512(release.read_bytes()).hexdigest(), tmp_path / "hadoop")
    assert done.returncode == 0, done.stderr
    assert [name for name in (*CLIENT, *REST) if (tmp_path / "hadoop" / name).exists()] == [*CLIENT]
    assert (tmp_path / "hadoop/lib/native/libhdfs.so").is_symlink()


def test_nothing_is_unpacked_with_another_checksum_or_without_an_address(release: Path, tmp_path: Path) -> None:
    done = _unpack(release.as_uri(), "0" * 128, tmp_path / "other")
    assert done.returncode == 1
    assert f"not {'0' * 128}" in done.stderr
    assert _unpack("", "", tmp_path / "without").returncode == 0
    assert [*(tmp_path / "other").iterdir(), *(tmp_path / "without").iterdir()] == []


def _unpack(url: str, checksum: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(IMAGES / "hdfs/unpack.py"), url, checksum, str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _pins(kind: str) -> list[str]:
    lines = (IMAGES / kind / "requirements.txt").read_text().splitlines()
    return [line for line in lines if not line.startswith("#")]


def _version(kind: str, package: str) -> str:
    return dict(pin.split("==") for pin in _pins(kind))[package]


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
