"""The final id of a run with secret variables, what the update refuses that only it knows, and what is submitted where."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.clusters import cluster_ref
from tests.unit.cases import plan, spec
from tfdeploy import identity, registry, resources
from tfdeploy.backends import move_record
from tfdeploy.errors import SpecError
from tfdeploy.report.expected_state import expected_state
from tfdeploy.resources import CleanupProvider, RunProvider, TaskProvider, _final
from tfdeploy.spec.environment import SecretText

CANARY = "canary-91b2aa"


def final(values: dict[str, Any], secret_env: bool = True, token: str = "t" * 32) -> dict[str, Any]:
    """The run that the controller gets, where `KEY` is a variable of `env` or one of `secrets`."""
    args: dict[str, Any] = {"env": {"KEY": SecretText("")}} if secret_env else {}
    run = plan(workers=1, **args).run.to_dict()
    return dict(_final({"cluster": {"name": "mnist"}, "token": token, "run": run, "secrets": values})["run"])


def test_a_secret_variable_counts_in_the_runs_name_by_the_clusters_token() -> None:
    ids = [final({"KEY": CANARY})["id"], final({"KEY": "other"})["id"], final({"KEY": CANARY}, token="u" * 32)["id"]]
    assert len({*ids, plan(workers=1, env={"KEY": SecretText("")}).run.id}) == 4
    assert final({"KEY": CANARY}) == final({"KEY": CANARY, "FILE": "does not count"})
    assert CANARY not in str(final({"KEY": CANARY}))


def test_secrets_do_not_count() -> None:
    assert final({"KEY": CANARY}, secret_env=False)["id"] == plan(workers=1).run.id


@pytest.mark.parametrize("secret_env", [False, True])
@pytest.mark.parametrize("value", [7, None, [CANARY], {"a": CANARY}, f"{CANARY}\0", CANARY * 20_000])
def test_an_output_that_is_not_a_valid_secret_is_refused_without_showing_it(secret_env: bool, value: Any) -> None:
    with pytest.raises(SpecError, match=r"mnist: (env|secrets)\.KEY: ") as refusal:
        final({"KEY": value}, secret_env)
    assert CANARY not in str(refusal.value)


BASE: dict[str, Any] = {"ps": 1, "workers": 2}


class Runner:
    """A backend's task runner that notes what is asked of it."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def submit_run(self, props: Any) -> dict[str, str]:
        self.calls.append("submit")
        return {"submitted_at": "now"}

    def bring_here(self, *_: Any) -> list[str]:
        self.calls.append("bring")
        return []

    def stop_run(self, props: Any) -> None:
        self.calls.append("stop")


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runner:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    made = Runner()
    monkeypatch.setattr(resources, "load", lambda backend: SimpleNamespace(runner=made))
    expected = expected_state(plan(**BASE), spec(**BASE))
    registry.write(registry.Entry(cluster_ref(), "/program", expected))
    return made


def props(**args: Any) -> dict[str, Any]:
    run = plan(**{**BASE, **args}).run.to_dict()
    return identity.with_format({"cluster": cluster_ref(), "token": "t" * 32, "run": run, "secrets": {}})


def test_a_run_that_moves_is_submitted_after_its_record(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    run = props(code="code")
    monkeypatch.setattr(move_record, "bring_here", runner.bring_here)
    RunProvider().update("", run, {**run, "moved_from": [cluster_ref()]})
    assert runner.calls == ["bring", "submit"]


def test_another_run_alone_changes_no_task() -> None:
    before, after = ({"hostname": "ps-0", "memory": 0, "run": run} for run in ("r1", "r2"))
    provider = TaskProvider()
    assert not provider.diff("ps-0", before, after).changes
    assert not provider.diff("ps-0", {"hostname": "ps-0", "memory": 0}, after).changes
    assert provider.diff("ps-0", before, {**after, "memory": 1}).changes


def test_a_run_that_moves_is_submitted_in_each_update() -> None:
    news = {"cluster": {"id": "a", "backend": "local", "home": "/x"}, "moved_from": [{"id": "a"}]}
    assert RunProvider().diff("", news, news).changes
    assert not RunProvider().diff("", news, {"cluster": news["cluster"]}).changes


DYNAMIC = {
    "Cleanup": CleanupProvider,
    "Run": RunProvider,
    "Task": TaskProvider,
}


def own(kind: str, **args: Any) -> dict[str, Any]:
    more = {"hostname": "worker-0"} if kind == "Task" else {"retain": {"volumes": False, "record": False}}
    return {**props(**args), "place": {"id": ""}, **more}


@pytest.fixture
def deleted(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is deleted at the place; the provider's process is new."""
    monkeypatch.setattr(resources, "_declared", {})
    monkeypatch.setattr(resources, "load", lambda _: SimpleNamespace(runner=runner, machine_provider=None))
    calls: list[str] = []
    runner.stop_run = lambda props: calls.append("Run")  # type: ignore[method-assign]
    runner.delete_all = lambda *_: calls.append("Cleanup")  # type: ignore[attr-defined]
    runner.create_task = lambda _: {"created_at": "now"}  # type: ignore[attr-defined]
    runner.delete_task = lambda task: calls.append(f"Task {task['is_replaced']}")  # type: ignore[attr-defined]
    return calls


@pytest.mark.parametrize("kind", DYNAMIC)
def test_what_the_program_has_is_not_deleted(kind: str, deleted: list[str]) -> None:
    """By a deletion that an earlier update has left, and by one of a predecessor of what was created."""
    mine, provider = own(kind), DYNAMIC[kind]()
    assert provider.check(mine, mine).inputs == mine
    provider.delete("", mine)
    provider.check({}, mine)
    provider.create(mine)
    DYNAMIC[kind]().delete("", {**mine, "token": "of its predecessor"})
    assert deleted == []


@pytest.mark.parametrize("kind", DYNAMIC)
def test_what_the_program_does_not_have_is_deleted(kind: str, deleted: list[str]) -> None:
    mine, provider = own(kind), DYNAMIC[kind]()
    elsewhere = {**mine, "cluster": {**mine["cluster"], "home": "/elsewhere"}}
    provider.check(elsewhere, elsewhere)
    provider.delete("", mine)
    assert deleted == ["Task False" if kind == "Task" else kind]


@pytest.mark.parametrize(("kind", "calls"), [("Cleanup", []), ("Run", []), ("Task", ["Task True"])])
def test_only_a_task_is_deleted_before_it_is_created(kind: str, calls: list[str], deleted: list[str]) -> None:
    mine, provider = own(kind), DYNAMIC[kind]()
    provider.check({}, mine)
    provider.delete("", mine)
    assert deleted == calls
    changed = provider.diff("", mine, {**mine, "token": "another"})
    assert (changed.changes, changed.delete_before_replace) == (True, False), "what Pulumi makes a replacement"
    moved = provider.diff("", mine, {**mine, "cluster": {**mine["cluster"], "home": "/elsewhere"}})
    assert (moved.replaces, moved.delete_before_replace) == (["cluster"], True)
