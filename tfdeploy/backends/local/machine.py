"""The resources of this machine: processors, memory, GPUs."""

import os
import platform
import shutil
import subprocess

import psutil

from ...plan.scheduler import Machine

_PROVIDER = "local"


def this_machine() -> Machine:
    """The machine that the program runs on, as the scheduler needs it."""
    return Machine(
        name=platform.node().partition(".")[0] or "localhost",
        role="Master",
        provider=_PROVIDER,
        region="",
        cpus=float(len(os.sched_getaffinity(0))),
        memory=psutil.virtual_memory().total,
        gpus=gpus(),
    )


def gpus() -> tuple[str, ...]:
    """The indices of the NVIDIA GPUs, as `nvidia-smi` lists them; none where it is missing or finds no driver."""
    if shutil.which("nvidia-smi") is None:
        return ()
    command = ["nvidia-smi", "--query-gpu=index", "--format=csv,noheader"]
    try:
        completed = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return tuple(completed.stdout.split()) if completed.returncode == 0 else ()
