"""How this computer reaches the machines of a cluster: over ssh, with host keys that EC2 reports.

The files are in one folder of the user's state folder; `ssh -F FOLDER/ssh_config MACHINE` works with them too. A preview stores
nothing: what it finds out is in a temporary folder of its process (`use`).
"""

import json
import re
import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

from ....agent.system.files import write_whole
from ....errors import CommandError, SpecError, Unreachable
from ....paths import cluster_state, make_private, read_json, state_folder
from ....spec.cluster import ClusterSpec
from ...base import ClusterRef
from ...docker.engine.connection import SshTarget
from ...docker.engine.engine import Engine
from ..aws import settings

SCHEME = "ec2"

_CONFIG, _KNOWN_HOSTS, _MACHINES, _KEY = "ssh_config", "known_hosts", "machines.json", "id_ed25519"

_KEY_NAMES = ("id_ed25519.pub", "id_rsa.pub")
"""EC2 accepts these two kinds: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-key-pairs.html."""

_PUBLIC_KEY = re.compile(r"(ssh-ed25519|ssh-rsa) [A-Za-z0-9+/=]+( .*)?")


@dataclass(frozen=True)
class Host:
    """One machine, as ssh needs it."""

    instance_id: str
    address: str
    """Its address; its id where SSM connects to it."""
    host_key: str
    """As in a line of `known_hosts`, without the name: `ssh-ed25519 AAAA…`."""


@dataclass(frozen=True)
class SshHosts:
    """The machines of one cluster, as ssh needs them."""

    manager: str = ""
    user: str = ""
    hosts: Mapping[str, Host] = field(default_factory=dict)

    @property
    def host_keys(self) -> Mapping[str, str]:
        """Instance id to host key."""
        return {host.instance_id: host.host_key for host in self.hosts.values()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "SshHosts":
        """The inverse of `dataclasses.asdict`, also after JSON."""
        return cls(**{**data, "hosts": {name: Host(**host) for name, host in data["hosts"].items()}})


def home(region: str, folder_name: str) -> str:
    """The address of a cluster (`ClusterRef`'s `home`)."""
    return f"{SCHEME}://{region}/{folder_name}"


def region(cluster: ClusterRef) -> str:
    """The region of a cluster."""
    return str(urlsplit(cluster["home"]).hostname)


def folder(cluster: ClusterRef) -> Path:
    """The folder of a cluster on this computer."""
    return state_folder() / cluster_state(cluster)


_in_use: dict[str, TemporaryDirectory[str]] = {}
"""Home of a cluster to the folder with its machines, where this process knows more of them than is stored."""


def config_file(cluster: ClusterRef) -> Path:
    """The configuration for ssh."""
    return _present_folder(cluster["home"]) / _CONFIG


def read(cluster: ClusterRef) -> SshHosts:
    """The machines as this process knows them; empty where none are known.

    Raises:
        SpecError: the file is damaged, or of another version.
    """
    return _read(_present_folder(cluster["home"]))


def use(cluster: ClusterRef, hosts: SshHosts, private_key: str = "") -> None:
    """Reach the machines this way, in this process only; with this private key of the cluster, or with the stored one."""
    if hosts != read(cluster) or private_key:
        temporary = TemporaryDirectory(prefix="tfdeploy-ssh-")
        place = Path(temporary.name)
        if private_key:
            write_whole(place / _KEY, private_key, 0o600)
        _write(place, region(cluster), hosts, (place if private_key else folder(cluster)) / _KEY)
        _in_use[cluster["home"]] = temporary


def store(cluster: ClusterRef) -> None:
    """Store the machines that this process uses."""
    if cluster["home"] in _in_use:
        write(cluster, read(cluster))


def write(cluster: ClusterRef, hosts: SshHosts) -> None:
    """Store the machines, with ssh's configuration and known hosts."""
    make_private(folder(cluster))
    _write(folder(cluster), region(cluster), hosts, folder(cluster) / _KEY)
    _in_use.pop(cluster["home"], None)


def has_key(cluster: ClusterRef) -> bool:
    """True when this computer has the cluster's private key."""
    return (folder(cluster) / _KEY).exists()


def store_key(cluster: ClusterRef, private_key: str) -> None:
    """Store the cluster's private key."""
    make_private(folder(cluster))
    write_whole(folder(cluster) / _KEY, private_key, 0o600)


def _write(place: Path, region_name: str, hosts: SshHosts, key: Path) -> None:
    config = _ssh_config(place, region_name, hosts, key)
    write_whole(place / _MACHINES, json.dumps(asdict(hosts), indent=1))
    lines = "".join(f"{host.instance_id} {host.host_key}\n" for host in hosts.hosts.values())
    write_whole(place / _KNOWN_HOSTS, lines)
    write_whole(place / _CONFIG, config)


def _present_folder(cluster_home: str) -> Path:
    """The folder with the machines as this process knows them."""
    temporary = _in_use.get(cluster_home)
    if temporary:
        return Path(temporary.name)
    return state_folder() / SCHEME / cluster_home.rpartition("/")[2]


def engine(cluster: ClusterRef, machine: str = "") -> Engine:
    """The engine of a machine; by default that of the Swarm's manager."""
    return Engine(f"{cluster['home']}#{machine}" if machine else cluster["home"], route)


def route(engine_address: str) -> SshTarget:
    """The machine of an engine's address (a cluster's home, and its name after `#`) as ssh's URL, and the configuration for ssh.

    Raises:
        Unreachable: this computer does not know the machine.
    """
    cluster_home, _, machine = engine_address.partition("#")
    place = _present_folder(cluster_home)
    hosts = _read(place)
    machine = machine or hosts.manager
    if machine not in hosts.hosts:
        name = cluster_home.rpartition("/")[2]
        raise Unreachable(f"{machine} does not exist" if machine else f"the Swarm of {name} has no manager yet")
    return SshTarget(f"ssh://{machine}", place / _CONFIG)


def run(cluster: ClusterRef, machine: str, *command: str) -> None:
    """Run a command on a machine.

    Raises:
        CommandError: the command failed, or ssh.
    """
    options = ["-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=30"]
    done = subprocess.run(
        ["ssh", "-F", str(config_file(cluster)), *options, machine, shlex.join(command)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        what = f"{machine}: {shlex.join(command)}"
        raise CommandError(what, done.returncode, [*done.stdout.splitlines(), *done.stderr.splitlines()])


def _read(place: Path) -> SshHosts:
    try:
        return read_json(place / _MACHINES, SshHosts.from_dict)
    except FileNotFoundError:
        return SshHosts()


def _ssh_config(place: Path, region_name: str, hosts: SshHosts, key: Path) -> str:
    """ssh takes the first value of each setting, so the user's own settings (such as a jump host) add to these."""
    entries = [
        f"Host {machine}\n  HostName {host.address}\n  HostKeyAlias {host.instance_id}\n{_proxy(host, region_name)}"
        for machine, host in hosts.hosts.items()
    ]
    names = " ".join(hosts.hosts) or "none"
    common = (
        f"Host {names}\n  User {hosts.user}\n  IdentityFile {_quoted(str(key))}\n"
        f"  UserKnownHostsFile {_quoted(str(place / _KNOWN_HOSTS))}\n"
        "  GlobalKnownHostsFile /dev/null\n  StrictHostKeyChecking yes\n  HostKeyAlgorithms ssh-ed25519\n"
        "  ForwardAgent no\n"
    )
    return "".join([*entries, common, "Match all\nInclude ~/.ssh/config\n"])


def _quoted(path: str) -> str:
    """A path in ssh's configuration: in double quotes, without ssh's tokens and variables. https://man.openbsd.org/ssh_config

    Raises:
        SpecError: ssh cannot be given this path.
    """
    if set(path) & {'"', "\\", "\n"} or "${" in path:
        wrong = "ssh's configuration cannot contain this path"
        raise SpecError(path, wrong, 'Use a path without double quotes, backslashes, line ends and "${".')
    return f'"{path.replace("%", "%%")}"'


def _proxy(host: Host, region_name: str) -> str:
    """https://docs.aws.amazon.com/systems-manager/latest/userguide/session-manager-getting-started-enable-ssh-connections.html"""
    if host.address != host.instance_id:
        return ""
    profile = settings.current().profile
    quoted = shlex.quote(profile).replace("%", "%%")  # for the shell, and for ssh's tokens
    target = f"--target {host.instance_id} --region {region_name}{f' --profile {quoted}' if profile else ''}"
    session = "--document-name AWS-StartSSHSession --parameters portNumber=%p"
    return f"  ProxyCommand aws ssm start-session {target} {session}\n"


def public_key(spec: ClusterSpec) -> str:
    """The user's public key.

    Raises:
        SpecError: there is none, or EC2 does not accept it.
    """
    where, asked = f"{spec.name}: ec2.ssh_public_key", spec.ec2.ssh_public_key
    own = [Path.home() / ".ssh" / name for name in _KEY_NAMES]
    files = [Path(asked).expanduser().absolute()] if asked else own
    path = next((file for file in files if file.is_file()), None)
    if path is None and asked:
        raise SpecError(where, f"{files[0]} is not a file", "Set it to the file of your public key.")
    if path is None:
        wrong = f"is not set, and {own[0].parent} has neither {' nor '.join(_KEY_NAMES)}"
        remedy = "Create a key with `ssh-keygen -t ed25519`, or set it to the file of your public key."
        raise SpecError(where, wrong, remedy)
    text = path.read_text(errors="replace").strip()
    if not _PUBLIC_KEY.fullmatch(text):
        content = "is a private key" if "PRIVATE KEY" in text else "is not a public key that EC2 accepts"
        remedy = "Set it to the file of an ed25519 or RSA public key; its name ends with .pub."
        raise SpecError(where, f"{path} {content}", remedy)
    return text
