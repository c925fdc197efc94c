"""Spec and machines to a plan: goldens of its text, and what makes a run another one."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.cases import BOX, check_golden, inventory, plan, plan_text, spec
from tfdeploy.agent.model.run_spec import RestartPolicy, RunJob, RunSpec, TaskSpec
from tfdeploy.agent.model.run_state import TASK_FAILED, TASKS_SUCCEEDED, RunResult, RunState
from tfdeploy.errors import PlacementError, SpecError
from tfdeploy.plan.plan import Plan, make_plan, starts_new_run
from tfdeploy.plan.scheduler import Machine
from tfdeploy.spec.environment import SecretText
from tfdeploy.spec.unknown_values import Unknown, is_known


@pytest.mark.parametrize(
    ("golden", "args"),
    [
        ("plan-2-ps-3-workers", {"ps": 2, "workers": 3}),
        ("plan-chief-ps-workers-evaluator", {"chief": 1, "ps": 1, "workers": 2, "evaluator": 1}),
        ("plan-chief-alone", {"chief": 1}),
        ("plan-tensorboard", {"ps": 1, "workers": 2, "tensorboard": True}),
        ("plan-gpu-workers", {"ps": 1, "workers": 2, "gpu_workers": 2, "jobs": {"gpu_worker": {"memory": "4GiB"}}}),
        ("plan-elastic", {"ps": 1, "workers": 1, "elastic": {"max": 3}}),
        ("plan-master", {"chief": 1, "tf_config_master": True, "workers": 1, "evaluator": 1}),
        ("plan-serve", {"standalone_servers": True, "ps": 1, "workers": 2}),
        (
            "plan-client-inside",
            {
                "standalone_servers": True,
                "chief": 1,
                "ps": 1,
                "workers": 2,
                "command": ["python", "client.py", "{worker_hosts}"],
            },
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
    check_golden(golden, plan_text(plan(**args)))


def test_the_run_is_plain_json_with_all_that_the_controller_needs() -> None:
    run = plan(ps=1, workers=1, env={"A": "1"}, restart={"maximum": 2, "backoff": "4s", "on": ["any"]}, code="c0de").run
    restart = RestartPolicy(2, 4.0, ["any"])
    assert run == RunSpec(
        id=run.id,
        tasks=[TaskSpec("ps-0", "ps", 0), TaskSpec("worker-0", "worker", 0)],
        jobs={"ps": RunJob(restart=restart), "worker": RunJob(restart=restart)},
        command=["python", "train.py"],
        code="c0de",
        env={"A": "1"},
        train_dir="/train",
        context="{}",
        success="worker-0",
        worker_timeout=60.0,
        grace=10.0,
        start_timeout=0.0,
    )
    assert RunSpec.from_dict(json.loads(json.dumps(run.to_dict()))) == run


def test_the_tasks_of_a_job_have_ports_from_the_chosen_one_on_and_others_choose_theirs() -> None:
    args: dict[str, Any] = {"ps": 2, "workers": 2, "jobs": {"worker": {"port": 2222}, "ps": {"port": 3333}}}
    assert [task.port for task in plan(**args).tasks] == [3333, 3334, 2222, 2223]
    assert [task.port for task in plan(**{**args, "jobs": {}}).tasks] == [0, 0, 0, 0]
    assert plan(**args).run.worker_port == 0
    assert plan(**args, elastic={"max": 4}).run.worker_port == 2222


BASE: dict[str, Any] = {"workers": 2, "ps": 1}


@pytest.mark.parametrize(
    "change",
    [
        {"command": ["python", "other.py"]},
        {"env": {"A": "1"}},
        {"jobs": {"worker": {"env": {"A": "1"}}}},
        {"data_dir": "/other"},
        {"context": {"a": 1}},
        {"requirements": ["six"]},
        {"run_id": "again"},
        {"resume_from": "0123"},
        {"code": "another-archive"},
        {"flags": "never"},
        {"chief": 1, "tf_config_master": True},
    ],
    ids=str,
)
def test_a_run_is_a_new_one_when_what_it_trains_with_changes(change: dict[str, Any]) -> None:
    assert plan(**{**BASE, **change}).run.id != plan(**BASE).run.id


@pytest.mark.parametrize(
    "change",
    [
        {"workers": 3},
        {"chief": 1},
        {"flags": "auto"},
        {"wait": "0"},
        {"log_lines": 3},
        {"metrics": {"a": "b"}},
        {"metrics": {"a": "b"}, "until": {"a": ">= 1"}},
        {"stop_grace_period": "1s"},
        {"restart": {"maximum": 0}},
        {"success": "all-workers"},
        {"worker_timeout": "5m"},
        {"secrets": {"TOKEN": "x"}},
        {"jobs": {"worker": {"memory": "1GiB", "cpus": 1, "gpus": 1, "port": 2222}}},
    ],
    ids=str,
)
def test_a_run_stays_the_same_when_only_its_surroundings_change(change: dict[str, Any]) -> None:
    assert plan(**{**BASE, **change}).run.id == plan(**BASE).run.id


def test_a_secret_variable_is_named_in_the_run_and_has_no_value_in_the_plan() -> None:
    args = {**BASE, "env": {"KEY": SecretText("canary")}}
    made = plan(**args)
    assert made.run.secret_env == ["KEY"]
    assert "canary" not in json.dumps(made.run.to_dict())
    assert made.run.id != plan(**BASE).run.id
    assert "run <the run's id, which depends on secret values of `env`: known after the update>" in made.summary


def test_the_final_id_of_a_run_with_secret_variables_is_no_change() -> None:
    args = {**BASE, "env": {"KEY": SecretText("canary")}}
    before = plan(**args).run
    final = RunState(replace(before, id="0123456789ab", content_id=before.id), 0.0)
    assert changes(final, **args) == []
    assert changes(final, **{**args, "run_id": "again"}) != []


def test_the_same_command_is_another_run_where_the_others_serve() -> None:
    client: dict[str, Any] = {"chief": 1, "workers": 1, "command": ["python", "train.py"]}
    assert plan(standalone_servers=True, **client).run.id != plan(**client).run.id
    assert plan(standalone_servers=True, ps=2, **client).run.id == plan(standalone_servers=True, **client).run.id


def test_a_hostname_that_dns_would_refuse_is_refused() -> None:
    asked = replace(spec(workers=1), name="a" * 60)
    with pytest.raises(SpecError) as refusal:
        make_plan(asked, inventory(asked))
    wrong = "with 'worker-0' it has more than 63 characters. Choose a shorter one."
    assert str(refusal.value) == f"TensorFlowCluster {'a' * 60!r}: its name: {wrong}"


def job(decided: bool = False, **args: Any) -> RunState:
    made = RunState(plan(**args).run, 0.0)
    made.result = RunResult("succeeded", TASKS_SUCCEEDED, 0.0) if decided else None
    return made


def test_a_run_is_new_when_it_replaces_another_and_the_record_does_not_have_it() -> None:
    asked, later = spec(**BASE), job(**BASE, run_id="later")
    rows: list[tuple[RunState | None, dict[str, str], bool]] = [
        (None, {}, False),
        (job(**BASE), {}, False),
        (later, {}, True),
        (later, {plan(**BASE).run.id: ""}, False),
    ]
    for run, results, is_new in rows:
        has = inventory(asked, run=run, results=results)
        assert starts_new_run(make_plan(asked, has), has) == is_new


RESTART = "(all tasks restart with the new host lists)"


def changes(run: RunState | None, results: Mapping[str, str] | None = None, **args: Any) -> list[str]:
    """What a plan of these arguments changes in this run, as a preview prints it."""
    asked = spec(**args)
    return [str(change) for change in make_plan(asked, inventory(asked, run=run, results=results or {})).changes]


@pytest.mark.parametrize(
    ("before", "said"),
    [
        (job(ps=1, workers=2, elastic={"max": 8}), ["+ worker-2, worker-3  workers 2 -> 4  (no restart: the other tasks continue)"]),
        (job(ps=1, workers=5, elastic={"max": 8}), ["- worker-4  workers 5 -> 4  (no restart: the other tasks continue)"]),
        (job(ps=1, workers=4, elastic={"max": 4}), [f"~ run  elastic.max 4 -> 8  {RESTART}"]),
        (job(ps=1, workers=4), [f"~ run  elastic.max none -> 8  {RESTART}"]),
        (
            job(ps=1, workers=3, elastic={"max": 4}),
            [f"~ run  elastic.max 4 -> 8  {RESTART}", f"+ worker-3  workers 3 -> 4  {RESTART}"],
        ),
        (job(ps=2, workers=4, elastic={"max": 8}), [f"- ps-1  {RESTART}"]),
        (job(decided=True, ps=1, workers=3, elastic={"max": 8}), ["+ worker-3  workers 3 -> 4  (the run is finished: nothing starts)"]),
        (job(decided=True, ps=1, workers=4, elastic={"max": 4}), []),
    ],
)  # fmt: skip
def test_a_preview_of_an_elastic_cluster_says_what_restarts(before: RunState, said: list[str]) -> None:
    assert changes(before, ps=1, workers=4, elastic={"max": 8}) == said
    assert changes(job(**BASE, elastic={"max": 4}), **BASE) == [f"~ run  elastic.max 4 -> none  {RESTART}"]


@pytest.mark.parametrize(("before", "said"), [(2, "+ data-worker-2"), (4, "- data-worker-3")])
def test_a_preview_of_another_number_of_data_workers_says_that_the_others_continue(before: int, said: str) -> None:
    running = job(**BASE, data_service={"workers": before})
    assert changes(running, **BASE, data_service={"workers": 3}) == [f"{said}  (no restart: the other tasks continue)"]


def test_a_preview_says_nothing_where_nothing_restarts() -> None:
    assert changes(job(**BASE, wait="0", stop_grace_period="1s"), **BASE) == []
    assert changes(job(decided=True, **BASE), **BASE) == []


def test_a_preview_says_that_a_failed_run_does_not_start() -> None:
    before = job(decided=True, ps=1, workers=3)
    before.result = RunResult("failed", TASK_FAILED, 0.0)
    assert changes(before, **BASE) == ["- worker-2  (the run has failed: nothing starts)"]


@pytest.mark.parametrize(
    ("result", "effect"),
    [
        (
            "failed",
            "this run has failed before: nothing starts, and its result is reported. Another `run_id` trains again",
        ),
        ("", "this run was replaced before it ended: it continues, in its own train_dir"),
    ],
)
def test_a_preview_says_what_an_earlier_run_does(result: str, effect: str) -> None:
    before = job(**BASE, run_id="later")
    old, new = before.spec.id, plan(**BASE).run.id
    assert changes(before, {new: result, old: ""}, **BASE) == [f"~ run  {old} -> {new}  ({effect})"]


def test_values_of_secrets_are_a_condition_of_what_an_earlier_run_does() -> None:
    args = {**BASE, "env": {"KEY": SecretText("a")}}
    new = plan(**args).run.id
    (line,) = changes(job(**BASE), {new: "succeeded"}, **args)
    assert "(with the same secrets, this run has succeeded before: nothing starts" in line


def standing_plan(machines: list[Machine], standing: dict[str, str], **args: Any) -> Plan:
    asked = spec(backend="docker", **args)
    return make_plan(asked, inventory(asked, *machines, train_dir="/train", task_machines=standing))


def test_a_cluster_that_places_tasks_itself_needs_no_machine() -> None:
    asked = spec(ps=1, workers=2, container={"placement": ["hostname:UNIQUE"]}, jobs={"worker": {"gpus": 2}})
    made = make_plan(asked, inventory(asked, machines=(), places_tasks=True))
    assert {task.machine for task in made.needed_tasks} == {""}
    assert (made.needed_machines, made.placement, made.warnings) == ((), [], ())
    assert [len(task.gpus) for task in made.tasks] == [0, 2, 2]


AWAY = replace(BOX, name="away", ready=False)
ON_AWAY = {"worker-0": "box", "worker-1": "away"}
SILENT = replace(AWAY, responds=False)


@pytest.mark.parametrize(
    ("machines", "placement", "places", "warning"),
    [
        ([BOX, AWAY], [], "box box", ""),
        ([BOX, AWAY], ["hostname:UNIQUE"], "box away", ": no machine that responds may run it"),
        ([BOX, SILENT], [], "box away", ", which does not respond: its program may still run there"),
        ([BOX], [], "box box", ""),  # it was removed from the Swarm
    ],
)
def test_a_task_moves_from_a_machine_where_its_program_cannot_run_if_another_may_take_it(
    machines: list[Machine], placement: list[str], places: str, warning: str
) -> None:
    made = standing_plan(machines, ON_AWAY, workers=2, container={"placement": placement})
    assert " ".join(task.machine for task in made.tasks) == places
    assert made.machines == tuple(machines)
    assert made.warnings == ((f"worker-1 waits for away{warning}",) if warning else ())


def test_a_new_task_is_never_placed_on_a_machine_that_is_away() -> None:
    with pytest.raises(PlacementError):
        standing_plan([BOX, AWAY], {}, workers=2, container={"placement": ["hostname:UNIQUE"]})


def test_a_task_that_waits_for_its_machine_keeps_its_gpus() -> None:
    gpus = {"worker": {"gpus": 2, "container": {"placement": ["hostname:IS:away"]}}}
    made = standing_plan([BOX, AWAY], {"worker-0": "away"}, workers=1, jobs=gpus)
    assert made.tasks[0].gpus == ("0", "1")


@pytest.mark.parametrize(
    "args",
    [
        {"env": {"A": Unknown("env.A")}},
        {"jobs": {"worker": {"env": {"A": Unknown("jobs.worker.env.A")}}}},
        {"command": ["python", Unknown("command[1]")]},
        {"context": {"a": [Unknown("context.a[0]")]}},
        {"run_id": Unknown("run_id")},
        {"data_dir": Unknown("data_dir")},
    ],
)
def test_a_run_of_unknown_content_is_neither_the_same_nor_another(args: dict[str, Any]) -> None:
    made = plan(**{**BASE, **args})
    assert not is_known(made.run.id)
    undecided = "~ run  (whether it is a new run is known after the update)"
    assert changes(job(**BASE), **{**BASE, **args}) == [undecided]
    more = {**BASE, **args, "workers": BASE["workers"] + 1}
    added = f"+ worker-{BASE['workers']}  (all tasks restart, if the run is not finished)"
    assert changes(job(**BASE), **more) == [undecided, added]


def test_a_run_with_an_unknown_train_dir_is_known() -> None:
    args = {**BASE, "train_dir": Unknown("train_dir")}
    assert plan(**args).run.id == plan(**BASE).run.id
    assert not is_known(plan(**args).run.train_dir)


def test_a_run_has_the_same_name_on_every_backend() -> None:
    """What a machine makes of the arguments does not count: absolute folders, the entry point of an image."""
    container = {"image": "mine:1"}
    names = set()
    for backend in ("local", "docker", "ec2"):
        asked = spec(backend=backend, workers=1, data_dir="data", container=container)
        resolved = inventory(asked, data_dir=f"/{backend}/data", train_dir=f"/{backend}/train", image="mine:1")
        names.add(make_plan(asked, resolved).run.id)
    assert len(names) == 1
    asked = spec(backend="docker", workers=1, command=[])
    assert make_plan(asked, inventory(asked, entry_point=("a",))).run.id == make_plan(asked, inventory(asked)).run.id


@pytest.mark.parametrize(
    ("backend", "machines", "args", "interval"),
    [
        ("local", 1, {}, 0),
        ("docker", 1, {}, 0),
        ("docker", 2, {}, 300),
        ("ec2", 1, {}, 300),
        ("ec2", 2, {"checkpoint_upload_interval": "0"}, 0),
        ("local", 1, {"checkpoint_upload_interval": "1m"}, 60),
    ],
)
def test_checkpoints_are_uploaded_while_a_run_trains_where_machines_can_be_lost(
    backend: str, machines: int, args: dict[str, str], interval: float
) -> None:
    asked = spec(workers=1, backend=backend, **args)
    made = make_plan(asked, inventory(asked, *(replace(BOX, name=f"m{number}") for number in range(machines))))
    assert made.run.checkpoint_upload_interval == interval
