"""The script that a machine runs at its first boot (cloud-init's user data). Pure.

It configures Docker, and last sets a label of the engine: an engine with that label is ready. The script contains no secret,
because everybody who may describe the instance can read it. Its first line schedules the machine's shutdown, so that a machine
ends whatever fails after it; the watchdog cancels that once it has started.
"""

import base64
import json
import math
import shlex
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..watchdog.main import DEFAULTS

GENERATION_LABEL = "tfdeploy.generation"
"""The engine's label that the boot script sets last."""

GPU = "gpu"
"""The name of GPUs as generic resources of the Swarm."""

SHARED = "/mnt/tfdeploy"
"""The mount point of the shared file system."""

SHOWN = "/run/tfdeploy"
"""The folder of the machine that tasks can read."""

STARTED = "tfdeploy: "
HOST_KEY = "tfdeploy: host key: "
FAILED = "tfdeploy: boot failed"
READY = "tfdeploy: ready"
"""Lines on the console."""


_STATE, _PROGRAMS, _VOLUMES = "/var/lib/tfdeploy", "/usr/local/lib/tfdeploy", "/mnt/volumes"
_WATCHDOG = f"{_PROGRAMS}/watchdog.pyz"


def _device_name(number: int) -> str:
    return f"sd{chr(ord('f') + number)}"


def device(number: int) -> str:
    """The device of a further disk, by its number."""
    return f"/dev/{_device_name(number)}"


def disk_folder(number: int) -> str:
    """The mount point of a further disk, by its number."""
    return f"{_VOLUMES}/{_device_name(number)}"


_UNPACK = "import base64,sys,zlib;sys.stdout.buffer.write(zlib.decompress(base64.b85decode(input())))"

_SCRIPT = """\
#!/bin/bash
shutdown -P +{guard}
set -euo pipefail
trap 'echo "{failed}: line $LINENO: $BASH_COMMAND"' ERR
log() {{ echo "tfdeploy: $*"; }}

log watchdog
rm -rf {state}
mkdir -p {state} /etc/tfdeploy {programs}
cat >/etc/tfdeploy/watchdog.json <<'END'
{settings}
END
cp /etc/tfdeploy/watchdog.json {programs}/settings.json
python3 -Ic '{unpack}' <<'END' >{watchdog}
{program}
END
cat >/etc/systemd/system/tfdeploy-watchdog.service <<'END'
{unit}
END
systemctl daemon-reload
systemctl enable --now tfdeploy-watchdog

sed 's/^/{host_key}/' /etc/ssh/ssh_host_ed25519_key.pub

log name
hostname {name}
echo {name} >/etc/hostname
echo 'preserve_hostname: true' >/etc/cloud/cloud.cfg.d/99-tfdeploy.cfg

log ssh
cat >/etc/ssh/sshd_config.d/10-tfdeploy.conf <<'END'
MaxStartups 200:30:400
MaxSessions 100
PasswordAuthentication no
PermitRootLogin no
END
systemctl reload sshd
{shared}{disks}{gpus}
log docker
systemctl disable --now ecs || true
usermod --append --groups docker {user}
mkdir -p /etc/docker
cat >/etc/docker/daemon.json <<'END'
{daemon}
END
systemctl enable docker
systemctl restart docker
docker info >/dev/null
touch {state}/ready
echo "{ready}"
"""

_UNIT = """\
[Unit]
Description=tfdeploy: shuts this machine down when it is no longer needed
After=network-online.target cloud-init.service
Before=docker.service

[Service]
ExecStartPre=/usr/bin/python3 -I {watchdog} prepare
ExecStart=/usr/bin/python3 -I {watchdog}
Restart=always
RestartSec=5

[Install]
WantedBy=multi-user.target"""
"""It starts after cloud-init has read the metadata: from then on only the watchdog can."""

_SHARED = """
log 'shared files'
mkdir -p {folder}
echo '{efs}:/ {folder} efs _netdev,noresvport,tls{region} 0 0' >>/etc/fstab
for try in $(seq 60); do
    mount {folder} && break
    sleep 5
done
mountpoint -q {folder}
mkdir -p -m 1777 {train}
"""

_DISKS = """
for disk in {disks}; do
    name=${{disk%%:*}} volume=${{disk#*:}}
    log "volume /dev/$name"
    for try in $(seq 300); do
        test -b /dev/$name && break
        sleep 1
    done
    test -b /dev/$name
    found=0
    blkid --probe /dev/$name || found=$?
    if test $found -eq 2; then
        if test $volume != {new}; then
            echo "{failed}: $volume has no file system that is known here, and tfdeploy formats only volumes that it created. \
If it is empty, format it, for example here: tfdeploy exec --machine {machine} -- sudo mkfs.ext4 /dev/$name"
            exit 1
        fi
        mkfs.ext4 -q /dev/$name
    fi
    mkdir -p {folder}/$name
    echo "/dev/$name {folder}/$name auto nofail,x-systemd.before=docker.service 0 2" >>/etc/fstab
    mount {folder}/$name
    mountpoint -q {folder}/$name
    if test $found -eq 2; then
        chmod 1777 {folder}/$name
    fi
done
"""
"""blkid's 2 means that it knows nothing of what is on the disk: it is empty, or unreadable, or has content of another kind."""

_NEW_VOLUME = "new"
"""In place of the id, for a volume that was created with its machine."""

_GPUS = """
log gpus
test "$(nvidia-smi --list-gpus | wc -l)" -eq {gpus}
"""


@dataclass(frozen=True)
class Boot:
    """The settings of a machine's boot."""

    machine: str
    generation: str
    """A random word: other user data makes Pulumi replace the machine."""
    user: str
    bridges: str
    """The address pool of its bridges."""
    gpus: int = 0
    efs: str = ""
    train: str = ""
    """The cluster's folder on the shared file system."""
    disks: tuple[str, ...] = ()
    """The further disks: the id of each volume of the user's, empty for one that is created with the machine."""
    watchdog: Mapping[str, Any] = field(default_factory=lambda: DEFAULTS)
    """The settings of the watchdog, which names and describes them."""


def user_data(boot: Boot, watchdog: bytes) -> str:
    """The script; `watchdog` is the zip application that it installs."""
    return _SCRIPT.format(
        guard=math.ceil(boot.watchdog["boot"] / 60),
        failed=FAILED,
        host_key=HOST_KEY,
        ready=READY,
        name=boot.machine,
        user=boot.user,
        state=_STATE,
        programs=_PROGRAMS,
        watchdog=_WATCHDOG,
        settings=json.dumps(boot.watchdog, indent=2),
        unpack=_UNPACK,
        program=_packed(watchdog),
        unit=_UNIT.format(watchdog=_WATCHDOG),
        daemon=json.dumps(_daemon(boot), indent=2),
        shared=_shared(boot) if boot.efs else "",
        disks=_disks(boot) if boot.disks else "",
        gpus=_GPUS.format(gpus=boot.gpus) if boot.gpus else "",
    )


def _disks(boot: Boot) -> str:
    disks = " ".join(f"{_device_name(number)}:{volume or _NEW_VOLUME}" for number, volume in enumerate(boot.disks))
    return _DISKS.format(disks=disks, new=_NEW_VOLUME, failed=FAILED, machine=boot.machine, folder=_VOLUMES)


def _shared(boot: Boot) -> str:
    """mount.efs gets the region as an option, because it cannot read the metadata."""
    region = f",region={boot.watchdog['region']}" if boot.watchdog["region"] else ""
    return _SHARED.format(efs=boot.efs, folder=SHARED, region=region, train=shlex.quote(f"{SHARED}/{boot.train}"))


def _packed(program: bytes) -> str:
    """The program as a line of text, in Python's base 85, which is a sixteenth shorter than base 64."""
    return base64.b85encode(zlib.compress(program, 9)).decode()


def _daemon(boot: Boot) -> dict[str, object]:
    """https://docs.docker.com/reference/cli/dockerd/#daemon-configuration-file. The image registers the runtime
    `nvidia` itself; Docker does not start with two registrations."""
    gpus: dict[str, object] = (
        {"default-runtime": "nvidia", "node-generic-resources": [f"{GPU}={boot.gpus}"]} if boot.gpus else {}
    )
    return {
        "labels": [f"{GENERATION_LABEL}={boot.generation}"],
        "log-driver": "local",
        "log-opts": {"max-size": "10m", "max-file": "3"},
        "default-address-pools": [{"base": boot.bridges, "size": 24}],
        **gpus,
    }
