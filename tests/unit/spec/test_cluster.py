"""Arguments that are not valid raise an error that names the argument; their sentences are in snapshots/errors.txt."""

from typing import Any

import pytest

from tests.unit.cases import spec
from tfdeploy.errors import SpecError
from tfdeploy.spec.cluster import cluster_spec
from tfdeploy.spec.jobs import Restart


def refusal(name: str = "mnist", **args: Any) -> SpecError:
    with pytest.raises(SpecError) as error:
        cluster_spec(name, {"command": ["python"], "workers": 1, **args})
    return error.value


def _nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value] if depth % 2 else {"a": value}
    return value


ENDLESS: dict[str, Any] = {}
ENDLESS["a"] = [ENDLESS, ENDLESS]
DEEP = {
    "context": _nested(5000),
    "env": ENDLESS,
    "command": _nested(1001),
    "jobs": ENDLESS,
    "secrets": _nested(100_000),
}
"""Arguments that are nested deeper than Python's stack, or that contain themselves."""

REFUSALS: list[dict[str, Any]] = [
    {"workers": -1},
    {"ps": -2},
    {"workers": 1001},
    {"chief": 2},
    {"evaluator": 2},
    {"gpu_workers": -1},
    {"workers": 1.0},
    {"workers": True},
    {"workers": 0},
    {"workers": 0, "ps": 1},
    {"workers": 0, "ps": 1, "evaluator": 1},
    {"command": None},
    {"command": [" "]},
    {"command": "python train.py"},
    {"command": ["python", 3]},
    {"command": ["a\0"]},
    {"command": ["\ud800"]},
    {"command": ["x" * 100_001]},
    {"standalone_servers": True},
    {"standalone_servers": 1},
    {"tf_config_master": True},
    {"code": 5},
    {"run_id": "a\0b"},
    {"jobs": {"gpu_worker": {}}},
    {"jobs": {"worker": 3}},
    {"jobs": {"worker": {"cpu": 1}}},
    {"jobs": {"worker": {"port": 0}}},
    {"services": {"store": 3}},
    {"services": {"store": {}}},
    {"services": {"store": {"command": ["redis"], "count": 0}}},
    {"services": {"store": {"command": ["redis"], "workers": 2}}},
    {"services": {"store": {"command": ["redis"], "port": 65535, "count": 2}}},
    {"services": {"feature-server": {"command": ["serve"]}}},
    {"services": {"ps": {"command": ["serve"]}}},
    {"services": {"store": {"command": ["redis"], "count": 1000}}},
    {"services": {"data_worker": {"command": ["serve"]}}},
    {"data_service": 4},
    {"data_service": {}},
    {"data_service": {"workers": 0}},
    {"data_service": {"workers": 1000}},
    {"data_service": {"workers": 2, "memory": "1GiB"}},
    {"jobs": {"data_worker": {}}},
    {"data_service": {"workers": 2}, "jobs": {"data_worker": {"count": 2}}},
    {"jobs": {"worker": {"port": 65536}}},
    {"workers": 3, "jobs": {"worker": {"port": 65534}}},
    {"jobs": {"worker": {"cpus": -1}}},
    {"jobs": {"worker": {"cpus": float("nan")}}},
    {"jobs": {"worker": {"gpus": 0.5}}},
    {"jobs": {"worker": {"memory": "much"}}},
    {"jobs": {"worker": {"nice": -1}}},
    {"jobs": {"worker": {"nice": 20}}},
    {"success": "anybody"},
    {"success": "chief"},
    {"success": "worker-0", "workers": 0, "chief": 1},
    {"success": "all-workers", "command": None, "standalone_servers": True},
    {"worker_timeout": "soon"},
    {"evaluator_timeout": "soon"},
    {"success": "all-workers", "worker_timeout": "1m"},
    {"flags": "no"},
    {"flags": False},
    {"flags": "always", "command": None, "standalone_servers": True},
    {"wait": "soon"},
    {"stop_grace_period": "367d"},
    {"start_timeout": "9000h"},
    {"ps": 1, "workers": 1000},
    {"workers": 1000, "log_lines": 21},
    {"log_lines": -1},
    {"metrics": {"a": "("}},
    {"metrics": {"a": "x{99999999999}"}},
    {"metrics": {"accuracy": "a", "loss": "l"}, "until": {"acuracy": ">= 0.95"}},
    {"until": {"accuracy": ">= 0.95"}},
    *({"metrics": {"a": "a"}, "until": {"a": text}} for text in ("0.95", "=> 0.95", "> nan", ">= 1 2", 0.95)),
    {"metrics": {"a": "a"}, "until": ">= 1"},
    {"metrics": {"a": "a"}, "until": {"a": "> 1"}, "command": None, "standalone_servers": True},
    *({"ps": 1, "workers": 2, "elastic": {"max": most}} for most in (1, 1001, "8")),
    {"ps": 1, "workers": 2, "elastic": 8},
    {"ps": 1, "workers": 2, "elastic": {}},
    {"ps": 1, "workers": 2, "elastic": {"maximum": 8}},
    {"ps": 1, "workers": 3, "elastic": {"max": 2}},
    {"ps": 1, "workers": 3, "elastic": {"max": 1000}},
    {"workers": 2, "elastic": {"max": 8}},
    {"ps": 1, "workers": 0, "chief": True, "elastic": {"max": 8}},
    {"ps": 1, "gpu_workers": 1, "workers": 2, "elastic": {"max": 8}},
    {"ps": 1, "workers": 2, "elastic": {"max": 8}, "command": None, "standalone_servers": True},
    {"ps": 1, "workers": 2, "elastic": {"max": 8}, "success": "all-workers"},
    {"ps": 1, "workers": 2, "elastic": {"max": 8}, "jobs": {"worker": {"port": 65530}}},
    *({"artifacts": [pattern]} for pattern in ("/abs/**", "../x", "", "x" * 300)),
    {"artifacts": ["x"] * 2 + [f"{number}" for number in range(100)]},
    {"artifacts": "**/*.keras"},
    {"checkpoint_upload_interval": "soon"},
    {"checkpoint_upload_interval": "1m", "artifacts": []},
    {"env": {"A B": "1"}},
    {"env": {"A": 1}},
    {"env": {"A": "a\0"}},
    {"env": {"TF_CONFIG": "1"}},
    {"env": {"TFDEPLOY_X": "1"}},
    {"env": {"A": "x" * 100_001}},
    {"requirements": ["-r all.txt"]},
    {"requirements": ["a\nb"]},
    {"context": {"a": {1}}},
    {"context": {"a": float("nan")}},
    {"context": {"a": "x" * 100_000}},
    {"restart": {"maximum": -1}},
    {"restart": {"backoff": "soon"}},
    {"restart": {"on": ["3-1"]}},
    {"restart": {"on": ["256"]}},
    {"restart": {"max": 1}},
    {"command": None, "backend": "k8s"},
    {"jobs": {"worker": {"required": False}}},
    {"evaluator": True, "jobs": {"evaluator": {"required": "no"}}},
]
"""Arguments whose refusals are in snapshots/errors.txt."""


@pytest.mark.parametrize("key", ["context", "env", "command", "jobs", "secrets"])
def test_an_argument_without_an_end_is_refused(key: str) -> None:
    error = refusal(**{key: DEEP[key]})
    assert (error.where, error.wrong) == (f"mnist: {key}", "is nested more than 100 deep, or contains itself")


@pytest.mark.parametrize("name", ["", "-a", "a-", "0a", "a_b", "a.b", "a b", "a" * 41, "ä", "\u212a"])
def test_a_name_that_is_not_a_valid_hostname_is_refused(name: str) -> None:
    error = refusal(name)
    assert (error.where, error.wrong) == ("TensorFlowCluster", f"the name {name!r} is not valid")


@pytest.mark.parametrize(
    ("args", "suggestion"),
    [
        ({"jobs": {"worker": {"image": "mine"}}}, 'Move it into the group `container`: container={"image": …}.'),
        ({"ec2": {"instance_typ": "m7i.large"}}, "Did you mean 'instance_type'?"),
        ({"restart": {"xyz": 1}}, "Use one of: maximum, backoff, on."),
        ({"restart": {"nice": 5}}, 'Set it for a job: jobs={"worker": {"nice": 5}}.'),
        ({"container": {"mem_limit": "2GiB"}}, 'Set it for a job: jobs={"worker": {"memory": \'2GiB\'}}.'),
        ({"restart": 3}, 'Use restart={"maximum": 3}.'),
        ({"container": "mine:1"}, "Use container={\"image\": 'mine:1'}."),
        ({"ec2": "m7i.large"}, "Use ec2={\"instance_type\": 'm7i.large'}."),
        ({"metrics": "acc: (.*)"}, "Use metrics={\"accuracy\": 'acc: (.*)'}."),
        ({"command": "python 'train.py"}, 'Use a list of strings: command=["python \'train.py"].'),
        ({"env": ["A=1"]}, 'Use a mapping: env={"NAME": "VALUE"}.'),
        ({"elastic": True}, "Use a mapping."),
    ],
)
def test_an_error_suggests_the_nearest_name(args: dict[str, Any], suggestion: str) -> None:
    assert refusal(**args).remedy == suggestion


@pytest.mark.parametrize(
    ("secrets", "where"),
    [
        ({"A": None}, "secrets.A"),
        ({"B": "canary"}, "secrets.B"),
        ({"TFDEPLOY_RUN": "canary"}, "secrets.TFDEPLOY_RUN"),
    ],
)
def test_an_invalid_secret_is_not_shown(secrets: Any, where: str) -> None:
    error = refusal(env={"A": "1"}, jobs={"worker": {"env": {"B": "1"}}}, secrets=secrets)
    assert error.where == f"mnist: {where}"
    assert "canary" not in str(error)


def test_a_secret_is_known_by_its_name_alone() -> None:
    assert "canary" not in repr(spec(workers=1, secrets={"TOKEN": "canary"}))


def test_what_is_given_too_large_to_show_is_cut() -> None:
    assert len(str(refusal(workers=["x" * 10_000]))) < 200
    assert "a very large int" in str(refusal(workers=10**5000))


def test_a_gpu_worker_has_a_gpu_unless_its_job_says_otherwise() -> None:
    asked = spec(workers=1, gpu_workers=1)
    assert [(job.name, job.gpus) for job in asked.jobs] == [("worker", 0), ("gpu_worker", 1)]
    assert [job.gpus for job in spec(gpu_workers=1, jobs={"gpu_worker": {"gpus": 0}}).jobs] == [0]


def test_a_jobs_restart_stands_over_the_clusters_setting_by_setting() -> None:
    asked = spec(ps=1, workers=1, restart={"maximum": 9, "on": ["any"]}, jobs={"ps": {"restart": {"backoff": "3s"}}})
    assert {job.name: job.restart for job in asked.jobs} == {
        "ps": Restart(9, 3.0, ("any",)),
        "worker": Restart(9, 2.0, ("any",)),
    }


def test_requirements_are_read_as_pip_reads_a_file() -> None:
    lines = ["# all of it", "", "pandas==2.2.3  # not 3", "x @ https://h/x.whl#sha256=1", "  scipy\n"]
    assert spec(workers=1, requirements=lines).requirements == (
        "pandas==2.2.3",
        "x @ https://h/x.whl#sha256=1",
        "scipy",
    )


@pytest.mark.parametrize(
    ("given", "read"), [("data/", "data"), ("/d//", "/d"), ("/", "/"), ("data", "data"), ("gs://b/d/", "gs://b/d/")]
)
def test_a_data_folder_is_the_same_with_a_slash_at_its_end(given: str, read: str) -> None:
    assert spec(workers=1, data_dir=given).data_dir == read
