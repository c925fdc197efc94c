"""Versions and contexts of the images in `images/`, and the program that unpacks Hadoop in one of them."""

import hashlib
import io
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.engine.images import ROOT
from tfdeploy.backends.image_content import DEFAULT_GPU_IMAGE, DEFAULT_IMAGE

IMAGES = ROOT / "images"
KINDS = ("cpu", "gpu", "hdfs")


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
