"""Kubernetes for the tests: apiserver, controller-manager, scheduler and kubelet as one program, built from Go modules."""

import re
from pathlib import Path

from tools.provision import go_programs
from tools.provision.engine import Engine, cache_folder
from tools.provision.steps import SetupError

PROGRAM = "tfdeploy-test-kube"
VERSION = "k8s.io/component-base/version"


def module(root: Path) -> go_programs.Module:
    """What the program is built from."""
    folder = root / "tools" / "kubernetes"
    pinned = re.search(r"k8s\.io/kubernetes v((\d+)\.(\d+)\.\d+)", (folder / "go.mod").read_text())
    if not pinned:
        raise SetupError(f"{folder / 'go.mod'} does not name k8s.io/kubernetes")
    version, major, minor = pinned.groups()
    stamps = {"gitVersion": f"v{version}", "gitMajor": major, "gitMinor": minor}
    flags = " ".join(("-s -w", *(f"-X {VERSION}.{name}={value}" for name, value in stamps.items())))
    return go_programs.Module(folder, {PROGRAM: "."}, version, flags)


def program(root: Path) -> Path:
    """Where the built program is."""
    return cache_folder() / f"kubernetes-{module(root).release}" / "bin" / PROGRAM


def provide(root: Path, _: Engine) -> str:
    """Build it; returns its folder.

    Raises:
        SetupError: it cannot be built.
    """
    folder = program(root).parent
    go_programs.ensure(folder.parent, module(root))
    return str(folder)
