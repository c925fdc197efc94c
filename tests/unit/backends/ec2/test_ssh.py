"""How this computer reaches machines: the files that ssh reads, addresses, host keys, and the keys of users."""

import subprocess
from pathlib import Path

import pytest

from tests.unit.backends.ec2.fleets import CLUSTER, instance, spec
from tfdeploy.backends.backend import access
from tfdeploy.backends.docker.engine.connection import SshTarget
from tfdeploy.backends.docker.labels import MACHINE_LABEL
from tfdeploy.backends.docker.swarm.swarm import Swarm
from tfdeploy.backends.ec2.aws import api
from tfdeploy.backends.ec2.machine import ssh
from tfdeploy.backends.ec2.machine.boot import host_key
from tfdeploy.backends.ec2.machine.machine_provider import discover_hosts
from tfdeploy.backends.ec2.machine.ssh import Host, SshHosts
from tfdeploy.errors import NotFound, SpecError

KEY = f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{'B0u+/xY' * 6}w"
HOSTS = {"mnist-ps-m0": Host("i-0a", "198.51.100.7", KEY), "mnist-worker-m0": Host("i-0b", "198.51.100.8", f"{KEY}w")}


@pytest.fixture(autouse=True)
def nothing_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssh, "_in_use", {})


def known() -> SshHosts:
    return SshHosts("mnist-ps-m0", "ubuntu", HOSTS)


def run_ssh(machine: str) -> dict[str, str]:
    """What ssh makes of the configuration for one machine."""
    command = ["ssh", "-G", "-F", str(ssh.config_file(CLUSTER)), machine]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)


def test_ssh_reads_it_tells_machines_apart_and_knows_no_other() -> None:
    ssh.write(CLUSTER, known())
    wanted = {
        "hostname": "198.51.100.8",
        "user": "ubuntu",
        "hostkeyalias": "i-0b",
        "identityfile": str(ssh.folder(CLUSTER) / "id_ed25519"),
        "stricthostkeychecking": "true",
        "hostkeyalgorithms": "ssh-ed25519",
        "globalknownhostsfile": "/dev/null",
    }
    found = run_ssh("mnist-worker-m0")
    assert {name: found[name] for name in wanted} == wanted
    assert found["userknownhostsfile"].strip('"') == str(ssh.folder(CLUSTER) / "known_hosts")
    assert (run_ssh("mnist-ps-m0")["hostname"], run_ssh("mnist-ps-m0")["hostkeyalias"]) == ("198.51.100.7", "i-0a")
    other = run_ssh("elsewhere")
    assert (other["hostname"], "hostkeyalias" in other) == ("elsewhere", False)
    assert other["user"] != "ubuntu"


def test_ssh_goes_through_ssm_to_a_machine_whose_address_is_its_id() -> None:
    hosts = {**HOSTS, "mnist-worker-m0": Host("i-0b", "i-0b", KEY)}
    ssh.write(CLUSTER, SshHosts("mnist-ps-m0", "ubuntu", hosts))
    session = "ssm start-session --target i-0b --region us-west-2 --document-name AWS-StartSSHSession"
    found = run_ssh("mnist-worker-m0")
    assert (found["hostname"], found["hostkeyalias"], found["user"]) == ("i-0b", "i-0b", "ubuntu")
    assert found["proxycommand"] == f"aws {session} --parameters portNumber=%p"
    assert "proxycommand" not in run_ssh("mnist-ps-m0")


@pytest.mark.parametrize(
    ("access", "address"),
    [("", "198.51.100.7"), ("public", "198.51.100.7"), ("private", "172.31.0.9"), ("ssm", "i-mnist-ps-m0")],
)
def test_a_machine_is_met_as_it_was_made_to_be_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, access: str, address: str
) -> None:
    monkeypatch.setattr(api, "console", lambda region, name: f"tfdeploy: host key: {KEY}\n")
    stands = instance("mnist-ps-m0", is_manager=True, private_ip="172.31.0.9", access=access)
    found = discover_hosts(CLUSTER, spec(workers=1, ec2={"ssh_public_key": write_key(tmp_path, KEY)}), [stands])
    assert found.hosts["mnist-ps-m0"] == Host("i-mnist-ps-m0", address, KEY)


def test_what_a_preview_finds_out_is_used_and_not_stored_until_an_update_stores_it(state_folder: Path) -> None:
    ssh.use(CLUSTER, known())
    assert not state_folder.exists()
    assert ssh.read(CLUSTER) == known()
    assert ssh.route(CLUSTER["home"]) == SshTarget("ssh://mnist-ps-m0", ssh.config_file(CLUSTER))
    there = f"{CLUSTER['home']}#mnist-worker-m0"
    assert ssh.route(there) == SshTarget("ssh://mnist-worker-m0", ssh.config_file(CLUSTER))
    assert ssh.region(CLUSTER) == "us-west-2"
    assert run_ssh("mnist-worker-m0")["hostname"] == "198.51.100.8"
    ssh.store(CLUSTER)
    assert ssh.read(CLUSTER) == known()
    assert ssh.config_file(CLUSTER).is_relative_to(state_folder)
    ssh.use(CLUSTER, SshHosts())
    assert ssh.read(CLUSTER) == SshHosts()
    assert (ssh.folder(CLUSTER) / "known_hosts").read_text().count("\n") == 2, "what is stored stays"


@pytest.mark.parametrize("name", ['a"b', "${HOME}", "a\\b", "a\nForwardAgent yes"])
def test_a_state_folder_that_ssh_cannot_be_told_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / name))
    with pytest.raises(SpecError, match="ssh's configuration cannot contain this path"):
        ssh.write(CLUSTER, known())


def test_the_clusters_key_is_private_and_a_preview_does_not_store_it(state_folder: Path) -> None:
    ssh.use(CLUSTER, known(), "the private key\n")
    assert not state_folder.exists()
    identity = Path(run_ssh("mnist-ps-m0")["identityfile"])
    assert (identity.read_text(), identity.stat().st_mode & 0o777) == ("the private key\n", 0o600)
    assert not ssh.has_key(CLUSTER)
    ssh.store_key(CLUSTER, "the private key\n")
    ssh.store(CLUSTER)
    assert ssh.has_key(CLUSTER)
    stored = Path(run_ssh("mnist-ps-m0")["identityfile"])
    assert stored.is_relative_to(state_folder)
    assert (stored.read_text(), stored.stat().st_mode & 0o777) == ("the private key\n", 0o600)


def test_no_agent_is_lent_to_a_machine_whatever_the_users_own_settings_are(tmp_path: Path) -> None:
    ssh.write(CLUSTER, known())
    file = ssh.config_file(CLUSTER)
    own = tmp_path / "config"
    own.write_text("Host *\n  ForwardAgent yes\n")
    file.write_text(file.read_text().replace("~/.ssh/config", str(own)))
    assert run_ssh("mnist-worker-m0")["forwardagent"] == "no"
    assert run_ssh("elsewhere")["forwardagent"] == "yes"


@pytest.mark.parametrize(
    ("console", "key"),
    [
        ("", ""),
        ("booting\ntfdeploy: ready\n", ""),
        (f"booting\ntfdeploy: host key: {KEY} root@ip-172-31-0-9\ntfdeploy: name\n", KEY),
        (f"[   12.3] cloud-init[1234]: tfdeploy: host key: {KEY} root@ip\r\n", KEY),
        (f"tfdeploy: host key: {KEY}\r\n", KEY),
    ],
)
def test_the_host_key_is_read_from_the_console(console: str, key: str) -> None:
    assert host_key(console) == key


def write_key(folder: Path, text: str, name: str = "cluster.pub") -> str:
    (folder / name).write_text(text)
    return str(folder / name)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n", "is a private key"),
        ("ecdsa-sha2-nistp256 AAAA me@here", "is not a public key that EC2 accepts"),
        ("ssh-ed25519 AAAA\nssh-ed25519 BBBB", "is not a public key that EC2 accepts"),
        ("", "is not a public key that EC2 accepts"),
    ],
)
def test_what_ec2_takes_not_is_refused(tmp_path: Path, text: str, what: str) -> None:
    path = write_key(tmp_path, text)
    with pytest.raises(SpecError) as error:
        ssh.public_key(spec(workers=1, ec2={"ssh_public_key": path}))
    remedy = "Set it to the file of an ed25519 or RSA public key; its name ends with .pub."
    assert str(error.value) == f"mnist: ec2.ssh_public_key: {path} {what}. {remedy}"


def test_the_users_own_key_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / ".ssh"
    with pytest.raises(SpecError) as error:
        ssh.public_key(spec(workers=1))
    said = f"mnist: ec2.ssh_public_key: is not set, and {folder} has neither id_ed25519.pub nor id_rsa.pub. "
    remedy = "Create a key with `ssh-keygen -t ed25519`, or set it to the file of your public key."
    assert str(error.value) == said + remedy
    folder.mkdir()
    write_key(folder, "ssh-rsa AAAA", "id_rsa.pub")
    assert ssh.public_key(spec(workers=1)) == "ssh-rsa AAAA"
    write_key(folder, "ssh-ed25519 AAAA", "id_ed25519.pub")
    assert ssh.public_key(spec(workers=1)) == "ssh-ed25519 AAAA"
    assert ssh.public_key(spec(workers=1, ec2={"ssh_public_key": "~/.ssh/id_rsa.pub"})) == "ssh-rsa AAAA"


def test_ssh_leads_to_a_machine_by_its_name_or_by_a_task_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    hands = access("ec2")
    services = {"worker-0": {"Spec": {"Labels": {MACHINE_LABEL: "mnist-worker-m0"}}}}
    monkeypatch.setattr(Swarm, "services", lambda _: services)
    with pytest.raises(NotFound, match=r"does not know the machines of .*\. `pulumi up` discovers them"):
        hands.ssh(CLUSTER, "mnist-ps-m0")
    ssh.write(CLUSTER, known())
    begins = ["ssh", "-F", str(ssh.config_file(CLUSTER))]
    assert hands.ssh(CLUSTER, "mnist-ps-m0") == [*begins, "mnist-ps-m0"]
    assert hands.ssh(CLUSTER, "worker-0") == [*begins, "mnist-worker-m0"]
    with pytest.raises(NotFound, match=r"has no machine 'm9'; it has mnist-ps-m0, mnist-worker-m0"):
        hands.ssh(CLUSTER, "m9")
