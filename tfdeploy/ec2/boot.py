"""The script that a machine runs when it is first started (cloud-init's user data). Pure.

It brings Docker into the shape that the cluster needs, and says that it has by a label of the engine: an engine with that label
is ready. Nothing secret is in it: whoever may describe the instance may read it.
"""

import base64
import gzip
import io
import json
import shlex
from dataclasses import dataclass

LIFE_LABEL = "tfdeploy.life"
"""The engine's label that says which life of the machine this is."""

GPU = "gpu"
"""What the machines call their GPUs as generic resources of the Swarm."""

SHARED = "/mnt/tfdeploy"
"""Where the file system is mounted that all machines share."""

SHOWN = "/run/tfdeploy"
"""What of the machine its tasks may see."""

HOST_KEY = "tfdeploy: host key: "
FAILED = "tfdeploy: boot failed"
READY = "tfdeploy: ready"
"""What the console says."""


_STATE, _PROGRAMS, _VOLUMES = "/var/lib/tfdeploy", "/usr/local/lib/tfdeploy", "/mnt/volumes"
_CARETAKER = f"{_PROGRAMS}/caretaker.pyz"


def _name(number: int) -> str:
    return f"sd{chr(ord('f') + number)}"


def device(number: int) -> str:
    """What the further disk of this number is called on its machine."""
    return f"/dev/{_name(number)}"


def disk(number: int) -> str:
    """Where the machine mounts it."""
    return f"{_VOLUMES}/{_name(number)}"


LARGEST = 16 * 1024
"""Bytes of user data, https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-add-user-data.html."""

_SCRIPT = """\
#!/bin/bash
set -euo pipefail
trap 'echo "{failed}: line $LINENO: $BASH_COMMAND"' ERR
say() {{ echo "tfdeploy: $*"; }}

say caretaker
rm -rf {state}
mkdir -p {state} /etc/tfdeploy {programs}
cat >/etc/tfdeploy/caretaker.json <<'END'
{settings}
END
base64 --decode <<'END' | gunzip >{caretaker}
{program}
END
cat >/etc/systemd/system/tfdeploy-caretaker.service <<'END'
{unit}
END
systemctl daemon-reload
systemctl enable --now tfdeploy-caretaker || {{ shutdown -P +30; false; }}

sed 's/^/{host_key}/' /etc/ssh/ssh_host_ed25519_key.pub

say name
hostname {name}
echo {name} >/etc/hostname
echo 'preserve_hostname: true' >/etc/cloud/cloud.cfg.d/99-tfdeploy.cfg

say ssh
cat >/etc/ssh/sshd_config.d/10-tfdeploy.conf <<'END'
MaxStartups 200:30:400
MaxSessions 100
PasswordAuthentication no
PermitRootLogin no
END
systemctl reload sshd
{shared}{disks}{gpus}
say docker
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
Description=tfdeploy: ends this machine when it is no longer needed
After=network-online.target cloud-init.service
Before=docker.service

[Service]
ExecStartPre=/usr/bin/python3 -I {caretaker} prepare
ExecStart=/usr/bin/python3 -I {caretaker}
Restart=always
RestartSec=5

[Install]
WantedBy=multi-user.target"""
"""After cloud-init has asked for metadata: from then on only the caretaker can."""

_SHARED = """
say 'shared files'
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
for name in {names}; do
    say "volume /dev/$name"
    for try in $(seq 300); do
        test -b /dev/$name && break
        sleep 1
    done
    test -b /dev/$name
    found=0
    blkid --probe /dev/$name || found=$?
    if test $found -eq 2; then
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
"""blkid's 2 is "nothing there at all": what has a partition table or an unknown mixture is not formatted, and boot fails."""

_GPUS = """
say gpus
test "$(nvidia-smi --list-gpus | wc -l)" -eq {gpus}
"""


@dataclass(frozen=True)
class Boot:
    """What a machine must know when it begins."""

    machine: str
    life: str
    user: str
    bridges: str
    """The pool of addresses for its bridges."""
    gpus: int = 0
    efs: str = ""
    train: str = ""
    """The cluster's folder on the shared file system."""
    disks: int = 0
    """How many further disks it has."""
    project: str = ""
    stack: str = ""
    cluster: str = ""
    lifetime: float = 0.0
    """After so many seconds it ends itself; 0 for never."""
    idle: float = 0.0
    """When no task has run for so many seconds it ends itself; 0 for never."""
    boot: float = 1800.0
    """When it is not ready within so many seconds it ends itself. Longer than `up` waits, which then still finds the console."""
    spot: bool = False
    region: str = ""
    bucket: str = ""
    """Where the record outlives it; empty for nowhere."""
    endpoint: str = ""
    """S3's address; empty for AWS's own."""
    ssm: bool = False
    """It is reached through Systems Manager, whose agent has to reach the metadata."""


def user_data(boot: Boot, caretaker: bytes) -> str:
    """The script; `caretaker` is the zip application that it installs."""
    return _SCRIPT.format(
        failed=FAILED,
        host_key=HOST_KEY,
        ready=READY,
        name=boot.machine,
        user=boot.user,
        state=_STATE,
        programs=_PROGRAMS,
        caretaker=_CARETAKER,
        settings=json.dumps(_settings(boot), indent=2),
        program=_packed(caretaker),
        unit=_UNIT.format(caretaker=_CARETAKER),
        daemon=json.dumps(_daemon(boot), indent=2),
        shared=_shared(boot) if boot.efs else "",
        disks=_DISKS.format(names=" ".join(map(_name, range(boot.disks))), folder=_VOLUMES) if boot.disks else "",
        gpus=_GPUS.format(gpus=boot.gpus) if boot.gpus else "",
    )


def _shared(boot: Boot) -> str:
    """mount.efs is told the region, for it cannot ask the metadata."""
    region = f",region={boot.region}" if boot.region else ""
    return _SHARED.format(efs=boot.efs, folder=SHARED, region=region, train=shlex.quote(f"{SHARED}/{boot.train}"))


def _packed(program: bytes) -> str:
    """As text, in lines; of one program the same under every Python."""
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0) as packed:
        packed.write(program)
    return base64.encodebytes(buffer.getvalue()).decode().strip()


def _settings(boot: Boot) -> dict[str, object]:
    """What the caretaker reads (`caretaker.main`)."""
    names = (
        "machine",
        "project",
        "stack",
        "cluster",
        "lifetime",
        "idle",
        "boot",
        "spot",
        "region",
        "bucket",
        "endpoint",
        "ssm",
    )
    return {name: getattr(boot, name) for name in names}


def _daemon(boot: Boot) -> dict[str, object]:
    """https://docs.docker.com/reference/cli/dockerd/#daemon-configuration-file. The runtime `nvidia` itself is registered by the
    image; named twice, Docker would not start."""
    gpus: dict[str, object] = (
        {"default-runtime": "nvidia", "node-generic-resources": [f"{GPU}={boot.gpus}"]} if boot.gpus else {}
    )
    return {
        "labels": [f"{LIFE_LABEL}={boot.life}"],
        "log-driver": "local",
        "log-opts": {"max-size": "10m", "max-file": "3"},
        "default-address-pools": [{"base": boot.bridges, "size": 24}],
        **gpus,
    }
