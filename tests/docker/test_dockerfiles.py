"""The Dockerfiles of `images/`, read by rule; and the program that unpacks Hadoop in one of them."""

import hashlib
import io
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.images import ROOT
from tfdeploy.backends.image_content import DEFAULT_GPU_IMAGE, DEFAULT_IMAGE

IMAGES = ROOT / "images"
KINDS = ("cpu", "gpu", "hdfs")
PIN = re.compile(r"[a-z0-9-]+==[0-9][0-9a-z.]*")
BASE = re.compile(r"BASE=[a-z0-9./-]+:[0-9][0-9a-z.-]*[.][0-9a-z.-]*(@sha256:[0-9a-f]{64})?")


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
    found = pins(kind)
    assert [pin for pin in found if not PIN.fullmatch(pin)] == []
    assert found == sorted(set(found))


def test_versions_are_those_that_are_told() -> None:
    assert f"tensorflow/tensorflow:{version('cpu', 'tensorflow-cpu')}" == DEFAULT_IMAGE
    assert f"tensorflow/tensorflow:{version('gpu', 'tensorflow')}-gpu" == DEFAULT_GPU_IMAGE
    for kind, package in (("cpu", "tensorflow-cpu"), ("gpu", "tensorflow"), ("hdfs", "tensorflow-cpu")):
        assert f'version="{version(kind, package)}"' in (IMAGES / kind / "Dockerfile").read_text()


@pytest.mark.parametrize("kind", KINDS)
def test_the_context_holds_what_the_build_needs_and_nothing_else(kind: str) -> None:
    ignored = (IMAGES / kind / ".dockerignore").read_text().split()
    files = {path.name for path in (IMAGES / kind).iterdir() if path.is_file()} - {".dockerignore"}
    assert ignored[0] == "*"
    assert {name.removeprefix("!") for name in ignored[1:]} == files


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


def pins(kind: str) -> list[str]:
    """The packages of an image, with their versions."""
    lines = (IMAGES / kind / "requirements.txt").read_text().splitlines()
    return [line for line in lines if not line.startswith("#")]


def version(kind: str, package: str) -> str:
    """The version of a package in an image."""
    return dict(pin.split("==") for pin in pins(kind))[package]
