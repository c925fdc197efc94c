"""Programs that a cluster needs of this machine."""

import shutil
from pathlib import Path

from tests.debian import NotInstalled, install
from tests.engine.images import ROOT
from tools.provision import kubernetes

PACKAGES = ("containerd", "containernetworking-plugins", "etcd-server", "iproute2")
PROGRAMS = ("containerd", "/usr/lib/cni/bridge", "etcd", "ip")


def kube() -> Path:
    """The program with the parts of Kubernetes, which set-up builds; Debian's programs are installed where they are missing.

    Raises:
        NotInstalled: one is missing all the same.
    """
    if any(not shutil.which(name) for name in PROGRAMS):
        install(f"one of {', '.join(PROGRAMS)} is missing", PACKAGES)
    program = kubernetes.program(ROOT)
    if not program.exists():
        raise NotInstalled(f"{program} does not exist: `make setup-tests` builds it")
    return program
