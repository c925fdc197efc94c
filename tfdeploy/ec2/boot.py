"""The script that a machine runs when it is first started (cloud-init's user data). Pure.

It brings Docker into the shape that the cluster needs, and says that it has by a label of the engine: an engine with that label
is ready. Nothing secret is in it: whoever may describe the instance may read it.
"""

import json
import shlex
from dataclasses import dataclass

LIFE_LABEL = "tfdeploy.life"
"""The engine's label that says which life of the machine this is."""

GPU = "gpu"
"""What the machines call their GPUs as generic resources of the Swarm."""

SHARED = "/mnt/tfdeploy"
"""Where the file system is mounted that all machines share."""

HOST_KEY = "tfdeploy: host key: "
FAILED = "tfdeploy: boot failed"
READY = "tfdeploy: ready"
"""What the console says."""


def device(number: int) -> str:
    """What the further disk of this number is called on its machine."""
    return f"/dev/sd{chr(ord('f') + number)}"


def disk(number: int) -> str:
    """Where the machine mounts it."""
    return f"/mnt/volumes/{device(number).removeprefix('/dev/')}"


LARGEST = 16 * 1024
"""Bytes of user data, https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-add-user-data.html."""

_SCRIPT = """\
#!/bin/bash
set -euo pipefail
trap 'echo "{failed}: line $LINENO: $BASH_COMMAND"' ERR
say() {{ echo "tfdeploy: $*"; }}

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
echo "{ready}"
"""

_SHARED = """
say 'shared files'
mkdir -p {folder}
echo '{efs}:/ {folder} efs _netdev,noresvport,tls 0 0' >>/etc/fstab
for try in $(seq 60); do
    mount {folder} && break
    sleep 5
done
mountpoint -q {folder}
mkdir -p -m 1777 {train}
"""

_DISK = """
say 'volume {device}'
for try in $(seq 300); do
    test -b {device} && break
    sleep 1
done
test -b {device}
found=0
blkid --probe {device} || found=$?
if test $found -eq 2; then
    mkfs.ext4 -q {device}
fi
mkdir -p {folder}
echo '{device} {folder} auto nofail,x-systemd.before=docker.service 0 2' >>/etc/fstab
mount {folder}
mountpoint -q {folder}
if test $found -eq 2; then
    chmod 1777 {folder}
fi
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


def user_data(boot: Boot) -> str:
    """The script."""
    return _SCRIPT.format(
        failed=FAILED,
        host_key=HOST_KEY,
        ready=READY,
        name=boot.machine,
        user=boot.user,
        daemon=json.dumps(_daemon(boot), indent=2),
        shared=_SHARED.format(efs=boot.efs, folder=SHARED, train=shlex.quote(f"{SHARED}/{boot.train}"))
        if boot.efs
        else "",
        disks="".join(_DISK.format(device=device(number), folder=disk(number)) for number in range(boot.disks)),
        gpus=_GPUS.format(gpus=boot.gpus) if boot.gpus else "",
    )


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
