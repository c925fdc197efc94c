"""What keeps a pod from being created is named: by the preview, and soon by `up`, with what to do."""

from tests.kube.cluster import Cluster
from tests.kubernetes.project import KubernetesProject
from tests.kubernetes.test_failures import quota

LIMITS = "/api/v1/namespaces/default/limitranges/sizes"


def test_an_update_says_why_the_controller_has_no_pod_and_the_next_one_goes_on(
    kube: Cluster, project: KubernetesProject
) -> None:
    project.write('command=["python", "-c", "print(1)"], workers=1, jobs={"worker": {"memory": "2GiB"}}')
    item = {"type": "Container", "max": {"memory": "1Gi"}}
    kube.api.apply(
        LIMITS,
        {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "sizes"}, "spec": {"limits": [item]}},
    )
    quota(kube, 0)
    try:
        preview = " ".join(project.call("preview", "--stack", project.stack).output.split())
        assert "Kubernetes would not create the pod of worker-0 now" in preview
        assert "maximum memory usage per Container is 1Gi" in preview
        words = " ".join(project.up(fails=True).output.split())
        assert "the controller of test did not start: FailedCreate: " in words
        assert "exceeded quota: few" in words
        assert "`kubectl describe quota,limits` shows the limit" in words
    finally:
        quota(kube, None)
        kube.api.delete(LIMITS)
    project.up()
    assert project.outputs()["state"] == "succeeded"
    project.destroy()
