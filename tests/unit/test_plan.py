"""Spec and machines to a plan: goldens of its text, and what makes a run another one."""

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.cases import BOX, check_golden, plan, spec
from tfdeploy.agent.states import Job, Verdict
from tfdeploy.errors import PlacementError, SpecError
from tfdeploy.placement import Machine
from tfdeploy.plan import Given, Plan, consequences, make_plan


@pytest.mark.parametrize(
    ("golden", "args"),
    [
        ("plan-1-ps-1-worker", {"ps": 1, "workers": 1}),
        ("plan-2-ps-3-workers", {"ps": 2, "workers": 3}),
        ("plan-chief-ps-workers-evaluator", {"chief": 1, "ps": 1, "workers": 2, "evaluator": 1}),
        ("plan-chief-alone", {"chief": 1}),
        (
            "plan-gpu-workers",
            {"ps": 1, "workers": 2, "gpu_workers": 2, "jobs": {"gpu_worker": {"memory": "4GiB"}}},
        ),
        ("plan-master", {"chief": 1, "master": True, "workers": 1, "evaluator": 1}),
        ("plan-serve", {"serve": True, "ps": 1, "workers": 2}),
        (
            "plan-client-inside",
            {"serve": True, "chief": 1, "ps": 1, "workers": 2, "command": ["python", "client.py", "{worker_hosts}"]},
        ),
        (
            "plan-placeholders",
            {
                "command": ["python", "mnist_replica.py", "--ps={ps_hosts}", "--task={job_name}:{task_index}", "{b}"],
                "ps": 1,
                "workers": 2,
            },
        ),
        (
            "plan-folders-and-limits",
            {
                "command": ["python", "train.py", "--data={data_dir}", "--logs={train_dir}", "--c={context}"],
                "context": {"steps": 5},
                "data_dir": "/data",
                "ps": 1,
                "workers": 2,
                "jobs": {"worker": {"gpus": 1, "memory": "2GiB", "cpus": 1.5, "port": 2222}},
            },
        ),
    ],
)
def test_the_plan_reads_as_kept(golden: str, args: dict[str, Any]) -> None:
    check_golden(golden, str(plan(**args)))


def test_the_run_is_plain_json_with_all_that_the_keeper_needs() -> None:
    run = plan(ps=1, workers=1, env={"A": "1"}, restart={"maximum": 2, "backoff": "4s", "on": ["any"]}, code="c0de").run
    assert dict(run) == {
        "command": ["python", "train.py"],
        "code": "c0de",
        "env": {"A": "1"},
        "requirements": [],
        "data_dir": "",
        "context": "{}",
        "resume_from": "",
        "id": run["id"],
        "train_dir": "/train",
        "serve": False,
        "success": "all workers",
        "grace": 10.0,
        "start_timeout": 300.0,
        "path": [],
        "tasks": [
            {"hostname": "ps-0", "job": "ps", "index": 0},
            {"hostname": "worker-0", "job": "worker", "index": 0},
        ],
        "jobs": {
            "ps": {"env": {}, "restart": {"maximum": 2, "backoff": 4.0, "on": ["any"]}},
            "worker": {"env": {}, "restart": {"maximum": 2, "backoff": 4.0, "on": ["any"]}},
        },
    }


BASE: dict[str, Any] = {"workers": 2, "ps": 1}


@pytest.mark.parametrize(
    "change",
    [
        {"command": ["python", "other.py"]},
        {"command": ["python", "train.py", "--steps=3"]},
        {"env": {"A": "1"}},
        {"jobs": {"worker": {"env": {"A": "1"}}}},
        {"data_dir": "/other"},
        {"context": {"a": 1}},
        {"requirements": ["six"]},
        {"run_id": "again"},
        {"resume_from": "0123"},
        {"code": "another-archive"},
    ],
    ids=str,
)
def test_a_run_is_a_new_one_when_what_it_trains_with_changes(change: dict[str, Any]) -> None:
    assert plan(**{**BASE, **change}).run["id"] != plan(**BASE).run["id"]


def test_a_run_is_a_new_one_when_its_chief_gets_the_old_name() -> None:
    assert plan(chief=1, master=True).run["id"] != plan(chief=1).run["id"]


@pytest.mark.parametrize(
    "change",
    [
        {"workers": 3},
        {"chief": 1},
        {"wait": "0"},
        {"log_lines": 3},
        {"metrics": {"a": "b"}},
        {"grace": "1s"},
        {"restart": {"maximum": 0}},
        {"success": "worker 0"},
        {"secrets": {"TOKEN": "x"}},
        {"jobs": {"worker": {"memory": "1GiB", "cpus": 1, "gpus": 1, "port": 2222}}},
    ],
    ids=str,
)
def test_a_run_stays_the_same_when_only_its_surroundings_change(change: dict[str, Any]) -> None:
    assert plan(**{**BASE, **change}).run["id"] == plan(**BASE).run["id"]


def test_the_same_command_is_another_run_where_the_others_serve() -> None:
    client: dict[str, Any] = {"chief": 1, "workers": 1, "command": ["python", "train.py"]}
    assert plan(serve=True, **client).run["id"] != plan(**client).run["id"]
    assert plan(serve=True, ps=2, **client).run["id"] == plan(serve=True, **client).run["id"]


def test_a_hostname_that_dns_would_refuse_is_refused() -> None:
    with pytest.raises(SpecError) as refusal:
        make_plan(replace(spec(workers=1), name="a" * 60), [BOX], Given(train_dir="/train"))
    wrong = "with 'worker-0' it has more than 63 characters. Choose a shorter one."
    assert str(refusal.value) == f"TensorFlowCluster {'a' * 60!r}: its name: {wrong}"


def job(decided: bool = False, **args: Any) -> dict[str, Any]:
    """The record of a job that such arguments made."""
    made = Job(dict(plan(**args).run), 0.0)
    made.verdict = Verdict("succeeded", "", 0.0) if decided else None
    return made.to_dict()


@pytest.mark.parametrize(
    ("before", "said"),
    [
        (None, []),
        (job(**BASE), []),
        (job(**BASE, wait="0", grace="1s"), []),
        (job(ps=1, workers=1), ["worker-1 comes: all tasks start again with the new flags"]),
        (job(chief=1, workers=2), ["chief-0 goes, ps-0 comes: all tasks start again with the new flags"]),
        (job(decided=True, ps=1, workers=3), ["worker-2 goes: the run is finished, so nothing starts"]),
        (job(decided=True, **BASE), []),
    ],
)
def test_a_preview_says_what_the_plan_does_to_the_job_that_stands(
    before: dict[str, Any] | None, said: list[str]
) -> None:
    assert consequences(plan(**BASE), before) == said


def test_a_preview_says_that_another_run_takes_the_place_of_the_one_that_stands() -> None:
    before = job(**BASE, run_id="earlier")
    old, new = before["run"]["id"], plan(**BASE).run["id"]
    said = f"run {old} gives way to run {new}: all tasks start anew, in a train_dir of their own"
    assert consequences(plan(**BASE), before) == [said]


def standing_plan(machines: list[Machine], standing: dict[str, str], **args: Any) -> Plan:
    """A plan of containers that stand on these machines."""
    return make_plan(spec(backend="docker", **args), machines, Given(train_dir="/train"), standing)


AWAY = replace(BOX, name="away", ready=False)
ON_AWAY = {"worker-0": "box", "worker-1": "away"}


def test_a_task_moves_from_a_machine_that_is_away() -> None:
    made = standing_plan([BOX, AWAY], ON_AWAY, workers=2)
    assert [task.machine for task in made.tasks] == ["box", "box"]
    assert made.machines == (BOX, AWAY)


def test_a_task_that_no_other_machine_may_take_waits_for_its_own() -> None:
    made = standing_plan([BOX, AWAY], ON_AWAY, workers=2, placement=["hostname:UNIQUE"])
    assert [task.machine for task in made.tasks] == ["box", "away"]
    assert made.warnings == ("worker-1 waits for away: no machine that answers may take it",)


def test_a_new_task_is_never_placed_on_a_machine_that_is_away() -> None:
    with pytest.raises(PlacementError):
        standing_plan([BOX, AWAY], {}, workers=2, placement=["hostname:UNIQUE"])


def test_a_task_that_waits_for_its_machine_keeps_its_gpus() -> None:
    gpus = {"worker": {"gpus": 2, "placement": ["hostname:IS:away"]}}
    made = standing_plan([BOX, AWAY], {"worker-0": "away"}, workers=1, jobs=gpus)
    assert made.tasks[0].gpus == ("0", "1")
