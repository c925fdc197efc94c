"""How this computer reaches machines: the files that ssh reads, addresses, host keys, and the user's own key."""

import subprocess
from pathlib import Path

import pytest

from tests.unit.fleets import CLUSTER, instance, spec
from tfdeploy.backends.access import access
from tfdeploy.backends.ec2 import BACKEND, keys, reach
from tfdeploy.backends.ec2.clearing import host_key, meet
from tfdeploy.backends.ec2.reach import Host, Reach
from tfdeploy.ec2 import account
from tfdeploy.errors import NotFound, SpecError, Unreachable

KEY = f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{'B0u+/xY' * 6}w"
HOSTS = {
    "mnist-ps-m0": Host("i-0a", "198.51.100.7", KEY),
    "mnist-worker-m0": Host("i-0b", "198.51.100.8", f"{KEY}w"),
}


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder of the test's own, with a space in its name."""
    home = tmp_path / "my state"
    monkeypatch.setenv("XDG_STATE_HOME", str(home))
    return home


def known(key: str = "") -> Reach:
    return Reach("mnist-ps-m0", "ubuntu", key, HOSTS)


def test_what_is_written_is_read_again() -> None:
    assert reach.read(CLUSTER) == Reach()
    reach.write(CLUSTER, known("/home/me/key"))
    assert reach.read(CLUSTER) == known("/home/me/key")
    reach.write(CLUSTER, Reach())
    assert reach.read(CLUSTER) == Reach()


def test_only_the_user_may_read_it_and_no_draft_is_left() -> None:
    reach.write(CLUSTER, known())
    folder = reach.of(CLUSTER)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert sorted(path.name for path in folder.iterdir()) == ["known_hosts", "machines.json", "ssh_config"]


def test_machines_are_known_by_their_instances() -> None:
    reach.write(CLUSTER, known())
    assert (reach.of(CLUSTER) / "known_hosts").read_text() == f"i-0a {KEY}\ni-0b {KEY}w\n"


def ssh(machine: str) -> dict[str, str]:
    """What ssh makes of the configuration for one machine."""
    command = ["ssh", "-G", "-F", str(reach.config(CLUSTER)), machine]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)


def test_ssh_reads_it(tmp_path: Path) -> None:
    key = tmp_path / "a key"
    reach.write(CLUSTER, known(str(key)))
    wanted = {
        "hostname": "198.51.100.8",
        "user": "ubuntu",
        "hostkeyalias": "i-0b",
        "identityfile": str(key),
        "stricthostkeychecking": "true",
        "hostkeyalgorithms": "ssh-ed25519",
        "globalknownhostsfile": "/dev/null",
    }
    found = ssh("mnist-worker-m0")
    assert {name: found[name] for name in wanted} == wanted
    assert found["userknownhostsfile"].strip('"') == str(reach.of(CLUSTER) / "known_hosts")


def test_ssh_goes_through_ssm_to_a_machine_whose_address_is_its_id() -> None:
    hosts = {**HOSTS, "mnist-worker-m0": Host("i-0b", "i-0b", KEY)}
    reach.write(CLUSTER, Reach("mnist-ps-m0", "ubuntu", "", hosts))
    session = "ssm start-session --target i-0b --region us-west-2 --document-name AWS-StartSSHSession"
    found = ssh("mnist-worker-m0")
    assert (found["hostname"], found["hostkeyalias"], found["user"]) == ("i-0b", "i-0b", "ubuntu")
    assert found["proxycommand"] == f"aws {session} --parameters portNumber=%p"
    assert "proxycommand" not in ssh("mnist-ps-m0")


def test_a_jump_host_of_the_users_own_leads_to_private_addresses(tmp_path: Path) -> None:
    reach.write(CLUSTER, known())
    file = reach.config(CLUSTER)
    own = tmp_path / "config"
    own.write_text("Host mnist-*\n  ProxyJump me@bastion\n  User somebody\n")
    file.write_text(file.read_text().replace("~/.ssh/config", str(own)))
    found = ssh("mnist-worker-m0")
    assert (found["proxyjump"], found["user"], found["hostname"]) == ("me@bastion", "ubuntu", "198.51.100.8")


@pytest.mark.parametrize(
    ("access", "address"),
    [("", "198.51.100.7"), ("public", "198.51.100.7"), ("private", "172.31.0.9"), ("ssm", "i-mnist-ps-m0")],
)
def test_a_machine_is_met_as_it_was_made_to_be_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, access: str, address: str
) -> None:
    monkeypatch.setattr(account, "console", lambda region, name: f"tfdeploy: host key: {KEY}\n")
    stands = instance("mnist-ps-m0", manages=True, private_ip="172.31.0.9", access=access)
    meet(CLUSTER, spec(workers=1, ssh_key=write_key(tmp_path, KEY)), [stands])
    assert reach.read(CLUSTER).hosts["mnist-ps-m0"] == Host("i-mnist-ps-m0", address, KEY)


def test_ssh_tells_machines_apart_and_knows_no_other() -> None:
    reach.write(CLUSTER, known())
    assert (ssh("mnist-ps-m0")["hostname"], ssh("mnist-ps-m0")["hostkeyalias"]) == ("198.51.100.7", "i-0a")
    other = ssh("elsewhere")
    assert (other["hostname"], "hostkeyalias" in other) == ("elsewhere", False)
    assert other["user"] != "ubuntu"


def test_without_a_machine_ssh_still_reads_it() -> None:
    reach.write(CLUSTER, Reach(user="ubuntu"))
    assert ssh("mnist-ps-m0")["hostname"] == "mnist-ps-m0"


def test_a_cluster_leads_to_its_manager_and_an_address_to_its_machine() -> None:
    reach.write(CLUSTER, known())
    assert reach.route(CLUSTER["home"]) == ("ssh://mnist-ps-m0", reach.config(CLUSTER))
    there = reach.address(CLUSTER, "mnist-worker-m0")
    assert reach.route(there) == ("ssh://mnist-worker-m0", reach.config(CLUSTER))
    assert reach.region(CLUSTER) == "us-west-2"


def test_what_is_not_known_is_not_reached() -> None:
    with pytest.raises(Unreachable, match="no machine manages the Swarm of mnist yet"):
        reach.route(CLUSTER["home"])
    reach.write(CLUSTER, known())
    with pytest.raises(Unreachable, match="mnist-worker-m9 is not there"):
        reach.route(reach.address(CLUSTER, "mnist-worker-m9"))


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


def test_a_console_that_is_cut_off_shows_no_half_of_a_key() -> None:
    line = f"tfdeploy: host key: {KEY}"
    assert {host_key(line[:end]) for end in range(len(line))} == {""}
    assert host_key(f"tfdeploy: host key: {KEY[:-9]}[   12.3] eth0: up\n") == ""


def write_key(folder: Path, text: str, name: str = "cluster.pub") -> str:
    (folder / name).write_text(text)
    return str(folder / name)


@pytest.mark.parametrize("line", ["ssh-ed25519 AAAA", "ssh-rsa AAAA+/= me@here", f"{KEY} a comment of words"])
def test_a_public_key_that_ec2_takes_is_read(tmp_path: Path, line: str) -> None:
    asked = spec(workers=1, ssh_key=write_key(tmp_path, f"{line}\n"))
    assert keys.public(asked) == line


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n", "a private key"),
        ("ecdsa-sha2-nistp256 AAAA me@here", "no public key of the kinds that EC2 takes"),
        ("ssh-ed25519 AAAA\nssh-ed25519 BBBB", "no public key of the kinds that EC2 takes"),
        ("", "no public key of the kinds that EC2 takes"),
    ],
)
def test_what_ec2_takes_not_is_refused(tmp_path: Path, text: str, what: str) -> None:
    path = write_key(tmp_path, text)
    with pytest.raises(SpecError) as error:
        keys.public(spec(workers=1, ssh_key=path))
    remedy = "Name the file of an ed25519 or RSA public key; it ends with .pub."
    assert str(error.value) == f"mnist: ssh_key: {path} holds {what}. {remedy}"


def test_a_file_that_is_missing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError) as error:
        keys.found(spec(workers=1, ssh_key=f"{tmp_path}/none.pub"))
    assert (
        str(error.value) == f"mnist: ssh_key: there is no file {tmp_path}/none.pub. Name the file of your public key."
    )


def test_the_users_own_key_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / ".ssh"
    with pytest.raises(SpecError) as error:
        keys.found(spec(workers=1))
    said = f"mnist: ssh_key: is not given, and {folder} has neither id_ed25519.pub nor id_rsa.pub. "
    remedy = "Make one by `ssh-keygen -t ed25519`, or name the file of your public key."
    assert str(error.value) == said + remedy
    folder.mkdir()
    rsa = write_key(folder, "ssh-rsa AAAA", "id_rsa.pub")
    assert str(keys.found(spec(workers=1))) == rsa
    ed25519 = write_key(folder, "ssh-ed25519 AAAA", "id_ed25519.pub")
    assert str(keys.found(spec(workers=1))) == ed25519
    assert str(keys.found(spec(workers=1, ssh_key="~/.ssh/id_rsa.pub"))) == rsa


def test_the_private_half_is_beside_the_public_one_or_an_agent_has_it(tmp_path: Path) -> None:
    path = Path(write_key(tmp_path, "ssh-ed25519 AAAA"))
    assert keys.private(path) == ""
    (tmp_path / "cluster").touch()
    assert keys.private(path) == str(tmp_path / "cluster")
    assert keys.private(tmp_path / "cluster") == ""


def test_ssh_leads_to_a_machine_by_its_name_or_by_a_task_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    hands = access("ec2")
    monkeypatch.setattr(BACKEND, "standing_on", lambda _: {"worker-0": "mnist-worker-m0"})
    with pytest.raises(NotFound, match=r"knows no machine of .*\. `pulumi preview` looks for them"):
        hands.ssh(CLUSTER, "mnist-ps-m0")
    reach.write(CLUSTER, known())
    begins = ["ssh", "-F", str(reach.config(CLUSTER))]
    assert hands.ssh(CLUSTER, "mnist-ps-m0") == [*begins, "mnist-ps-m0"]
    assert hands.ssh(CLUSTER, "worker-0") == [*begins, "mnist-worker-m0"]
    with pytest.raises(NotFound, match=r"has no machine 'm9'; it has mnist-ps-m0, mnist-worker-m0"):
        hands.ssh(CLUSTER, "m9")
