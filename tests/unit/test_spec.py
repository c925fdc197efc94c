"""What cannot be wanted is refused at birth, by where, what is wrong, what was given, and what would do."""

from typing import Any

import pytest

from tests.unit.cases import spec
from tfdeploy.backends.base import load
from tfdeploy.errors import SpecError
from tfdeploy.restarts import Restart
from tfdeploy.spec import ClusterSpec, cluster_spec

NO_COMMAND = 'Give the program and its arguments, such as ["python", "train.py"].'
ENDS = 'It takes "any", "signal", "oom", "3" or "64-78".'
DURATION = 'It takes seconds, or a duration such as "90s", "10m", "1h30m" or "0", up to a year.'
SIZE = 'It takes a size such as "512MiB", "2GiB" or "1.5G".'
TEXTS = "Each takes a text, with neither NUL nor half characters."


def refusal(name: str = "mnist", **args: Any) -> str:
    """What the refusal of these arguments says."""
    with pytest.raises(SpecError) as error:
        cluster_spec(name, {"command": ["python"], "workers": 1, **args})
    return str(error.value)


REFUSALS: list[tuple[dict[str, Any], str]] = [
    ({"workers": -1}, "workers: is -1. It takes a whole number from 0 to 1000."),
    ({"ps": -2}, "ps: is -2. It takes a whole number from 0 to 1000."),
    ({"workers": 1001}, "workers: is 1001. It takes a whole number from 0 to 1000."),
    ({"chief": 2}, "chief: is 2. It takes a whole number from 0 to 1."),
    ({"evaluator": 2}, "evaluator: is 2. It takes a whole number from 0 to 1."),
    ({"gpu_workers": -1}, "gpu_workers: is -1. It takes a whole number from 0 to 1000."),
    ({"workers": 1.0}, "workers: is 1.0, of type float. It takes a whole number."),
    ({"workers": True}, "workers: is True, of type bool. It takes a whole number."),
    ({"workers": "2"}, "workers: is '2', of type str. It takes a whole number."),
    (
        {"workers": 0},
        "workers: and ps, chief, evaluator are all 0: there is no task at all. Give workers=1 or more.",
    ),
    ({"workers": 0, "ps": 1}, "workers: is 0: ps alone trains nothing. Give workers or chief, or serve=True."),
    (
        {"workers": 0, "ps": 1, "evaluator": 1},
        "workers: is 0: ps and evaluator alone trains nothing. Give workers or chief, or serve=True.",
    ),
    ({"command": None}, f"command: is missing. {NO_COMMAND}"),
    ({"command": []}, f"command: is missing. {NO_COMMAND}"),
    ({"command": [" "]}, f"command: is missing. {NO_COMMAND}"),
    ({"command": "python train.py"}, "command: is 'python train.py', of type str. It takes a list of texts."),
    ({"command": ["python", 3]}, f"command: has 3 in it. {TEXTS}"),
    ({"command": ["a\0"]}, f"command: has 'a\\x00' in it. {TEXTS}"),
    ({"command": ["\ud800"]}, f"command: has '\\ud800' in it. {TEXTS}"),
    ({"command": ["x" * 100_001]}, "command: has 100001 bytes. At most 100000: ship a file with `code`."),
    (
        {"serve": True},
        "command: is given together with serve. With serve=True tfdeploy brings the server: give one, or chief=1, whose",
    ),
    ({"serve": 1}, "serve: is 1, of type int. It takes True or False."),
    ({"master": True}, "master: is another name for the chief, and the cluster has none. Give chief=1."),
    ({"code": 5}, "code: is 5, of type int. It takes a text."),
    ({"run_id": "a\0b"}, "run_id: is 'a\\x00b': it has a NUL character in it. Leave that out."),
    ({"jobs": {"gpu_worker": {}}}, "jobs: 'gpu_worker' is no job of this cluster. Its jobs are: worker."),
    ({"jobs": {"ps": {}}}, "jobs: 'ps' is no job of this cluster. Its jobs are: worker."),
    ({"jobs": {"worker": 3}}, "jobs: worker: is 3. It takes names and their values."),
    (
        {"jobs": {"worker": {"cpu": 1}}},
        "jobs: worker: its settings: 'cpu' is unknown. It knows cpus, memory, gpus, port, env, restart, image, ",
    ),
    ({"jobs": {"worker": {"port": 0}}}, "jobs: worker: port: is 0. It takes a whole number from 1 to 65535."),
    (
        {"jobs": {"worker": {"port": 65536}}},
        "jobs: worker: port: is 65536. It takes a whole number from 1 to 65535.",
    ),
    (
        {"workers": 3, "jobs": {"worker": {"port": 65534}}},
        "jobs: worker: port: 65534 and the 2 after it go beyond 65535. Give a lower one.",
    ),
    ({"jobs": {"worker": {"cpus": -1}}}, "jobs: worker: cpus: is -1. It takes a number from 0 to a million."),
    (
        {"jobs": {"worker": {"cpus": float("nan")}}},
        "jobs: worker: cpus: is nan. It takes a number from 0 to a million.",
    ),
    ({"jobs": {"worker": {"gpus": 0.5}}}, "jobs: worker: gpus: is 0.5, of type float. It takes a whole number."),
    ({"jobs": {"worker": {"memory": "much"}}}, f"jobs: worker: memory: 'much' is no size. {SIZE}"),
    ({"jobs": {"worker": {"memory": -1}}}, f"jobs: worker: memory: -1 is no size. {SIZE}"),
    (
        {"success": "anybody"},
        "success: 'anybody' is no rule. It takes one of: chief, worker 0, all workers.",
    ),
    (
        {"success": "chief"},
        "success: 'chief' needs a chief, and the cluster has only worker. Choose another rule.",
    ),
    (
        {"success": "worker 0", "workers": 0, "chief": 1},
        "success: 'worker 0' needs a worker, and the cluster has only chief. Choose another rule.",
    ),
    (
        {"success": "all workers", "command": None, "serve": True},
        "success: is given together with serve. Tasks that serve never end by themselves.",
    ),
    (
        {"success": "all workers", "chief": 1, "serve": True},
        "success: is given together with serve. Tasks that serve never end by themselves.",
    ),
    ({"wait": "soon"}, f"wait: 'soon' is no duration. {DURATION}"),
    ({"wait": -1}, f"wait: -1 is no duration. {DURATION}"),
    ({"wait": float("inf")}, f"wait: inf is no duration. {DURATION}"),
    ({"grace": "367d"}, f"grace: '367d' is no duration. {DURATION}"),
    ({"start_timeout": "9000h"}, f"start_timeout: '9000h' is no duration. {DURATION}"),
    ({"log_lines": -1}, "log_lines: is -1. It takes a whole number from 0 to 10000."),
    (
        {"metrics": {"a": "("}},
        "metrics: a: '(' is no regular expression (missing ), unterminated subpattern at position 0). Mend it.",
    ),
    (
        {"metrics": {"a": "x{99999999999}"}},
        "metrics: a: 'x{99999999999}' is no regular expression (the repetition number is too large). Mend it.",
    ),
    ({"env": {"A B": "1"}}, "env: has the name 'A B'. Names look like [A-Za-z_][A-Za-z0-9_]*."),
    ({"env": {"A": 1}}, "env: A: is 1. It takes a text, with neither NUL nor half characters."),
    ({"env": {"TF_CONFIG": "1"}}, "env: TF_CONFIG is set by tfdeploy itself. Choose another name."),
    ({"env": {"TFDEPLOY_X": "1"}}, "env: TFDEPLOY_X is set by tfdeploy itself. Choose another name."),
    (
        {"env": {"A": "x" * 100_001}},
        "env: A: has 100001 bytes. At most 100000: ship a file with `code`.",
    ),
    ({"requirements": ["-r all.txt"]}, "'-r all.txt' names no package"),
    ({"requirements": [""]}, "'' names no package"),
    ({"context": {"a": {1}}}, "cannot be written as JSON (Object of type set is not JSON serializable)"),
    ({"context": {"a": float("nan")}}, "cannot be written as JSON (Out of range float values"),
    ({"context": {"a": "x" * 100_000}}, "context: has 100009 bytes. At most 100000: ship a file with `code`."),
    ({"restart": {"maximum": -1}}, "restart: maximum: is -1. It takes a whole number from 0 to 1000000."),
    ({"restart": {"backoff": "soon"}}, f"restart: backoff: 'soon' is no duration. {DURATION}"),
    ({"restart": {"on": ["3-1"]}}, f"restart: on: '3-1' is no way to end. {ENDS}"),
    ({"restart": {"on": ["256"]}}, f"restart: on: '256' is no way to end. {ENDS}"),
    ({"restart": {"on": ["never"]}}, f"restart: on: 'never' is no way to end. {ENDS}"),
    ({"restart": {"max": 1}}, "restart: its settings: 'max' is unknown. It knows maximum, backoff, on."),
]


@pytest.mark.parametrize(
    ("args", "message"), REFUSALS, ids=lambda value: str(value)[:60] if isinstance(value, dict) else ""
)
def test_it_is_refused(args: dict[str, Any], message: str) -> None:
    said = refusal(**args)
    assert said.startswith("mnist: ")
    assert message in said


@pytest.mark.parametrize("name", ["", "-a", "a-", "0a", "a_b", "a.b", "a b", "a" * 41, "ä", "\u212a"])
def test_a_name_that_no_host_can_have_is_refused(name: str) -> None:
    assert refusal(name) == (
        f"TensorFlowCluster: the name {name!r} cannot be a host's or a container's. "
        "A name begins with a letter and has at most 40 letters, digits and hyphens."
    )


def test_an_unknown_backend_is_refused() -> None:
    with pytest.raises(SpecError) as error:
        load("mesos")
    assert str(error.value) == "backend: 'mesos' is unknown. It takes one of: local, docker, ec2."


@pytest.mark.parametrize(
    ("secrets", "wrong"),
    [
        ("canary", "secrets: is a value that is not shown, of type str. It takes names and their values."),
        ({"A": "canary\0"}, "secrets: A: is a value that is not shown. "),
        ({"A": ["canary"]}, "secrets: A: is of type list. It takes a text, or an Output of one."),
        ({"A": None}, "secrets: A: is of type NoneType. It takes a text, or an Output of one."),
        ({".A": "canary"}, "secrets: has the name '.A'. "),
        ({"A": "canary"}, "secrets: A stands in env too, or is tfdeploy's own. Choose another name."),
        ({"B": "canary"}, "secrets: B stands in env too, or is tfdeploy's own. Choose another name."),
        ({"TFDEPLOY_RUN": "canary"}, "secrets: TFDEPLOY_RUN stands in env too, or is tfdeploy's own. "),
    ],
)
def test_a_refused_secret_is_not_shown(secrets: Any, wrong: str) -> None:
    said = refusal(env={"A": "1"}, jobs={"worker": {"env": {"B": "1"}}}, secrets=secrets)
    assert wrong in said
    assert "canary" not in said


def test_a_secret_is_known_by_its_name_alone() -> None:
    assert "canary" not in repr(spec(workers=1, secrets={"TOKEN": "canary"}))


def test_what_is_given_too_large_to_show_is_cut() -> None:
    assert len(refusal(workers=["x" * 10_000])) < 200
    assert "a very large int" in refusal(workers=10**5000)


@pytest.mark.parametrize(
    ("jobs", "rule"),
    [
        ({"chief": 1, "workers": 2}, "chief"),
        ({"workers": 2, "ps": 1}, "all workers"),
        ({"serve": True, "ps": 2}, "all workers"),
        ({"gpu_workers": 2, "ps": 1}, "all workers"),
    ],
)
def test_without_a_rule_the_chief_decides_else_all_workers(jobs: dict[str, Any], rule: str) -> None:
    assert spec(**jobs).success == rule


def test_a_gpu_worker_has_a_gpu_unless_its_job_says_otherwise() -> None:
    asked = spec(workers=1, gpu_workers=1)
    assert [(job.name, job.gpus) for job in asked.jobs] == [("worker", 0), ("gpu_worker", 1)]
    assert [job.gpus for job in spec(gpu_workers=1, jobs={"gpu_worker": {"gpus": 0}}).jobs] == [0]


def test_what_is_left_out_has_its_documented_default() -> None:
    assert spec(workers=1) == ClusterSpec(
        name="mnist", command=("python", "train.py"), jobs=spec(workers=1).jobs, success="all workers"
    )
    assert spec(workers=1, restart={"maximum": 1}).jobs[0].restart == Restart(maximum=1)


def test_a_jobs_restart_stands_over_the_clusters_setting_by_setting() -> None:
    asked = spec(ps=1, workers=1, restart={"maximum": 9, "on": ["any"]}, jobs={"ps": {"restart": {"backoff": "2s"}}})
    assert {job.name: job.restart for job in asked.jobs} == {
        "ps": Restart(9, 2.0, ("any",)),
        "worker": Restart(9, 1.0, ("any",)),
    }


def test_a_restart_on_nothing_is_taken_at_its_word() -> None:
    assert spec(workers=1, restart={"on": []}).jobs[0].restart.on == ()
