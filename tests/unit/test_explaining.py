"""Why a cluster is as it is: causes first, each with its remedy."""

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.cases import plan, spec
from tests.unit.simulation import World
from tests.unit.test_report import NOON, failed, finished, noon, read, sight, waiting, world
from tfdeploy.backends.base import EngineTask, Sight
from tfdeploy.explaining import Facts, Finding, explain
from tfdeploy.outline import outline
from tfdeploy.remedies import after_end, of_engine
from tfdeploy.report import report

ALL = {"ps-0": True, "worker-0": True, "worker-1": True}
NO_IMAGE = "No such image: registry.example.com/team/train:1"


def facts(look: Sight, **more: Any) -> Facts:
    return Facts("p/s/mnist", read(look), look, "pulumi up --refresh", **more)


def why(look: Sight, hostname: str = "", **more: Any) -> list[Finding]:
    return explain(facts(look, **more), hostname)


def with_engine(look: Sight, **tasks: EngineTask) -> Sight:
    return replace(look, engine={**(look.engine or {}), **{name.replace("_", "-"): one for name, one in tasks.items()}})


def rejected(reason: str = NO_IMAGE, word: str = "rejected") -> EngineTask:
    return EngineTask(False, "", word, reason)


def restarting() -> World:
    made = world()
    made.exit("worker-1", 3)
    return made


def silent(engine: dict[str, bool] | None, *problems: str) -> Sight:
    return replace(sight(world(), NOON - 60, engine), problems=problems)


def nothing(*problems: str) -> Sight:
    return replace(sight(None, 0.0, {}), problems=problems)


def stopped() -> World:
    made = world()
    made.stop()
    return made


def overdue() -> World:
    made = noon()
    made.come("worker-0")
    made.wait(100_000)
    return made


NO_PS = with_engine(sight(waiting(), engine=ALL), ps_0=rejected())
NO_NODE = "no suitable node (scheduling constraints not satisfied on 1 node)"
LOST = replace(sight(world(), engine={**ALL, "worker-1": False}), machines={"box": "gone"})
BOOT = replace(sight(waiting(), engine={}), failures={"mnist-ps-0": "it ended itself\nboot: no network\nboot: end"})


@pytest.mark.parametrize(
    ("look", "says", "remedy"),
    [
        (NO_PS, f"ps-0 cannot start (rejected): {NO_IMAGE}. worker-0 waits for it.", "`docker pull"),
        (with_engine(sight(noon()), ps_0=rejected(NO_NODE, "scheduled")), "ps-0 cannot start (scheduled): no suitable", "`placement`"),
        (with_engine(sight(noon()), ps_0=rejected("odd words")), "ps-0 cannot start (rejected): odd words.", "pulumi up --refresh"),
        (sight(failed()), "The job failed: worker-1 failed (exit 3).", "`pulumi up`"),
        (with_engine(sight(overdue()), ps_0=rejected()), "The job failed: ps-0, worker-1 did not come within", "`pulumi up`"),
        (sight(restarting(), engine=ALL), "worker-1 ended (exit 3), and is restarted in 4 s (1 of 5).", "tfdeploy logs worker-1"),
        (silent(None), "The cluster's supervisord is gone", "`pulumi up --refresh`"),
        (silent(None, "ssh://box does not answer"), "The engine does not answer: ssh://box", "`docker_host`"),
        (silent(ALL), "The keeper does not answer since 2026-11-21 11:59:00Z.", "`pulumi up --refresh`"),
        (silent(ALL, f"the keeper is rejected: {NO_IMAGE}"), "The keeper does not answer since", "`docker pull"),
        (LOST, "The machine box is gone; ps-0, worker-0, worker-1 stood there.", "`pulumi up --refresh`"),
        (BOOT, "mnist-ps-0 could not boot: it ended itself.", "`pulumi up`"),
        (nothing(), "No run has been given, and no task stands.", "its first error"),
    ],
)  # fmt: skip
def test_what_is_wrong_comes_first_with_its_remedy(look: Sight, says: str, remedy: str) -> None:
    found = why(look)
    assert found[0].says.startswith(says)
    assert remedy in found[0].remedy
    assert found[0].wrong


@pytest.mark.parametrize(
    ("look", "more", "says"),
    [
        (sight(finished()), {}, "The job succeeded: worker-0, worker-1 succeeded. Nothing is wrong."),
        (sight(world(), engine=ALL), {}, "All 3 tasks run. Nothing is wrong."),
        (sight(world(), engine=ALL), {"serve": True}, "All 3 tasks serve. Nothing is wrong."),
        (
            sight(finished()),
            {"ended": NOON},
            "The cluster was destroyed at 2026-11-21 12:00:00Z. Its job had succeeded: worker-0, worker-1 succeeded.",
        ),
        (sight(world()), {"ended": NOON}, "The cluster was destroyed at 2026-11-21 12:00:00Z. Its job was not over."),
        (sight(noon(), engine=ALL), {}, "On the way are ps-0 (scheduled), worker-0 (scheduled), worker-1 (scheduled)."),
    ],
)
def test_where_nothing_is_wrong_it_says_how_it_is(look: Sight, more: dict[str, Any], says: str) -> None:
    found = why(look, **more)
    assert [one.says for one in found] == [says]
    assert not any(one.wrong for one in found)


def test_a_failed_task_tells_its_last_words_on_stderr() -> None:
    lines = [[1.0, 2, "Traceback"], [2.0, 1, "step 1"], [3.0, 2, "ModuleNotFoundError: No module named 'keras.layers'"]]
    found = why(sight(failed(), logs={"worker-1": lines}))
    assert [one.about for one in found] == ["", "worker-1"]
    assert found[1].says == "worker-1 failed with exit code 3."
    assert found[1].lines == ["Traceback", "ModuleNotFoundError: No module named 'keras.layers'"]
    assert "has keras to `requirements`" in found[1].remedy


def test_the_failure_of_a_destroyed_cluster_is_still_told() -> None:
    found = why(sight(failed()), ended=NOON)
    assert [one.about for one in found] == ["", "worker-1"]
    assert found[0].wrong


def test_a_barrier_that_was_not_reached_names_what_the_engine_said() -> None:
    found = why(with_engine(sight(overdue()), ps_0=rejected()))
    assert [one.about for one in found] == ["", "ps-0", ""]
    assert NO_IMAGE in found[1].says
    assert "`start_timeout`" in found[2].remedy


def test_one_task_that_waits_is_told_whom_for_and_why() -> None:
    found = why(NO_PS, "worker-0")
    assert found[0].about == "ps-0"
    assert found[-1] == Finding("worker-0", "worker-0 is waiting for ps-0.", wrong=True)


def test_nobody_waits_for_tensorboard() -> None:
    asked: dict[str, Any] = {"ps": 1, "workers": 1, "tensorboard": True}
    made = World(**asked)
    made.begin_at(NOON)
    made.come("worker-0")
    look = with_engine(sight(made, engine={"ps-0": True, "worker-0": True}), tensorboard_0=rejected())
    found = explain(Facts("p/s/mnist", report(outline(plan(**asked), spec(**asked)), look), look, "heal"))
    assert found[0].says == f"tensorboard-0 cannot start (rejected): {NO_IMAGE}."
    assert found[1].says == "On the way is ps-0 (scheduled). worker-0 wait for that."
    made.come("ps-0")
    made.exit("worker-0", 3)
    look = sight(made, engine={})
    found = explain(Facts("p/s/mnist", report(outline(plan(**asked), spec(**asked)), look), look, "heal"))
    assert [one.about for one in found] == ["", "worker-0"]


def test_one_task_that_runs_is_well() -> None:
    found = why(sight(world(), engine=ALL), "worker-0")
    assert [one.says for one in found] == ["All 3 tasks run. Nothing is wrong.", "worker-0 is running."]
    assert not any(one.wrong for one in found)


@pytest.mark.parametrize(
    ("reason", "word"),
    [
        (NO_IMAGE, "docker pull"),
        ("pull access denied for x, repository does not exist", "'image'"),
        ('"no suitable node (insufficient resources on 3 nodes)"', "'ps'"),
        ("driver failed: Bind for 0.0.0.0:80 failed: port is already allocated", "'port'"),
        ('exec: "pithon": executable file not found in $PATH', "`command`"),
        ("could not select device driver with capabilities: [[gpu]]", "GPUs"),
        ("invalid mount config for type bind: bind source path does not exist: /data", "`volumes`"),
        ("something else", ""),
    ],
)
def test_engines_words_have_remedies(reason: str, word: str) -> None:
    found = of_engine(reason, "ps")
    assert word in found
    assert bool(found) is bool(word)


TASK = {"job": "ps", "hostname": "ps-0", "state": "failed", "reason": "", "exit_code": 1, "signal": ""}


@pytest.mark.parametrize(
    ("task", "line", "word"),
    [
        ({}, "ModuleNotFoundError: No module named 'scipy.stats'", "has scipy to `requirements`"),
        ({}, "tfdeploy: port 2222 of 127.0.0.1 is taken by another program", "'port'"),
        ({"exit_code": 127}, "tfdeploy: cannot start 'pithon': [Errno 2]", "There is no program pithon"),
        ({"exit_code": 2}, "python: can't open file '/w/trian.py': [Errno 2]", "/w/trian.py is not in `code`"),
        ({"exit_code": 2}, "train.py: error: unrecognized arguments: --stpes=3", "correct `command`"),
        ({}, "MemoryError", "'memory'"),
        ({}, "FileNotFoundError: [Errno 2] No such file or directory: '/data/x'", "'/data/x' is not there"),
        ({"exit_code": 127}, "", "cannot be started"),
        ({"state": "killed", "signal": "SIGKILL", "exit_code": 137}, "", "dmesg"),
        ({"state": "out of memory", "signal": "SIGKILL"}, "", "{'memory': …}"),
        ({}, "{braces} %s", "`tfdeploy logs ps-0` shows all"),
    ],
)
def test_ends_have_remedies(task: dict[str, Any], line: str, word: str) -> None:
    assert word in after_end({**TASK, **task}, [line])
