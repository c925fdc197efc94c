"""References to clusters for tests that need no cluster."""

from tfdeploy.backends.base import ClusterRef

ID = "k3v9x2abcd"
OWNER = "alice@laptop"


def cluster_ref(
    backend: str = "docker",
    home: str = "unix:///d.sock",
    project: str = "p",
    stack: str = "dev",
    name: str = "mnist",
    cluster_id: str = ID,
) -> ClusterRef:
    """The reference to a cluster, with an id that is the same in all tests."""
    return {
        "id": cluster_id,
        "owner": OWNER,
        "backend": backend,
        "project": project,
        "stack": stack,
        "name": name,
        "home": home,
    }
