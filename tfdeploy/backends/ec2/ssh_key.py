"""The key pair of a cluster, created with it. Its private half is a secret in the state of the stack.

Every user who updates the stack reaches the machines with it, from any computer. The user's own key is added on the machines beside
it, so that the key of a colleague replaces no machine.
"""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, Resource

from ...errors import BackendError
from ..base import ClusterRef
from ..stack_config import StackProvider
from .machine import ssh

_READ_STATE = "pulumi:pulumi:readStackResourceOutputs"
_TYPE = "dynamic/tfdeploy:SshKey"


class SshKeyProvider(StackProvider):
    """Creates the key pair; nothing changes it."""

    def create(self, props: dict[str, Any]) -> CreateResult:
        """Create the key pair, which exists in the state only."""
        with TemporaryDirectory(prefix="tfdeploy-key-") as folder:
            file = Path(folder) / "key"
            command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "tfdeploy", "-f", str(file)]
            try:
                subprocess.run(command, check=True, stdin=subprocess.DEVNULL, capture_output=True)
            except FileNotFoundError:
                raise BackendError("ssh-keygen is not installed. Install it: apt install openssh-client") from None
            keys = {"public_key": file.with_suffix(".pub").read_text().strip(), "private_key": file.read_text()}
        return CreateResult(props["name"], {**props, **keys})

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        """It stays as it is as long as the cluster exists."""
        return DiffResult(changes=False)


class SshKey(Resource, module="tfdeploy", name="SshKey"):
    """The key pair of a cluster."""

    public_key: pulumi.Output[str]
    private_key: pulumi.Output[str]

    def __init__(self, name: str, opts: pulumi.ResourceOptions) -> None:
        props = {"name": name, "public_key": None, "private_key": None}
        secret = pulumi.ResourceOptions(additional_secret_outputs=["private_key"])
        super().__init__(SshKeyProvider(), name, props, pulumi.ResourceOptions.merge(opts, secret))


def key_name(name: str) -> str:
    """The name of the resource, from the cluster's."""
    return f"{name}-ssh-key"


def read_stored_key(cluster: ClusterRef) -> str:
    """The private key from the state of the stack, where this computer does not have it; else, or without one, empty."""
    if ssh.has_key(cluster):
        return ""
    result: Any = pulumi.runtime.invoke(_READ_STATE, {"stackName": cluster["stack"]})
    return find_stored_key((result.value or {}).get("outputs") or {}, cluster["name"])


def find_stored_key(resources: Mapping[str, Any], name: str) -> str:
    """The private key among the outputs of a stack's resources by URN; empty where there is none. Pure. A cluster that has moved to
    `ec2` has the backend in the names of its resources."""
    keys = tuple(f":{_TYPE}::{key_name(prefix)}" for prefix in (name, f"{name}-ec2"))
    for urn, item in resources.items():
        if urn.endswith(keys):
            key = item["outputs"].get("private_key", "")
            return str(key["value"] if isinstance(key, Mapping) else key)
    return ""
