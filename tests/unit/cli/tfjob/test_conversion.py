"""What each field of a TFJob becomes, and that none is dropped without a note."""

import copy
from collections.abc import Mapping
from typing import Any

import pytest

from tfdeploy.cli.tfjob.conversion import Conversion, convert
from tfdeploy.errors import SpecError
from tfdeploy.spec.cluster import cluster_spec

CONTAINER: Mapping[str, Any] = {"name": "tensorflow", "image": "mine:1", "command": ["python", "/train.py"]}


def replica(
    count: int = 1, policy: str = "Never", pod: Any = None, meta: Any = None, **container: Any
) -> dict[str, Any]:
    spec = {"containers": [{**CONTAINER, **container}], **(pod or {})}
    template = {"spec": spec, **({"metadata": meta} if meta else {})}
    return {"replicas": count, "restartPolicy": policy, "template": template}


def job(spec: Mapping[str, Any] | None = None, meta: Mapping[str, Any] | None = None, **replicas: Any) -> Conversion:
    """A TFJob; by default of two workers."""
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


def test_the_least_job() -> None:
    made = job()
    assert (made.name, made.notes, made.secrets) == ("mnist", (), ())
    assert made.args == {
        "command": ["python", "/train.py"],
        "flags": "never",
        "workers": 2,
        "restart": {"maximum": 0},
        "container": {"image": "mine:1"},
    }


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
    assert job({"successPolicy": "AllWorkers"}).args["success"] == "all-workers"
    assert "success" not in job({"successPolicy": ""}).args
    policy = {
        "cleanPodPolicy": "All",
        "ttlSecondsAfterFinished": 60,
        "activeDeadlineSeconds": 3600,
        "suspend": True,
        "schedulingPolicy": {"minAvailable": 1, "queue": "a", "priorityClass": "b", "scheduleTimeoutSeconds": 5},
    }
    names = {note.partition(": ")[0].rpartition(".")[2] for note in job({"runPolicy": policy}).notes}
    assert names == {*policy, *policy["schedulingPolicy"]} - {"schedulingPolicy"}  # type: ignore[misc]
    assert job({"runPolicy": {"cleanPodPolicy": "Running", "schedulingPolicy": {"minAvailable": 2}}}).notes == ()
    assert job({"ttlSecondsAfterFinished": 60}).notes == job({"runPolicy": {"ttlSecondsAfterFinished": 60}}).notes


def test_workers_that_may_change_need_a_ps() -> None:
    made = job({"enableDynamicWorker": True}, Worker=replica(4), PS=replica())
    assert made.args["elastic"] == {"max": 4}
    assert "elastic" not in job({"enableDynamicWorker": True}).args
    assert len(job({"enableDynamicWorker": True}).notes) == 1


def test_the_cluster_on_kubernetes() -> None:
    labels = {"kueue.x-k8s.io/queue-name": "team-a", "app": "x"}
    pod = {"serviceAccountName": "trainer", "imagePullSecrets": [{"name": "registry"}]}
    made = job(meta={"namespace": "kubeflow", "labels": labels}, Worker=replica(pod=pod), PS=replica())
    assert made.args["kubernetes"] == {
        "namespace": "kubeflow",
        "queue": "team-a",
        "service_account": "trainer",
        "image_pull_secrets": ["registry"],
    }
    assert [note.partition(":")[0] for note in made.notes] == ["metadata.labels"]


def test_pods() -> None:
    pod = {
        "nodeSelector": {"pool": "gpu"},
        "priorityClassName": "low",
        "terminationGracePeriodSeconds": 90,
        "tolerations": [
            {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"},
            {"key": "pool", "value": "a"},
            {"operator": "Exists"},
        ],
    }
    meta = {"labels": {"team": "a"}, "annotations": {"sidecar.istio.io/inject": "false"}}
    made = worker(pod=pod, meta=meta)
    assert made.args["kubernetes"] == {
        "node_selector": {"pool": "gpu"},
        "priority_class": "low",
        "tolerations": ["gpu:NoSchedule", "pool=a", "*"],
        "labels": {"team": "a"},
        "annotations": {"sidecar.istio.io/inject": "false"},
    }
    assert made.args["stop_grace_period"] == "90s"
    assert made.notes == ()


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


def test_volumes() -> None:
    volumes = [
        {"name": "claim", "persistentVolumeClaim": {"claimName": "mnist", "readOnly": True}},
        {"name": "folder", "hostPath": {"path": "/srv", "type": "Directory"}},
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}},
        {"name": "files", "configMap": {"name": "files"}},
        {"name": "scratch", "emptyDir": {}},
        {"name": "keys", "secret": {"secretName": "keys"}},
        {"name": "nfs", "nfs": {"server": "a", "path": "/"}},
    ]
    mounts = [{"name": volume["name"], "mountPath": f"/{volume['name']}"} for volume in volumes]
    mounts[2]["mountPath"] = "/dev/shm"
    made = worker(
        pod={"volumes": volumes}, volumeMounts=[*mounts, {"name": "claim", "mountPath": "/a", "subPath": "a"}]
    )
    assert made.args["container"] == {
        "image": "mine:1",
        "volumes": ["mnist:/claim:ro", "/srv:/folder"],
        "shm_size": "1GiB",
    }
    noted = [note.partition("spec.template.spec.")[2] or note for note in made.notes]
    kinds = [note.partition(": ")[0].rpartition(".")[2] for note in noted]
    assert sorted(kinds) == ["configMap", "nfs", "secret", "subPath"]


def test_environment_and_secrets() -> None:
    secret = {"secretKeyRef": {"name": "keys", "key": "token"}}
    env = [
        {"name": "A", "value": "1"},
        {"name": "EMPTY"},
        {"name": "TOKEN", "valueFrom": secret},
        {"name": "token", "valueFrom": secret},
        {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        {"name": "TF_CONFIG", "value": "{}"},
    ]
    made = worker(env=env, envFrom=[{"secretRef": {"name": "keys"}}])
    assert made.args["env"] == {"A": "1", "EMPTY": ""}
    assert made.secrets == ("TOKEN", "token")
    assert len(made.notes) == 4


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


def test_every_other_field_is_noted_by_its_path() -> None:
    pod = {
        "affinity": {"nodeAffinity": {"x": 1}},
        "hostNetwork": True,
        "initContainers": [{"name": "a"}],
        "securityContext": {"fsGroup": 1, "runAsUser": 1000},
        "neverSeen": {"a": 1},
    }
    ports = [{"name": "tfjob-port", "containerPort": 2222}, {"name": "http", "containerPort": 80}]
    made = worker(pod=pod, ports=ports, livenessProbe={"x": 1}, securityContext={"runAsUser": 0, "privileged": True})
    container = "spec.tfReplicaSpecs.Worker.template.spec.containers[0]"
    assert {note.partition(": ")[0].replace(container, "C") for note in made.notes} == {
        "C.ports[1]",
        "C.livenessProbe",
        "C.securityContext.privileged",
        *(f"spec.tfReplicaSpecs.Worker.template.spec.{name}" for name in ("affinity", "hostNetwork", "initContainers")),
        "spec.tfReplicaSpecs.Worker.template.spec.neverSeen",
        "spec.tfReplicaSpecs.Worker.template.spec.securityContext.fsGroup",
    }
    assert made.args["container"]["user"] == "0"


def test_what_the_server_wrote_is_no_setting() -> None:
    meta = {"uid": "x", "resourceVersion": "1", "managedFields": [{}], "creationTimestamp": "x", "generation": 1}
    meta["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": "{}"}
    assert job(meta=meta).notes == ()


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


def test_the_arguments_are_valid() -> None:
    made = job(Chief=replica(), Worker=replica(2, "ExitCode"), PS=replica(2, "OnFailure"), Evaluator=replica())
    assert [task.name for task in cluster_spec(made.name, made.args).jobs] == ["chief", "ps", "worker", "evaluator"]
