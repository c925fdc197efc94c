"""What every task runs: download the job, start the server, call the job's `main(server, log_dir, context)`.

If the job cannot be downloaded or is not valid, the task exits with 78: a restart would not help.
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
"""The exit code if a restart would not help (EX_CONFIG of sysexits.h)."""

_PIECE = 1024 * 1024


def refuse(text: str) -> NoReturn:
    """End the task for good."""
    print(f"dcos.py: {text}", file=sys.stderr, flush=True)
    raise SystemExit(NOT_AGAIN)


def download(url: str, target: Path) -> str:
    """Download the URL; returns its SHA-256. If the server does not respond, the task is restarted to try again."""
    if urllib.parse.urlsplit(url).scheme not in ("http", "https", "file"):
        refuse(f"job_url {url!r} is none that begins with https://, http:// or file://")
    hasher, size = hashlib.sha256(), 0
    try:
        with urllib.request.urlopen(url, timeout=60) as source, target.open("wb") as file:
            while piece := source.read(_PIECE):
                size += len(piece)
                if size > LARGEST:
                    refuse(f"job_url {url} has more than {LARGEST} bytes")
                hasher.update(piece)
                file.write(piece)
    except urllib.error.HTTPError as error:
        if 400 <= error.code < 500:
            refuse(f"job_url {url}: {error.code} {error.reason}")
        raise
    return hasher.hexdigest()


def unpack(archive: Path, folder: Path) -> None:
    """The files of a ZIP, all of them within the folder, and none of them a link."""
    with zipfile.ZipFile(archive) as archive_file:
        members = archive_file.infolist()
        if len(members) > MOST_FILES or sum(member.file_size for member in members) > LARGEST_UNPACKED:
            refuse(f"the ZIP has more than {MOST_FILES} files, or {LARGEST_UNPACKED} bytes unpacked")
        for member in members:
            path = PurePosixPath(member.filename)
            mode = member.external_attr >> 16
            if path.is_absolute() or ".." in path.parts or "\\" in member.filename or "\0" in member.orig_filename:
                refuse(f"the ZIP has {member.orig_filename!r} in it, which leads out of its folder")
            if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
                refuse(f"the ZIP has {member.filename!r} in it, which is neither a file nor a folder")
        for member in members:
            try:
                archive_file.extract(member, folder)
            except (zipfile.BadZipFile, RuntimeError, NotImplementedError, OSError) as error:
                refuse(f"{member.filename!r} of the ZIP cannot be unpacked: {error}")


def fetch(args: argparse.Namespace, folder: Path) -> str:
    """Put the job into the folder; the name of its module."""
    folder.mkdir(exist_ok=True)
    downloaded = folder / ".download"
    digest = download(args.url, downloaded)
    if args.sha256 and digest != args.sha256.lower():
        refuse(f"job_url {args.url} has the SHA-256 {digest}, not {args.sha256}")
    if zipfile.is_zipfile(downloaded):
        unpack(downloaded, folder)
        downloaded.unlink()
        return str(args.name)
    name = PurePosixPath(urllib.parse.unquote(urllib.parse.urlsplit(args.url).path)).stem
    name = args.name or name
    if not name.isidentifier():
        refuse(f"job_name {name!r} is not a valid name of a module")
    downloaded.rename(folder / f"{name}.py")
    return str(name)


def load(args: argparse.Namespace) -> Any:
    """The job's module."""
    service_folder = Path(__file__).resolve().parent
    folder = service_folder / "job" if args.url else service_folder
    name = fetch(args, folder) if args.url else args.name
    path = (folder / args.path).resolve()
    if not path.is_relative_to(folder.resolve()) or not path.is_dir():
        refuse(f"job_path {args.path!r} is not a folder of the job")
    sys.path.insert(0, str(path))
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        refuse(f"there is no {name}.py in the job's folder {args.path or '.'}")
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


def run(args: argparse.Namespace) -> None:
    """Be member task of the cluster, until the job has ended or somebody stops it."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    job = None if os.environ["TFDEPLOY_JOB_NAME"] == "ps" else load(args)
    import tensorflow.compat.v1 as tf

    tf.disable_eager_execution()
    tf.logging.set_verbosity(tf.logging.ERROR)
    alone = {"cluster": {"worker": [os.environ["TFDEPLOY_ADDRESS"]]}, "task": {"type": "worker", "index": 0}}
    about = json.loads(os.environ.get("TF_CONFIG", json.dumps(alone)))
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
