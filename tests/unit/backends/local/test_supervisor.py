"""The lock of a cluster, and which processes are a cluster's."""

import fcntl
import os
import subprocess
from pathlib import Path
from typing import IO

import pytest

from tfdeploy.backends.local.paths import Places
from tfdeploy.backends.local.supervisor import MARK, Supervisor, marked


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(str(tmp_path / "cluster"))


def test_a_lock_whose_file_was_deleted_meanwhile_is_taken_again(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process deletes the cluster while this one waits for its lock."""
    real_flock = fcntl.flock
    opened: list[IO[str]] = []

    def flock(lock: IO[str], operation: int) -> None:
        if not opened:
            places.lock.unlink()
        opened.append(lock)
        real_flock(lock, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    with Supervisor(places).locked():
        with places.lock.open("w") as other, pytest.raises(BlockingIOError):
            real_flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        places.lock.unlink()


def test_a_shell_that_has_the_mark_is_not_the_clusters_but_what_left_its_session_is(places: Places) -> None:
    env = {**os.environ, MARK: str(places.home)}
    typed = subprocess.Popen(["sleep", "600"], env=env)
    orphan = subprocess.Popen(["sleep", "600"], env=env, start_new_session=True)
    try:
        assert [process.pid for process in marked(places.home)] == [orphan.pid]
    finally:
        for process in (typed, orphan):
            process.kill()
            process.wait()
