"""Hides from each Python process what only Linux has, and the packages of the local backend."""

import errno
import importlib
import os
import signal
import sys
import sysconfig
import time
from typing import Any

_LINUX_ONLY: dict[Any, tuple[str, ...]] = {
    os: (
        "sched_getaffinity",
        "sched_setaffinity",
        "pidfd_open",
        "memfd_create",
        "pipe2",
        "getxattr",
        "getresuid",
        "setresuid",
    ),
    signal: ("pidfd_send_signal", "SIGRTMIN"),
    time: ("CLOCK_BOOTTIME",),
}
_FOLDERS = ("/proc/", "/sys/")
_NOT_INSTALLED = ("psutil", "supervisor", "tensorflow")


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    if event in ("open", "os.listdir", "os.scandir") and isinstance(arguments[0], (str, bytes)):
        path = os.fsdecode(arguments[0])
        if path.startswith(_FOLDERS):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    elif event == "import" and arguments[0].partition(".")[0] in _NOT_INSTALLED:
        raise ModuleNotFoundError(f"No module named {arguments[0]!r}", name=arguments[0])
    elif event == "ctypes.dlsym" and arguments[1] == "prctl":
        raise AttributeError("there is no prctl")
    elif event in ("socket.bind", "socket.connect") and arguments[1][:1] in ("\0", b"\0"):
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))


if sys.orig_argv[1:3] != ["-m", "pip"]:  # Pulumi asks pip for packages
    # Packages of others choose their code by the platform when they are imported.
    for _package in ("boto3", "docker", "pulumi", "pulumi_aws", "pulumi_docker"):
        importlib.import_module(_package)
    sysconfig.get_config_vars()  # of this Python, which was built on Linux
    for _module, _names in _LINUX_ONLY.items():
        for _name in _names:
            if hasattr(_module, _name):
                delattr(_module, _name)
    sys.platform = "darwin"
    sys.addaudithook(_refuse)
