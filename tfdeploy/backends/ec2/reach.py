"""How this computer reaches a cluster's machines: by ssh, with the host keys that EC2 itself told.

All of it is in one folder of the user's state folder, as files that `ssh -F FOLDER/ssh_config MACHINE` takes too.
"""

import json
import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from ...errors import CommandError, Unreachable
from ..base import Cluster
from ..folders import cluster_folder, make_private, put, state_folder

SCHEME = "ec2"

_CONFIG, _HOSTS, _KNOWN = "ssh_config", "known_hosts", "machines.json"


@dataclass(frozen=True)
class Host:
    """One machine, as ssh must know it."""

    instance_id: str
    address: str
    """Where ssh finds it: an address, or its id where SSM leads there."""
    host_key: str
    """As a line of `known_hosts` has it, without the name: `ssh-ed25519 AAAA…`."""


@dataclass(frozen=True)
class Reach:
    """The machines of one cluster."""

    manager: str = ""
    user: str = ""
    key: str = ""
    """The file of the private key; empty for ssh's own choice."""
    hosts: Mapping[str, Host] = field(default_factory=dict)

    @property
    def host_keys(self) -> Mapping[str, str]:
        """Instance to host key."""
        return {host.instance_id: host.host_key for host in self.hosts.values()}


def home(region: str, project: str, stack: str, name: str) -> str:
    """Where a cluster is, as `Cluster.home` has it."""
    return f"{SCHEME}://{region}/{project}/{stack}/{name}"


def region(cluster: Cluster) -> str:
    """The region of a cluster."""
    return str(urlsplit(cluster["home"]).hostname)


def address(cluster: Cluster, machine: str) -> str:
    """The address of one machine's engine; that of the manager is the cluster's home."""
    return f"{cluster['home']}#{machine}"


def folder(project: str, stack: str, name: str) -> Path:
    """Where it is all kept."""
    return state_folder() / SCHEME / cluster_folder(project, stack, name)


def of(cluster: Cluster) -> Path:
    """The folder of a cluster."""
    return folder(cluster["project"], cluster["stack"], cluster["name"])


def config(cluster: Cluster) -> Path:
    """The configuration for ssh."""
    return of(cluster) / _CONFIG


def read(cluster: Cluster) -> Reach:
    """What is known; nothing where nothing is."""
    return _read(of(cluster))


def write(cluster: Cluster, reach: Reach) -> None:
    """Keep it, and what ssh makes of it."""
    place = of(cluster)
    make_private(place)
    put(place / _KNOWN, json.dumps(asdict(reach), indent=1))
    lines = "".join(f"{host.instance_id} {host.host_key}\n" for host in reach.hosts.values())
    put(place / _HOSTS, lines)
    put(place / _CONFIG, _ssh_config(place, region(cluster), reach))


def route(where: str) -> tuple[str, Path]:
    """The machine that an address (`home`, or `address`) leads to, and the configuration for ssh.

    Raises:
        Unreachable: this computer does not know it.
    """
    url = urlsplit(where)
    project, stack, name = url.path.strip("/").split("/")
    place = folder(project, stack, name)
    reach = _read(place)
    machine = url.fragment or reach.manager
    if machine not in reach.hosts:
        raise Unreachable(f"no machine manages the Swarm of {name} yet" if not machine else f"{machine} is not there")
    return f"ssh://{machine}", place / _CONFIG


def run(cluster: Cluster, machine: str, *command: str) -> None:
    """Run a command on a machine.

    Raises:
        CommandError: it failed, or ssh did.
    """
    given = ["ssh", "-F", str(config(cluster)), "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=30", machine]
    done = subprocess.run(
        [*given, shlex.join(command)], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        what = f"{machine}: {shlex.join(command)}"
        raise CommandError(what, done.returncode, [*done.stdout.splitlines(), *done.stderr.splitlines()])


def _read(place: Path) -> Reach:
    try:
        data = json.loads((place / _KNOWN).read_text())
    except FileNotFoundError:
        return Reach()
    return Reach(**{**data, "hosts": {name: Host(**host) for name, host in data["hosts"].items()}})


def _ssh_config(place: Path, where: str, reach: Reach) -> str:
    """What stands first wins, so the user's own settings (a jump host, say) add to these."""
    entries = [
        f"Host {machine}\n  HostName {host.address}\n  HostKeyAlias {host.instance_id}\n{_proxy(host, where)}"
        for machine, host in reach.hosts.items()
    ]
    names = " ".join(reach.hosts) or "none"
    key = f"  IdentityFile {shlex.quote(reach.key)}\n" if reach.key else ""
    common = (
        f"Host {names}\n  User {reach.user}\n{key}  UserKnownHostsFile {shlex.quote(str(place / _HOSTS))}\n"
        "  GlobalKnownHostsFile /dev/null\n  StrictHostKeyChecking yes\n  HostKeyAlgorithms ssh-ed25519\n"
    )
    return "".join([*entries, common, "Match all\nInclude ~/.ssh/config\n"])


def _proxy(host: Host, where: str) -> str:
    """https://docs.aws.amazon.com/systems-manager/latest/userguide/session-manager-getting-started-enable-ssh-connections.html"""
    if host.address != host.instance_id:
        return ""
    target = f"--target {host.instance_id} --region {where}"
    session = "--document-name AWS-StartSSHSession --parameters portNumber=%p"
    return f"  ProxyCommand aws ssm start-session {target} {session}\n"
