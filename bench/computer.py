"""What a run was measured on: processor, memory, operating system, and the versions of the software."""

import importlib.metadata
import os
import platform
from pathlib import Path

import psutil

_PROCESSORS = Path("/proc/cpuinfo")
_MODEL = "model name"


def machine() -> str:
    """Processor, cores, memory, operating system and kernel, in a few words."""
    memory = psutil.virtual_memory().total / 2**30
    try:
        system = platform.freedesktop_os_release()["PRETTY_NAME"]
    except OSError:
        system = platform.system()
    cores = f"{len(os.sched_getaffinity(0))} cores, {memory:.0f} GiB of memory"
    kernel = platform.release().partition("-")[0]  # what follows names a build
    return f"{processor()}, {cores}, {system}, {platform.system()} {kernel}"


def processor(path: Path = _PROCESSORS) -> str:
    """The model of the processor; its architecture where the kernel does not name the model."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith(_MODEL)]
    return models[0] if models and models[0] else platform.machine()


def software() -> str:
    """The versions that matter."""
    versions = {
        name.lower(): version for name in ("pulumi", "tensorflow-cpu", "tensorflow") if (version := _version(name))
    }
    named = [f"{name} {version}" for name, version in versions.items()]
    return ", ".join([f"Python {platform.python_version()}", *named])


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""
