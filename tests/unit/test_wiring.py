"""From the address book to what a task is told."""

import json

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.cases import check_golden
from tfdeploy.agent import wiring
from tfdeploy.agent.wiring import Entry

BOOK = [
    Entry("worker-1", "worker", 1, "10.0.0.3:21001"),
    Entry("ps-0", "ps", 0, "10.0.0.1:20000"),
    Entry("worker-0", "worker", 0, "10.0.0.2:21000"),
    Entry("evaluator-0", "evaluator", 0, "10.0.0.4:22000"),
]
"""A book in no order at all."""

RUN = {
    "id": "0123456789ab",
    "data_dir": "/data",
    "train_dir": "/train/0123456789ab",
    "context": '{"steps": 5}',
    "env": {"WHO": "{job_name}-{task_index}", "WHERE": "{train_dir}", "BOTH": "cluster"},
    "jobs": {"worker": {"env": {"BOTH": "job", "PYTHONUNBUFFERED": "0"}}, "evaluator": {"env": {}}},
}


def known(hostname: str = "worker-0") -> dict[str, str]:
    return {**wiring.values(BOOK, entry(hostname)), **wiring.folders(RUN)}


def entry(hostname: str) -> Entry:
    return next(item for item in BOOK if item.hostname == hostname)


def test_hosts_stand_in_the_order_of_their_index() -> None:
    assert wiring.hosts(BOOK, "worker") == ["10.0.0.2:21000", "10.0.0.3:21001"]


def test_gpu_workers_are_workers_after_the_others() -> None:
    book = [*BOOK, *(Entry(f"gpu-worker-{index}", "gpu_worker", index, f"10.0.1.{index}:24000") for index in (1, 0))]
    workers = ["10.0.0.2:21000", "10.0.0.3:21001", "10.0.1.0:24000", "10.0.1.1:24000"]
    mine = next(item for item in book if item.hostname == "gpu-worker-1")
    assert json.loads(wiring.tf_config(book, mine, RUN)) == {
        "cluster": {"ps": ["10.0.0.1:20000"], "worker": workers},
        "task": {"type": "worker", "index": 3},
        "environment": "cloud",
    }
    known = wiring.values(book, mine)
    assert (known["job_name"], known["task_index"], known["worker_hosts"]) == ("worker", "3", ",".join(workers))


def test_the_four_flags_follow_a_command_without_placeholders() -> None:
    assert wiring.command_line(["python", "train.py"], known()) == [
        "python",
        "train.py",
        "--job_name=worker",
        "--task_index=0",
        "--ps_hosts=10.0.0.1:20000",
        "--worker_hosts=10.0.0.2:21000,10.0.0.3:21001",
    ]


def test_a_placeholder_of_a_flag_replaces_all_four_flags() -> None:
    assert wiring.command_line(["run", "--index", "{task_index}"], known()) == ["run", "--index", "0"]


def test_other_placeholders_leave_the_flags_in_place() -> None:
    filled = wiring.command_line(["run", "{hostname}", "{address}", "{chief_hosts}", "{data_dir}"], known())
    assert filled[:5] == ["run", "worker-0", "10.0.0.2:21000", "", "/data"]
    assert filled[5] == "--job_name=worker"


def test_unknown_braces_are_left_alone() -> None:
    texts = ["{}", "{unknown}", "{ job_name }", "{{", "awk '{print $1}'", "{JOB_NAME}", '{"a": 1}']
    assert [wiring.fill(text, known()) for text in texts] == texts


def test_what_a_value_brings_in_is_not_filled_again() -> None:
    assert wiring.fill("{context}", {"context": "{hostname}", "hostname": "worker-0"}) == "{hostname}"
    assert wiring.fill("{a}", {"a": "{b}", "b": "c"}) == "{b}"


def test_doubled_braces_are_filled_within() -> None:
    assert wiring.fill("{{job_name}}", known()) == "{worker}"


@given(st.text(st.characters(exclude_characters="{"), max_size=50))
def test_a_text_without_braces_stays_as_it_is(text: str) -> None:
    assert wiring.fill(text, known()) == text


def test_tf_config_names_an_evaluator_outside_the_cluster() -> None:
    assert json.loads(wiring.tf_config(BOOK, entry("evaluator-0"), RUN)) == {
        "cluster": {"ps": ["10.0.0.1:20000"], "worker": ["10.0.0.2:21000", "10.0.0.3:21001"]},
        "task": {"type": "evaluator", "index": 0},
        "environment": "cloud",
    }


def test_tf_config_calls_the_chief_master_where_the_run_says_so() -> None:
    chief = Entry("chief-0", "chief", 0, "10.0.0.5:23000")
    found = json.loads(wiring.tf_config([*BOOK, chief], chief, {**RUN, "master": True}))
    assert found["cluster"]["master"] == ["10.0.0.5:23000"]
    assert "chief" not in found["cluster"]
    assert found["task"] == {"type": "master", "index": 0}
    assert wiring.values([*BOOK, chief], chief)["job_name"] == "chief"


def test_the_environment_of_a_worker_reads_as_kept() -> None:
    found = wiring.environment(BOOK, entry("worker-0"), RUN)
    check_golden("environment-worker", "\n".join(f"{name}={value}" for name, value in sorted(found.items())))


def test_a_jobs_own_environment_stands_over_the_clusters() -> None:
    assert wiring.environment(BOOK, entry("worker-0"), RUN)["BOTH"] == "job"
    assert wiring.environment(BOOK, entry("evaluator-0"), RUN)["BOTH"] == "cluster"
