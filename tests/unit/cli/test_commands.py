"""The verbs of the command, on clusters that only the registry and a made-up backend know."""

import io
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.clusters import ID, cluster_ref
from tests.unit.cli import calling
from tests.unit.cli.calling import registered
from tests.unit.report.test_update_wait import Looks, sight
from tests.unit.simulation import World, running
from tfdeploy import registry
from tfdeploy.agent.record.record import Record, RecordView
from tfdeploy.backends.base import ClusterRef, ObservedState, Route, TaskUsage
from tfdeploy.cli import output, snapshot
from tfdeploy.cli.commands import events, port_forward, top, wait
from tfdeploy.cli.completion import candidates
from tfdeploy.errors import NotFound, UsageError

ARGS: dict[str, Any] = {"ps": 1, "workers": 1, "tensorboard": True}
CLUSTER = cluster_ref("local", "/nowhere")
MOST_LOOKS = 5

Call = Callable[..., tuple[int, str]]


class Beheld(Looks):
    """What is looked at so often that whoever looks would never end is an error."""

    def observe(self, cluster: ClusterRef, token: str, ask: object, is_preview: bool = False) -> ObservedState:
        assert self.count < MOST_LOOKS, "it looks for ever"
        return super().observe(cluster, token, ask)


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(wait, "_POLL_SECONDS", 0.0)
    monkeypatch.setattr(events, "_POLL_SECONDS", 0.0)
    (tmp_path / "Pulumi.yaml").write_text("name: p\n")

    def calls(verb: str, *more: str) -> tuple[int, str]:
        done = calling.call([verb, "--cwd", str(tmp_path), "--stack", "dev", *more])
        return done.exit_code, done.stdout + done.stderr

    return calls


def stands(monkeypatch: pytest.MonkeyPatch, sights: Sequence[ObservedState], is_known: bool = True) -> None:
    """Have a cluster stand that looks like this, one look after the other."""
    registered(CLUSTER, ARGS if is_known else None)
    monkeypatch.setattr(snapshot, "load", lambda name: Beheld(sights))


def world(*ended: str) -> World:
    made = running(**ARGS)
    for hostname in ended:
        made.exit(hostname)
    return made


@pytest.mark.parametrize("verb", [["wait"], ["logs", "--follow"], ["events", "--follow"], ["show", "--watch"]])
def test_a_job_is_over_though_tensorboard_goes_on(
    verb: list[str], call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = world("worker-0")
    assert made.running() == "tensorboard-0/1"
    Record(tmp_path).save(made.job)
    stands(monkeypatch, [replace(sight(made), record_folder=str(tmp_path))])
    assert call(*verb)[0] == 0


@pytest.mark.parametrize("recorded", [True, False])
def test_who_waits_hears_that_the_cluster_was_destroyed(
    recorded: bool, call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = world()
    looks = Beheld([sight(made)])
    stands(monkeypatch, [])
    if recorded:
        kept = tmp_path / f"state/tfdeploy/retained/mnist-{ID}/20261121T000000Z/record"
        Record(kept).save(made.job)

    def load(name: str) -> Beheld:
        registry.mark_destroyed(CLUSTER)
        return looks

    monkeypatch.setattr(snapshot, "load", load)
    if recorded:
        code, said = call("wait")
        assert code == 1
        assert "p/dev/mnist: unknown" in said
    else:
        with pytest.raises(NotFound, match="was destroyed"):
            call("wait")


def test_tensorboard_is_found_where_only_the_job_tells_of_it(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    made = world()
    stands(monkeypatch, [sight(made)], is_known=False)
    route = Route("10.0.0.4", 6006, lambda: pytest.fail("nobody connects"), direct=True)
    monkeypatch.setattr(port_forward, "access", lambda backend: SimpleNamespace(route=lambda cluster, hostname: route))
    assert call("port-forward") == (0, "tensorboard-0: http://127.0.0.1:6006\n")
    stands(monkeypatch, [replace(sight(made), view=RecordView(made.now))], is_known=False)
    with pytest.raises(NotFound, match="has no run yet"):
        call("port-forward")
    refused = replace(sight(made), view=RecordView(made.now), problems=["secrets is forbidden: User me cannot get it"])
    stands(monkeypatch, [refused], is_known=False)
    with pytest.raises(NotFound, match=r"can be seen: secrets is forbidden: .* docs/kubernetes-role.yaml"):
        call("port-forward")


@pytest.mark.parametrize(("text", "ports"), [("8888", (8888, 8888)), ("9000:8888", (9000, 8888)), (":8888", (0, 8888))])
def test_ports_are_written_as_for_kubectl(text: str, ports: tuple[int, int]) -> None:
    assert port_forward.parse_ports(text) == ports


@pytest.mark.parametrize("text", ["", "0", "x", "8888:", "1:2:3", "65536", "65536:1", "-1"])
def test_what_is_not_a_port_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        port_forward.parse_ports(text)


@pytest.mark.parametrize("verb", "logs explain restart exec port-forward".split())  # noqa: SIM905
def test_names_are_completed(verb: str, call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stands(monkeypatch, [])
    words = [verb, "--cwd", str(tmp_path), "--stack", "dev"]
    assert candidates(words, "wor") == ["worker-0"]
    assert candidates([*words, "worker-0"], "wor") == []
    assert candidates([*words[:3], "-s"], "") == ["dev"]
    assert candidates([*words, "--cluster"], "mn") == ["mnist"]


@pytest.mark.parametrize(
    ("terminal", "shown"), [(True, "a table\n  of lines\n"), (False, "a \x1b[2Jtable\n  of lines\n")]
)
def test_what_others_say_cannot_move_the_terminal(terminal: bool, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, prints in (("stdout", output.print_result), ("stderr", output.print_message)):
        screen = io.StringIO()
        monkeypatch.setattr(screen, "isatty", lambda: terminal)
        monkeypatch.setattr(sys, name, screen)
        prints("a \x1b[2Jtable\n  of lines")
        assert screen.getvalue() == shown


def test_top_shows_the_use_of_each_task_where_that_is_known(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    stands(monkeypatch, [sight(world())])
    used = {"worker-0": TaskUsage(1.504, 3 << 29)}
    monkeypatch.setattr(top, "access", lambda backend: SimpleNamespace(usage=lambda cluster: used))
    lines = call("top")[1].splitlines()
    assert lines[0].split() == ["HOSTNAME", "MACHINE", "STATUS", "CPUS", "MEMORY"]
    assert [line.split()[-4:] for line in lines if line.startswith("worker-0")] == [["running", "1.50", "1.5", "GiB"]]
    assert [line.split()[-1] for line in lines if line.startswith("ps-0")] == ["running"]
    rows = {row["hostname"]: (row["cpus"], row["memory"]) for row in json.loads(call("top", "--json")[1])}
    assert (rows["worker-0"], rows["ps-0"]) == ((1.504, 3 << 29), (None, None))
