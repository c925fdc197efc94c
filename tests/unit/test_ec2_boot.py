"""The script that a machine begins with: its text, its size, and what bash and Docker make of it."""

import json
import re
import shlex
import subprocess
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.cases import check_golden
from tfdeploy.ec2.boot import FAILED, HOST_KEY, LARGEST, LIFE_LABEL, READY, SHARED, Boot, device, disk, user_data
from tfdeploy.instances import MOST_VOLUMES

PLAIN = Boot("mnist-worker-m0", "a1b2c3d4", "ec2-user", "172.20.0.0/16")
SHARING = replace(PLAIN, efs="fs-0123456789abcdef0", train="project.dev.mnist")
WITH_GPUS = replace(PLAIN, gpus=4)
WITH_DISKS = replace(SHARING, disks=2)
LARGEST_BOOT = Boot(
    f"{'m' * 40}-evaluator-m999",
    "a1b2c3d4",
    "u" * 32,
    "192.168.128.0/17",
    16,
    f"fs-{'0' * 40}",
    f"{'p' * 100}.{'s' * 100}.{'m' * 40}",
    MOST_VOLUMES,
)
ALL = [PLAIN, SHARING, WITH_GPUS, WITH_DISKS, LARGEST_BOOT]


def daemon(script: str) -> dict[str, Any]:
    """What the script writes for Docker."""
    text = script.partition("/etc/docker/daemon.json <<'END'\n")[2].partition("\nEND\n")[0]
    found: dict[str, Any] = json.loads(text)
    return found


@pytest.mark.parametrize(
    ("golden", "boot"),
    [("boot-cpu", PLAIN), ("boot-efs", SHARING), ("boot-gpus", WITH_GPUS), ("boot-disks", WITH_DISKS)],
    ids=str,
)
def test_the_script_reads_as_kept(golden: str, boot: Boot) -> None:
    check_golden(golden, user_data(boot))


@pytest.mark.parametrize("boot", ALL, ids=str)
def test_bash_can_read_it(boot: Boot) -> None:
    done = subprocess.run(["bash", "-n"], input=user_data(boot), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_longest_is_far_below_what_ec2_takes() -> None:
    assert len(user_data(LARGEST_BOOT).encode()) < LARGEST / 2


def test_disks_are_named_as_ec2_recommends() -> None:
    names = [device(number) for number in range(MOST_VOLUMES)]
    assert (names[0], names[-1], len(set(names))) == ("/dev/sdf", "/dev/sdp", MOST_VOLUMES)
    assert (disk(0), disk(MOST_VOLUMES - 1)) == ("/mnt/volumes/sdf", "/mnt/volumes/sdp")


@pytest.mark.parametrize(("found", "does"), [(0, "mount"), (2, "mkfs mount chmod"), (8, "mount")])
def test_a_disk_is_formatted_only_when_nothing_is_on_it(found: int, does: str) -> None:
    part = user_data(replace(PLAIN, disks=1)).partition("say 'volume /dev/sdf'")[2].partition("say docker")[0]
    tools = "".join(f"{name}() {{ printf '%s ' {name}; }}; " for name in ("mount", "chmod"))
    none = "test() { [ $# -eq 2 ] || [ $@ ]; }; mkdir() { :; }; mountpoint() { :; }; mkfs.ext4() { printf 'mkfs '; }; "
    script = f"set -euo pipefail; {tools}{none}blkid() {{ return {found}; }}\n{part.replace('/etc/fstab', '/dev/null')}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == does.split()


@pytest.mark.parametrize("boot", ALL, ids=str)
def test_no_placeholder_is_left(boot: Boot) -> None:
    assert re.findall(r"\{[a-z_]*\}", user_data(boot)) == []
    assert "{{" not in user_data(boot)


@pytest.mark.parametrize("boot", ALL, ids=str)
def test_nothing_of_a_secret_is_in_it(boot: Boot) -> None:
    script = user_data(boot).replace("PasswordAuthentication no\n", "").lower()
    assert [word for word in ("secret", "token", "password", "private") if word in script] == []


@pytest.mark.parametrize("boot", ALL, ids=str)
def test_docker_is_told_its_label_and_its_addresses(boot: Boot) -> None:
    found = daemon(user_data(boot))
    assert found["labels"] == [f"{LIFE_LABEL}={boot.life}"]
    assert found["default-address-pools"] == [{"base": boot.bridges, "size": 24}]


def test_docker_offers_gpus_where_there_are_some() -> None:
    found = daemon(user_data(WITH_GPUS))
    assert found["node-generic-resources"] == ["gpu=4"]
    assert found["default-runtime"] == "nvidia"
    assert not {"default-runtime", "runtimes", "node-generic-resources"} & daemon(user_data(PLAIN)).keys()


def test_the_console_gets_the_host_key_first_and_ready_last() -> None:
    lines = user_data(SHARING).splitlines()
    order = [next(n for n, line in enumerate(lines) if word in line) for word in (FAILED, HOST_KEY, SHARED, READY)]
    assert order == sorted(order)
    assert READY in lines[-1]


def test_the_host_key_is_shown_as_the_console_is_read() -> None:
    (line,) = [line for line in user_data(PLAIN).splitlines() if line.startswith("sed")]
    command = [*shlex.split(line)[:2]]
    done = subprocess.run(command, input="ssh-ed25519 AAAA me\n", capture_output=True, text=True, check=True)
    assert done.stdout == f"{HOST_KEY}ssh-ed25519 AAAA me\n"


@pytest.mark.parametrize("train", ["runs of today", "a'b", "$(reboot)", "a;b"])
def test_a_folder_of_any_name_is_one_word_of_the_script(train: str) -> None:
    (line,) = [line for line in user_data(replace(SHARING, train=train)).splitlines() if "1777" in line]
    script = f"mkdir() {{ printf '%s|' \"$@\"; }}; {line}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == f"-p|-m|1777|{SHARED}/{train}|"
