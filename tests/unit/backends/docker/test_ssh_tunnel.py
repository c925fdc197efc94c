"""The socket of a tunnel: those of processes that ended are removed, whoever has their id now."""

import os
from pathlib import Path

import pytest

from tfdeploy.backends.docker.engine import ssh_tunnel


def test_a_socket_of_an_id_that_another_user_has_now_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, foreign, ended = (tmp_path / f"ssh-{pid}-0.sock" for pid in (os.getpid(), 1, 2))
    for socket in (own, foreign, ended):
        socket.touch()

    def kill(pid: int, _: int) -> None:
        if pid != os.getpid():
            raise PermissionError if pid == 1 else ProcessLookupError

    monkeypatch.setattr(ssh_tunnel, "runtime_root", lambda: tmp_path)
    monkeypatch.setattr(os, "kill", kill)
    assert ssh_tunnel._socket_path().parent == tmp_path
    assert list(tmp_path.iterdir()) == [own]


def test_two_connections_share_no_socket() -> None:
    """That of a machine that was replaced still exists, and leads nowhere."""
    assert ssh_tunnel._socket_path() != ssh_tunnel._socket_path()
