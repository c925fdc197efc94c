"""The tests' own Kubernetes: pods find each other on two nodes, nodes fail and return, and a killed run leaves no process."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.engine.images import ROOT
from tests.kube import cgroups, processes
from tests.kube.cluster import remove_remains
from tests.waiting import until

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


def test_a_cluster_whose_process_is_killed_leaves_no_process_and_the_next_one_removes_the_rest() -> None:
    with computer() as enter:
        before = outside(enter)
        process = subprocess.Popen(
            [*enter, sys.executable, "-m", "tests.kube", "--nodes=1"],
            env=ENVIRONMENT,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        printed = process.stdout.readline()
        folder = Path(printed.strip().removeprefix("export KUBECONFIG=")).parent
        assert processes.running_below(folder)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        until(lambda: not processes.running_below(folder), "no process remains")
        remove_remains()
        assert not folder.exists()
        assert not list(cgroups.ROOT.glob(f"*/{folder.name}"))
        after = outside(enter)
        # A mount in the copy of this computer's mounts goes when its folder is removed here, as an ended container's is.
        assert not Counter(after.pop("mounts")) - Counter(before.pop("mounts"))
        assert after == before


@contextmanager
def computer() -> Iterator[tuple[str, ...]]:
    """A network and mounts that no other test changes, as the beginning of a command in them."""
    stays = ["unshare", "--net", "--mount", "--", "sh", "-c", "ip link set lo up; echo; exec cat"]
    with subprocess.Popen(stays, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield ("nsenter", f"--target={process.pid}", "--net", "--mount", f"--wd={ROOT}", "--")


def outside(enter: tuple[str, ...]) -> dict[str, Any]:
    """What a kubelet, containerd and CNI change on a computer that is theirs."""
    seen = subprocess.run(
        [*enter, sys.executable, "-m", "tests.kube.outside"],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(seen.stdout)
    return found
