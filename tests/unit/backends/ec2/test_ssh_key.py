"""The key pair of a cluster: created once, and found in the state of the stack by whoever updates it."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tfdeploy.backends.ec2.ssh_key import SshKeyProvider, find_stored_key

URN = "urn:pulumi:dev::project::tfdeploy:index:TensorFlowCluster$pulumi-python:dynamic/tfdeploy:SshKey::mnist-ssh-key"


def test_each_cluster_gets_another_key_which_ec2_accepts(tmp_path: Path) -> None:
    first, second = (SshKeyProvider().create({"name": "mnist"}).outs or {} for _ in range(2))
    assert first["private_key"] != second["private_key"]
    file = tmp_path / "key"
    file.write_text(first["private_key"])
    file.chmod(0o600)
    public = subprocess.run(["ssh-keygen", "-y", "-f", file], capture_output=True, text=True, check=True).stdout
    assert public.split()[:2] == first["public_key"].split()[:2]
    assert first["public_key"].startswith("ssh-ed25519 ")
    assert not SshKeyProvider().diff("", first, {"name": "mnist"}).changes


@pytest.mark.parametrize(
    ("outputs", "key"),
    [({"private_key": "key"}, "key"), ({"private_key": {"4dabf": "1b47", "value": "key"}}, "key"), ({}, "")],
)
def test_the_key_is_found_in_the_state(outputs: dict[str, Any], key: str) -> None:
    other = URN.replace("::mnist-ssh-key", "::other-ssh-key")
    state = {other: {"outputs": {"private_key": "another"}}, URN: {"outputs": outputs}}
    assert find_stored_key(state, "mnist") == key
    assert find_stored_key({other: state[other]}, "mnist") == ""
