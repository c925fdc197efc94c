"""From the address book to what a task is told."""

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.cases import check_golden
from tfdeploy.agent.launch import task_environment
from tfdeploy.agent.model import task_command
from tfdeploy.agent.model.run_spec import RunJob, RunSpec
from tfdeploy.agent.model.task_command import TaskAddress

BOOK = [
    TaskAddress("worker-1", "worker", 1, "10.0.0.3:21001"),
    TaskAddress("ps-0", "ps", 0, "10.0.0.1:20000"),
    TaskAddress("worker-0", "worker", 0, "10.0.0.2:21000"),
    TaskAddress("evaluator-0", "evaluator", 0, "10.0.0.4:22000"),
]
"""A book in no order at all."""

RUN = RunSpec(
    "0123456789ab",
    [],
    {
        "worker": RunJob({"BOTH": "job", "PYTHONUNBUFFERED": "0"}),
        **{job: RunJob() for job in ("chief", "ps", "gpu_worker", "evaluator")},
    },
    data_dir="/data",
    train_dir="/train/0123456789ab",
    context='{"steps": 5}',
    env={"WHO": "{job_name}-{task_index}", "WHERE": "{train_dir}", "BOTH": "cluster"},
)


def known(hostname: str = "worker-0") -> dict[str, str]:
    return {**task_command.placeholders(BOOK, entry(hostname)), **task_command.folders(RUN)}


def entry(hostname: str) -> TaskAddress:
    return next(item for item in BOOK if item.hostname == hostname)


def test_gpu_workers_are_workers_after_the_others() -> None:
    book = [
        *BOOK,
        *(TaskAddress(f"gpu-worker-{index}", "gpu_worker", index, f"10.0.1.{index}:24000") for index in (1, 0)),
    ]
    workers = ["10.0.0.2:21000", "10.0.0.3:21001", "10.0.1.0:24000", "10.0.1.1:24000"]
    mine = next(item for item in book if item.hostname == "gpu-worker-1")
    assert json.loads(task_environment.tf_config(book, mine, RUN)) == {
        "cluster": {"ps": ["10.0.0.1:20000"], "worker": workers},
        "task": {"type": "worker", "index": 3},
        "environment": "cloud",
    }
    known = task_command.placeholders(book, mine)
    assert (known["job_name"], known["task_index"], known["worker_hosts"]) == ("worker", "3", ",".join(workers))


TFJOB = {
    "worker": "",
    "chief": "",
    "evaluator": "",
    "worker tensorboard": "",
    "worker ps": "ps worker",
    "worker worker": "worker",
    "chief evaluator": "chief",
    "ps": "",
}
"""The replicas of a job, the first of which is the task, and the jobs of the cluster in its `TF_CONFIG`: none for one replica."""


@pytest.mark.parametrize("jobs", TFJOB)
def test_a_task_that_trains_alone_has_no_tf_config_as_in_a_tfjob(jobs: str) -> None:
    names = jobs.split()
    book = [TaskAddress(f"{job}-{index}", job, index, f"10.0.0.{index}:1") for index, job in enumerate(names)]
    run = RunSpec("0123456789ab", [], {job: RunJob() for job in names})
    found = json.loads(task_environment.environment(book, book[0], run).get("TF_CONFIG", '{"cluster": {}}'))
    assert " ".join(sorted(found["cluster"])) == TFJOB[jobs]


def test_a_server_of_tensorflow_that_is_alone_has_its_address_in_tf_config() -> None:
    book = [TaskAddress("worker-0", "worker", 0, "10.0.0.1:1")]
    run = RunSpec("0123456789ab", [], {"worker": RunJob(command=["python", "serve"])})
    assert json.loads(task_environment.environment(book, book[0], run)["TF_CONFIG"])["cluster"] == {
        "worker": ["10.0.0.1:1"]
    }


FOUR = [
    "--job_name=worker",
    "--task_index=0",
    "--ps_hosts=10.0.0.1:20000",
    "--worker_hosts=10.0.0.2:21000,10.0.0.3:21001",
]
TRAIN = ["python", "train.py"]


def command(words: list[str], jobs: str = "ps worker", **spec: Any) -> list[str]:
    """What worker-0 of a run with these jobs starts."""
    run = RunSpec("0123456789ab", [], {job: RunJob() for job in jobs.split()}, command=words, **spec)
    return task_command.task_command(run, "worker", known())


@pytest.mark.parametrize(
    ("words", "spec", "appended"),
    [
        (TRAIN, {}, True),
        (TRAIN, {"jobs": "ps worker gpu_worker evaluator tensorboard"}, True),
        (TRAIN, {"jobs": "worker"}, False),
        (TRAIN, {"jobs": "chief ps worker"}, False),
        (TRAIN, {"serve": True}, False),
        ([*TRAIN, "--index={task_index}"], {}, False),
        ([*TRAIN, "{hostname}"], {}, True),
        (TRAIN, {"flags": "never"}, False),
        (TRAIN, {"flags": "always", "jobs": "chief worker"}, True),
        ([*TRAIN, "--index={task_index}"], {"flags": "always"}, True),
    ],
)
def test_the_four_flags_are_appended_for_a_ps_without_chief_and_placeholders(
    words: list[str], spec: dict[str, Any], appended: bool
) -> None:
    assert (command(words, **spec)[-4:] == FOUR) == appended
    assert any(part.startswith("--ps_hosts") for part in command(words, **spec)) == appended


def test_a_command_of_the_job_itself_gets_no_flags() -> None:
    run = RunSpec("0123456789ab", [], {"ps": RunJob(), "worker": RunJob(command=["serve"])}, flags="always")
    assert task_command.task_command(run, "worker", known()) == ["serve"]


def test_a_placeholder_of_a_flag_replaces_all_four_flags() -> None:
    assert command(["run", "--index", "{task_index}"]) == ["run", "--index", "0"]


def test_other_placeholders_leave_the_flags_in_place() -> None:
    filled = command(["run", "{hostname}", "{address}", "{chief_hosts}", "{data_dir}"])
    assert filled == ["run", "worker-0", "10.0.0.2:21000", "", "/data", *FOUR]


def test_unknown_braces_are_left_alone_and_doubled_ones_filled_within() -> None:
    texts = ["{}", "{unknown}", "{ job_name }", "{{", "awk '{print $1}'", "{JOB_NAME}", '{"a": 1}']
    assert [task_command.fill(text, known()) for text in texts] == texts
    assert task_command.fill("{{job_name}}", known()) == "{worker}"


def test_tf_config_calls_the_chief_master_where_the_run_says_so() -> None:
    chief = TaskAddress("chief-0", "chief", 0, "10.0.0.5:23000")
    found = json.loads(task_environment.tf_config([*BOOK, chief], chief, replace(RUN, master=True)))
    assert found["cluster"]["master"] == ["10.0.0.5:23000"]
    assert "chief" not in found["cluster"]
    assert found["task"] == {"type": "master", "index": 0}
    assert task_command.placeholders([*BOOK, chief], chief)["job_name"] == "chief"


def test_the_environment_of_a_worker_reads_as_kept() -> None:
    found = task_environment.environment(BOOK, entry("worker-0"), RUN)
    check_golden("environment-worker", "\n".join(f"{name}={value}" for name, value in sorted(found.items())))


def test_secret_variables_are_filled_and_a_jobs_own_environment_is_stronger() -> None:
    secret = {"OTHER": "{hostname}", "BOTH": "secret"}
    found = task_environment.environment(BOOK, entry("worker-0"), RUN, secret)
    assert (found["OTHER"], found["BOTH"]) == ("worker-0", "job")
