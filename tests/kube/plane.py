"""The parts of a control plane, and how they start."""

import json
from collections.abc import Mapping
from pathlib import Path

from tests.kube.credentials import ADMINISTRATORS, Authority, write_token_key

ADDRESS = "10.77.0.1"
SERVER = f"https://{ADDRESS}:6443"
ETCD = "http://127.0.0.1:2379"
STORAGE_CLASS = "folders"
PROVISIONER = "tfdeploy.test/folders"

AUDIT_LOG = "audit.log"
_AUDIT = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "None", "userGroups": [*ADMINISTRATORS, "system:serviceaccounts", "system:nodes"]},
        {"level": "Metadata"},
    ],
}
"""What users ask who are no administrators."""


def parts(folder: Path, kube: Path) -> Mapping[str, list[str]]:
    """The commands of the control plane's parts, in the order in which they start."""
    login = f"--kubeconfig={folder}/kubeconfig-inside"
    return {
        "etcd": [
            "etcd",
            *(f"--data-dir={folder}/etcd", "--unsafe-no-fsync", "--log-level=warn"),
            *(f"--listen-client-urls={ETCD}", f"--advertise-client-urls={ETCD}"),
            "--listen-peer-urls=http://127.0.0.1:2380",
        ],
        "apiserver": [
            *(str(kube), "apiserver", f"--etcd-servers={ETCD}"),
            *(f"--bind-address={ADDRESS}", f"--advertise-address={ADDRESS}", "--secure-port=6443"),
            *(f"--tls-cert-file={folder}/server.crt", f"--tls-private-key-file={folder}/server.key"),
            *(f"--client-ca-file={folder}/ca.crt", f"--cert-dir={folder}", "--authorization-mode=RBAC"),
            "--service-account-issuer=https://kubernetes.default.svc",
            *(f"--service-account-key-file={folder}/sa.pub", f"--service-account-signing-key-file={folder}/sa.key"),
            *("--service-cluster-ip-range=10.96.0.0/16", "--kubelet-preferred-address-types=InternalIP"),
            *(f"--audit-policy-file={folder}/audit.json", f"--audit-log-path={folder}/{AUDIT_LOG}"),
            # Nothing routes the addresses of services: a webhook's is reached by its pod's.
            *("--enable-aggregator-routing=true", "--allow-privileged=true"),
        ],
        "controller-manager": [
            *(str(kube), "controller-manager", login, "--leader-elect=false", f"--root-ca-file={folder}/ca.crt"),
            f"--service-account-private-key-file={folder}/sa.key",
            # A node counts as lost a minute after its last report elsewhere.
            *("--node-monitor-grace-period=20s", "--node-monitor-period=1s"),
        ],
        "scheduler": [str(kube), "scheduler", login, "--leader-elect=false"],
        "names": [str(kube), "names", login, f"--address={ADDRESS}:53"],
        "volumes": [str(kube), "volumes", login, f"--folder={folder}/volumes"],
    }


def write_credentials(folder: Path, port: int) -> Authority:
    """Write what the parts and the administrator log in with, from inside, and from here at a port; and whose calls are logged."""
    (folder / "audit.json").write_text(json.dumps(_AUDIT))
    authority = Authority(folder)
    authority.server("server", (ADDRESS, "127.0.0.1", "10.96.0.1"))
    write_token_key(folder)
    for name, server in (("kubeconfig", f"https://127.0.0.1:{port}"), ("kubeconfig-inside", SERVER)):
        path = folder / name
        path.touch(mode=0o600)
        path.write_text(authority.kubeconfig(server, "admin", ADMINISTRATORS))
    return authority


def storage_class() -> dict[str, object]:
    """The default storage class: each volume is a folder that all nodes share."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {
            "name": STORAGE_CLASS,
            "annotations": {"storageclass.kubernetes.io/is-default-class": json.dumps(True)},
        },
        "provisioner": PROVISIONER,
    }
