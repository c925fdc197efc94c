"""Packages that are being installed: a note that other processes read, and that nothing is left of."""

import os
import subprocess
import sys

import pytest

from tests.clusters import cluster_ref
from tfdeploy.backends import requirements_status
from tfdeploy.backends.requirements_status import installing, noted

CLUSTER = cluster_ref(name="mnist")


@pytest.mark.parametrize(
    ("packages", "seconds", "text"),
    [
        (["tensorflow==2.15.*"], 40.0, "installing tensorflow==2.15.*, 40s"),
        (["a", "b", "c", "d", "e"], 0.0, "installing a, b, c and 2 more, 0s"),
        (["a"], -5.0, "installing a, 0s"),
    ],
)
def test_what_is_installed_and_for_how_long(
    packages: list[str], seconds: float, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfdeploy.backends.requirements_status.time.time", lambda: 1000.0)
    assert installing(CLUSTER, 1000.0) == ""
    with noted(CLUSTER, packages):
        assert installing(CLUSTER, 1000.0 + seconds) == text
        assert installing(cluster_ref(name="other"), 1000.0) == ""
    assert installing(CLUSTER, 1000.0) == ""


def test_the_note_of_a_process_that_was_killed_does_not_count() -> None:
    code = (
        "import os, signal; from tests.unit.backends.test_requirements_status import CLUSTER, noted\n"
        "with noted(CLUSTER, ['a']): os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", code], env=dict(os.environ), check=False)
    assert list(requirements_status._folder().iterdir())
    assert installing(CLUSTER, 0.0) == ""
