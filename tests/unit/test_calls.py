"""What one call of `run` keeps, and what it takes away again."""

import fcntl
import os
from pathlib import Path

import pytest

from tfdeploy import registry
from tfdeploy.cli import calls
from tfdeploy.cli.calls import Call, Engine
from tfdeploy.errors import BackendError, SpecError


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def state_of(stack: str) -> list[Path]:
    """What Pulumi keeps of a stack in files."""
    kept = calls.home() / "backend/.pulumi"
    states = [kept / "stacks/tfdeploy-run" / f"{stack}.json{end}" for end in ("", ".bak", ".attrs")]
    parts = [kept / part / "tfdeploy-run" / stack / "a.json" for part in ("history", "backups", "locks/organization")]
    for path in (*states, *parts):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return [*states, *parts]


@pytest.mark.parametrize("name", ["stacks", "locks", "organization", "tfdeploy-run", "run"])
def test_whatever_a_run_is_called_only_its_own_state_is_forgotten(name: str) -> None:
    Call("run-1").begin().close()
    mine, hers = state_of(name), state_of("run-1")
    Call(name).forget()
    assert not any(path.exists() for path in mine)
    assert all(path.exists() for path in hers)


def test_the_engine_is_told_of_the_stacks_own_login_and_not_of_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, str] = {}
    monkeypatch.setattr("subprocess.Popen", lambda *_, env, **__: given.update(env))
    monkeypatch.setenv("PULUMI_BACKEND_URL", "https://api.pulumi.com")
    call = Call("run-1")
    call.begin().close()
    Engine(call, shown=False).start("up")
    monkeypatch.setattr(os, "environ", given)
    assert registry.login() == f"file://{calls.home() / 'backend'}"


def test_a_call_that_was_cut_short_while_it_was_written_is_named() -> None:
    call = Call("run-1")
    call.begin().close()
    call.path.write_text('{"stack": ')
    with pytest.raises(BackendError, match=f"{call.path} is torn"):
        calls.known("run-1")


def test_a_call_is_abandoned_when_nobody_is_at_work_on_it() -> None:
    call = Call("run-1", {"workers": 2})
    with call.begin():
        assert calls.known("run-1") == call
        assert not calls.known("run-1").abandoned
        with pytest.raises(SpecError, match="stands"):
            call.begin()
    assert calls.known("run-1").abandoned
    assert not Call("run-1", keep=True).abandoned
    with call.lock.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # as the engine at work does
        assert not call.abandoned
