"""What each field of a TFJob becomes, and that none is dropped without a note."""

import copy
from collections.abc import Mapping
from typing import Any

import pytest

from tfdeploy.cli.tfjob.conversion import Conversion, convert
from tfdeploy.errors import SpecError

CONTAINER: Mapping[str, Any] = {"name": "tensorflow", "image": "mine:1", "command": ["python", "/train.py"]}


def replica(
    count: int = 1, policy: str = "Never", pod: Any = None, meta: Any = None, **container: Any
) -> dict[str, Any]:
    spec = {"containers": [{**CONTAINER, **container}], **(pod or {})}
    template = {"spec": spec, **({"metadata": meta} if meta else {})}
    return {"replicas": count, "restartPolicy": policy, "template": template}


def job(spec: Mapping[str, Any] | None = None, meta: Mapping[str, Any] | None = None, **replicas: Any) -> Conversion:
    types = replicas or {"Worker": replica(2)}
    metadata = {"name": "mnist", **(meta or {})}
    manifest = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "metadata": metadata,
        "spec": {"tfReplicaSpecs": types, **(spec or {})},
    }
    before = copy.deepcopy(manifest)
    made = convert(manifest)
    assert manifest == before
    return made


def worker(**settings: Any) -> Conversion:
    return job(Worker=replica(2, **settings))


def test_replica_types_in_any_case() -> None:
    made = job(Chief=replica(), worker=replica(3), PS=replica(2), Evaluator=replica())
    counts = {name: made.args[name] for name in ("chief", "workers", "ps", "evaluator")}
    assert counts == {"chief": True, "workers": 3, "ps": 2, "evaluator": True}
    assert job(Master=replica(), Worker=replica()).args["tf_config_master"] is True
    assert "2 replicas of chief" in job(Chief=replica(2)).notes[0]
    assert "ps" not in job(Worker=replica(), PS=replica(0)).args
    with pytest.raises(SpecError, match="Did you mean 'worker'"):
        job(Workers=replica())


@pytest.mark.parametrize(
    ("policy", "restart"),
    [
        ("Never", {"maximum": 0}),
        ("OnFailure", {"on": ["any"]}),
        ("Always", {"on": ["any"]}),
        ("ExitCode", {"on": ["signal", "128-255"]}),
    ],
)
def test_restart_policies(policy: str, restart: dict[str, Any]) -> None:
    assert worker(policy=policy).args["restart"] == restart


def test_jobs_with_different_policies_have_their_own() -> None:
    made = job({"runPolicy": {"backoffLimit": 4}}, Worker=replica(policy="OnFailure"), PS=replica())
    assert "restart" not in made.args
    assert made.args["jobs"] == {
        "worker": {"restart": {"on": ["any"], "maximum": 4}},
        "ps": {"restart": {"maximum": 0}},
    }
    assert any(note.startswith("spec.runPolicy.backoffLimit: 4 restarts of each task") for note in made.notes)


def test_run_and_success_policies() -> None:
    assert "success" not in job({"successPolicy": ""}).args
    assert job({"runPolicy": {"cleanPodPolicy": "Running", "schedulingPolicy": {"minAvailable": 2}}}).notes == ()
    assert job({"ttlSecondsAfterFinished": 60}).notes == job({"runPolicy": {"ttlSecondsAfterFinished": 60}}).notes


def test_workers_that_may_change_need_a_ps() -> None:
    made = job({"enableDynamicWorker": True}, Worker=replica(4), PS=replica())
    assert made.args["elastic"] == {"max": 4}
    assert "elastic" not in job({"enableDynamicWorker": True}).args
    assert len(job({"enableDynamicWorker": True}).notes) == 1


def test_resources() -> None:
    resources = {"limits": {"nvidia.com/gpu": 2, "memory": "1536Mi", "cpu": "500m"}}
    assert worker(resources=resources).args["jobs"]["worker"] == {"cpus": 0.5, "memory": "1536MiB", "gpus": 2}
    made = worker(resources={"requests": {"cpu": "2", "memory": "1Gi"}, "limits": {"cpu": 4, "example.com/nic": 1}})
    assert made.args["jobs"]["worker"] == {"cpus": 2}
    assert [note.partition("resources.")[2].partition(":")[0] for note in made.notes] == [
        "requests.memory",
        "limits.example.com/nic",
        "cpu",
    ]
    with pytest.raises(SpecError, match="'much' is not a quantity"):
        worker(resources={"limits": {"memory": "much"}})


def test_commands() -> None:
    made = job(Chief=replica(), PS=replica(command=["python", "/ps.py"]))
    assert made.args["command"] == ["python", "/train.py"]
    assert made.notes == (
        "the command of ps: ['python', '/ps.py']. All replicas have the same here, and read their type from TF_CONFIG.",
    )
    made = worker(command=["python3"], args=["train.py", "--x"], workingDir="/app")
    assert made.args["command"] == ["python3", "/app/train.py", "--x"]
    assert "make it absolute" in worker(command=["python", "train.py"]).notes[0]
    assert "entry point" in worker(command=[], args=["--x"]).notes[0]
    assert "command" not in worker(command=[]).args
    assert "$NAME" in worker(command=["echo", "$(NAME)"]).notes[0]


@pytest.mark.parametrize(("name", "expected"), [("a.b_c", "a-b-c"), ("7th", "tfjob-7th"), ("mnist-", "mnist")])
def test_a_name_of_kubernetes_is_one_of_a_cluster(name: str, expected: str) -> None:
    assert job(meta={"name": name}).name == expected


def test_a_manifest_that_is_not_one_is_refused_by_the_path() -> None:
    for spec, path in (
        ({"tfReplicaSpecs": {}}, "spec.tfReplicaSpecs"),
        ({"tfReplicaSpecs": {"Worker": []}}, "spec.tfReplicaSpecs.Worker"),
        ({"tfReplicaSpecs": {"Worker": {"replicas": "two"}}}, "spec.tfReplicaSpecs.Worker.replicas"),
        ({"successPolicy": 1, "tfReplicaSpecs": {"Worker": replica()}}, "spec.successPolicy"),
    ):
        with pytest.raises(SpecError) as error:
            convert({"metadata": {"name": "mnist"}, "spec": spec})
        assert error.value.where == path
