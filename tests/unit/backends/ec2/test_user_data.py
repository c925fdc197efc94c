"""The script that a machine begins with: its text, its size, and what bash and Docker make of it."""

import subprocess
from dataclasses import replace

import pytest

from tests.unit.cases import changed_lines, check_golden
from tfdeploy.backends.ec2.machine.user_data import FAILED, Boot, user_data
from tfdeploy.backends.ec2.watchdog.main import DEFAULTS
from tfdeploy.spec.ec2 import MOST_VOLUMES

NEVER = {**DEFAULTS, "lifetime": 0.0, "idle": 0.0}
PLAIN = Boot("mnist-worker-m0", "a1b2c3d4", "ec2-user", "172.20.0.0/16", watchdog=NEVER)
SHARING = replace(
    PLAIN, efs="fs-0123456789abcdef0", train="mnist-k3v9x2abcd", watchdog={**NEVER, "region": "us-west-2"}
)
CARED_FOR = replace(PLAIN, watchdog={**DEFAULTS, "spot": True, "bucket": "records", "folder": "mnist-k3v9x2abcd"})
WITH_GPUS = replace(PLAIN, gpus=4)
WITH_DISKS = replace(SHARING, disks=("", "vol-0123456789abcdef0"))

LARGEST_BOOT = Boot(
    f"{'m' * 40}-evaluator-m999",
    "a1b2c3d4",
    "u" * 32,
    "192.168.128.0/17",
    16,
    f"fs-{'0' * 40}",
    f"{'m' * 40}-k3v9x2abcd",
    (f"vol-{'0' * 17}",) * MOST_VOLUMES,
    {
        **dict.fromkeys(("lifetime", "idle", "boot"), 31536000.0),
        "spot": True,
        "region": "ap-southeast-1",
        "bucket": "b" * 63,
        "folder": f"{'m' * 40}-k3v9x2abcd",
        "endpoint": f"https://{'e' * 100}",
        "ssm": False,
    },
)
WATCHDOG = b"the watchdog"


def script(boot: Boot) -> str:
    """The script, with a program that changes no golden text."""
    return user_data(boot, WATCHDOG)


@pytest.mark.parametrize(
    ("golden", "other", "boot"),
    [
        ("boot-cpu", None, PLAIN),
        ("boot-ends", PLAIN, CARED_FOR),
        ("boot-efs", PLAIN, SHARING),
        ("boot-gpus", PLAIN, WITH_GPUS),
        ("boot-disks", SHARING, WITH_DISKS),
    ],
    ids=str,
)
def test_a_script_or_what_another_machine_has_in_it_reads_as_kept(golden: str, other: Boot | None, boot: Boot) -> None:
    check_golden(golden, changed_lines(script(other), script(boot)) if other else script(boot))


@pytest.mark.parametrize("boot", [PLAIN, CARED_FOR, SHARING, WITH_GPUS, WITH_DISKS, LARGEST_BOOT], ids=str)
def test_bash_can_read_it(boot: Boot) -> None:
    done = subprocess.run(["bash", "-n"], input=script(boot), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


VOLUME = "vol-0123456789abcdef0"
UNKNOWN = f"""\
{FAILED}: {VOLUME} has no file system that is known here, and tfdeploy formats only volumes that it created. \
If it is empty, format it, for example here: tfdeploy exec --machine mnist-worker-m0 -- sudo mkfs.ext4 /dev/sdf
"""


@pytest.mark.parametrize(
    ("volume", "found", "does", "code"),
    [
        ("", 0, "mount ", 0),
        ("", 2, "mkfs mount chmod ", 0),
        ("", 8, "mount ", 0),
        (VOLUME, 0, "mount ", 0),
        (VOLUME, 2, UNKNOWN, 1),
        (VOLUME, 8, "mount ", 0),
    ],
)
def test_a_volume_of_the_users_is_never_formatted(volume: str, found: int, does: str, code: int) -> None:
    part = script(replace(PLAIN, disks=(volume,))).partition("\nfor disk in ")[2].partition("log docker")[0]
    tools = "".join(f"{name}() {{ printf '%s ' {name}; }}; " for name in ("mount", "chmod"))
    none = "test() { [ $1 = -b ] || [ $@ ]; }; mkdir() { :; }; mountpoint() { :; }; mkfs.ext4() { printf 'mkfs '; }; "
    begin = f"set -euo pipefail; {tools}{none}log() {{ :; }}; blkid() {{ return {found}; }}\nfor disk in "
    whole = begin + part.replace("/etc/fstab", "/dev/null")
    done = subprocess.run(["bash", "-c", whole], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == (does, code)


def test_the_watchdog_is_installed_before_anything_can_fail() -> None:
    text = script(LARGEST_BOOT)
    assert text.index("enable --now tfdeploy-watchdog") < text.index("log name") < text.index("log docker")
    command, _, rest = text[text.index("python3 -Ic '") :].partition(" >/usr/local/lib/tfdeploy/watchdog.pyz\n")
    program = rest.partition("\nEND\n")[0]
    unpacked = subprocess.run(["bash", "-c", f"{command}\n{program}\nEND\n"], capture_output=True, check=True).stdout
    assert unpacked == WATCHDOG
