"""What every task runs: fetch the job, bring the server, call the job's `main(server, log_dir, context)`.

A job that cannot be had, or is no job, ends the task with 78, whatever it is tried again.
"""

import argparse
import hashlib
import importlib
import json
import os
import stat
import sys
import urllib.error
import urllib.parse
import urllib.request
import zipfile
from pathlib import Path, PurePosixPath
from typing import Any, NoReturn

LARGEST = 256 * 1024 * 1024
"""Bytes of what is downloaded."""

LARGEST_UNPACKED = 1024 * 1024 * 1024
MOST_FILES = 10_000
NOT_AGAIN = 78
"""The exit code where another try would do nothing (EX_CONFIG of sysexits.h)."""

_PIECE = 1024 * 1024


def refuse(text: str) -> NoReturn:
    """End the task for good."""
    print(f"dcos.py: {text}", file=sys.stderr, flush=True)
    raise SystemExit(NOT_AGAIN)


def download(url: str, target: Path) -> str:
    """Write what the URL leads to; its SHA-256. A server that does not answer is worth another try, by a restart."""
    if urllib.parse.urlsplit(url).scheme not in ("http", "https", "file"):
        refuse(f"job_url {url!r} is none that begins with https://, http:// or file://")
    known, size = hashlib.sha256(), 0
    try:
        with urllib.request.urlopen(url, timeout=60) as source, target.open("wb") as file:
            while piece := source.read(_PIECE):
                size += len(piece)
                if size > LARGEST:
                    refuse(f"job_url {url} has more than {LARGEST} bytes")
                known.update(piece)
                file.write(piece)
    except urllib.error.HTTPError as error:
        if 400 <= error.code < 500:
            refuse(f"job_url {url}: {error.code} {error.reason}")
        raise
    return known.hexdigest()


def unpack(archive: Path, folder: Path) -> None:
    """The files of a ZIP, all of them within the folder, and none of them a link."""
    with zipfile.ZipFile(archive) as found:
        members = found.infolist()
        if len(members) > MOST_FILES or sum(one.file_size for one in members) > LARGEST_UNPACKED:
            refuse(f"the ZIP has more than {MOST_FILES} files, or {LARGEST_UNPACKED} bytes unpacked")
        for one in members:
            path = PurePosixPath(one.filename)
            mode = one.external_attr >> 16
            if path.is_absolute() or ".." in path.parts or "\\" in one.filename or "\0" in one.orig_filename:
                refuse(f"the ZIP has {one.orig_filename!r} in it, which leads out of its folder")
            if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
                refuse(f"the ZIP has {one.filename!r} in it, which is neither a file nor a folder")
        for one in members:
            try:
                found.extract(one, folder)
            except (zipfile.BadZipFile, RuntimeError, NotImplementedError, OSError) as error:
                refuse(f"{one.filename!r} of the ZIP cannot be unpacked: {error}")


def fetch(asked: argparse.Namespace, folder: Path) -> str:
    """Put the job into the folder; the name of its module."""
    folder.mkdir(exist_ok=True)
    came = folder / ".download"
    found = download(asked.url, came)
    if asked.sha256 and found != asked.sha256.lower():
        refuse(f"job_url {asked.url} has the SHA-256 {found}, not {asked.sha256}")
    if zipfile.is_zipfile(came):
        unpack(came, folder)
        came.unlink()
        return str(asked.name)
    name = PurePosixPath(urllib.parse.unquote(urllib.parse.urlsplit(asked.url).path)).stem
    name = asked.name or name
    if not name.isidentifier():
        refuse(f"job_name {name!r} is no name of a module")
    came.rename(folder / f"{name}.py")
    return str(name)


def load(asked: argparse.Namespace) -> Any:
    """The job's module."""
    here = Path(__file__).resolve().parent
    folder = here / "job" if asked.url else here
    name = fetch(asked, folder) if asked.url else asked.name
    path = (folder / asked.path).resolve()
    if not path.is_relative_to(folder.resolve()) or not path.is_dir():
        refuse(f"job_path {asked.path!r} is no folder of the job")
    sys.path.insert(0, str(path))
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        refuse(f"there is no {name}.py in the job's folder {asked.path or '.'}")
    if not callable(getattr(module, "main", None)):
        refuse(f"{name}.py has no main(server, log_dir, context)")
    return module


def bring_file_system(log_dir: str) -> None:
    """TensorFlow has local folders and gs:// by itself, the key of which may be the secret `gcs_key`; others come with a package."""
    key = Path(os.environ["TFDEPLOY_SECRETS"], "gcs_key")
    if key.exists():
        os.environ["GOOGLE_APPLICATION_CREDENTIALS"] = str(key)
    import tensorflow as tf

    if "://" not in log_dir or log_dir.startswith("gs://"):
        return
    try:
        importlib.import_module("tensorflow_io")
    except ImportError:
        scheme = log_dir.partition("://")[0]
        refuse(
            f"log_dir {log_dir}: {scheme}:// needs the package tensorflow-io, which TensorFlow {tf.__version__} is without"
        )


def run(asked: argparse.Namespace) -> None:
    """Be one task of the cluster, until the job has ended or somebody stops it."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    job = None if os.environ["TFDEPLOY_JOB_NAME"] == "ps" else load(asked)
    import tensorflow.compat.v1 as tf

    tf.disable_eager_execution()
    tf.logging.set_verbosity(tf.logging.ERROR)
    about = json.loads(os.environ["TF_CONFIG"])
    task = about["task"]
    server = tf.train.Server(tf.train.ClusterSpec(about["cluster"]), job_name=task["type"], task_index=task["index"])
    if job is None:
        bring_file_system(os.environ["TFDEPLOY_TRAIN_DIR"])
        server.join()
        return
    log_dir = os.environ["TFDEPLOY_TRAIN_DIR"]
    bring_file_system(log_dir)
    job.main(server, log_dir, json.loads(os.environ["TFDEPLOY_CONTEXT"]))
    sys.stdout.flush()
    sys.stderr.flush()
    if "://" in log_dir:
        os._exit(0)  # tensorflow-io ends a process by SIGABRT when it takes its S3 client down.


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(prog="dcos.py", description=__doc__, allow_abbrev=False)
    made.add_argument("--url", default="", help="a Python file or a ZIP; by default what was shipped with this file")
    made.add_argument("--sha256", default="", help="what it must have")
    made.add_argument("--path", default="", help="the folder in it that is put on PYTHONPATH")
    made.add_argument("--name", default="", help="the module that has main(server, log_dir, context)")
    return made


if __name__ == "__main__":
    run(parser().parse_known_args()[0])
