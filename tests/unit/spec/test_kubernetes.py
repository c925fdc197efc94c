"""What is asked of Kubernetes: the cluster's, a job's own, and what is refused. The backend is not needed for it."""

from collections.abc import Mapping
from typing import Any

import pytest

from tfdeploy.errors import SpecError
from tfdeploy.spec.arg_reader import ArgReader
from tfdeploy.spec.argument import names, read_all
from tfdeploy.spec.kubernetes import KubernetesSpec, PodSpec, Toleration
from tfdeploy.spec.unknown_values import Unknown

EKS = '{"clusters": [{"cluster": {"certificate-authority-data": "…"}}], "users": [{"user": {"exec": {"command": "aws"}}}]}'


def read(**args: Any) -> KubernetesSpec:
    return read_all(ArgReader("mnist", {"kubernetes": args}).group("kubernetes", names(KubernetesSpec)), KubernetesSpec)


def refused(**args: Any) -> SpecError:
    with pytest.raises(SpecError) as error:
        read(**args)
    return error.value


def test_every_argument_is_read() -> None:
    asked: Mapping[str, Any] = {
        "context": "admin@kind",
        "kubeconfig": "~/.kube/config",
        "namespace": "training",
        "service_account": "trainer",
        "image_pull_secrets": ["one", "two.example.com", "one"],
        "queue": "team-a",
        "storage_class": "gp3",
        "node_selector": {"topology.kubernetes.io/zone": "us-west-2a"},
        "tolerations": ["nvidia.com/gpu:NoSchedule"],
        "priority_class": "low",
        "labels": {"team": "a", "empty": ""},
        "annotations": {"example.com/text": "any text, of any length"},
    }
    assert asked.keys() == {*names(KubernetesSpec)}
    assert read(**asked) == KubernetesSpec(
        {"topology.kubernetes.io/zone": "us-west-2a"},
        (Toleration("nvidia.com/gpu", effect="NoSchedule"),),
        "low",
        {"team": "a", "empty": ""},
        {"example.com/text": "any text, of any length"},
        "admin@kind",
        "~/.kube/config",
        "training",
        "trainer",
        ("one", "two.example.com"),
        "team-a",
        "gp3",
    )


def test_what_a_job_has_is_over_the_clusters() -> None:
    common = read(node_selector={"a": "1", "b": "1"}, tolerations=["spot"], priority_class="low", labels={"x": "y"})
    own = ArgReader("mnist", {"node_selector": {"b": "2"}, "tolerations": ["gpu", "spot"], "annotations": {"k": "v"}})
    assert read_all(own, PodSpec, common) == PodSpec(
        {"a": "1", "b": "2"}, (Toleration("spot"), Toleration("gpu")), "low", {"x": "y"}, {"k": "v"}
    )
    assert {*names(PodSpec)} == {"node_selector", "tolerations", "priority_class", "labels", "annotations"}


@pytest.mark.parametrize(
    ("text", "toleration"),
    [
        ("*", Toleration()),
        ("*:NoExecute", Toleration(effect="NoExecute")),
        ("example.com/spot:PreferNoSchedule", Toleration("example.com/spot", effect="PreferNoSchedule")),
        ("pool=a", Toleration("pool", "a", "Equal")),
        ("pool=:NoSchedule", Toleration("pool", "", "Equal", "NoSchedule")),
    ],
)
def test_a_toleration_is_written_as_kubectl_writes_taints(text: str, toleration: Toleration) -> None:
    assert read(tolerations=[text]).tolerations == (toleration,)


@pytest.mark.parametrize(
    ("args", "where"),
    [
        ({"namespace": "Training"}, "namespace"),
        ({"namespace": "a" * 64}, "namespace"),
        ({"storage_class": f"{'a' * 63}.{'b' * 63}.{'c' * 63}.{'d' * 63}"}, "storage_class"),
        ({"node_selector": {"zone": "-a"}}, "node_selector.zone"),
        ({"labels": {"team": "a b"}}, "labels.team"),
        ({"labels": {"Example.com/team": "a"}}, "labels.Example.com/team"),
        ({"labels": {"tfdeploy.id": "a"}}, "labels.tfdeploy.id"),
        ({"labels": {"kueue.x-k8s.io/queue-name": "a"}}, "labels.kueue.x-k8s.io/queue-name"),
        ({"annotations": {"tfdeploy/id": "a"}}, "annotations.tfdeploy/id"),
        ({"tolerations": ["pool=a=b"]}, "tolerations"),
        ({"tolerations": ["*=a"]}, "tolerations"),
        ({"tolerations": [":NoSchedule"]}, "tolerations"),
        ({"nodeSelector": {}}, "nodeSelector"),
    ],
)
def test_what_kubernetes_would_refuse_is_refused(args: Mapping[str, Any], where: str) -> None:
    assert refused(**args).where == f"mnist: kubernetes.{where}"


def test_a_kubeconfig_may_be_a_content_without_credentials() -> None:
    assert read(kubeconfig=EKS).kubeconfig == EKS
    for credential in ("client-key-data", "token", "password"):
        content = f"users:\n- user:\n    {credential}: c2VjcmV0\n"
        error = refused(kubeconfig=content)
        assert error.where == "mnist: kubernetes.kubeconfig"
        assert credential in error.wrong
        assert "c2VjcmV0" not in str(error)
    assert "kubeconfig_json" in refused(kubeconfig={"apiVersion": "v1"}).remedy


def test_values_that_only_the_update_knows_are_not_refused() -> None:
    unknown = Unknown("kubernetes.labels.team")
    assert read(namespace=unknown, labels={"team": unknown}, tolerations=[unknown]).labels == {"team": unknown}
