"""Machines inside this one: containers with an engine each, which make one Swarm on a network of their own.

They know nothing of each other but their addresses, can be killed, and start again with what they had on disk.
"""

import subprocess
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.engine.cli import LABEL, DockerFailed, docker, environment
from tests.engine.daemon import answers
from tests.engine.images import machine_image
from tests.waiting import until

HOSTNAMES = ("m0", "m1", "m2")
PORT = 2375
SUBNETS = [f"10.231.{number}" for number in range(32)]
SHARED = "/shared"
"""A folder that all machines share, as they would a file system of the network."""

# In the order of their numbers in the kernel, as far as every engine knows them.
CAPABILITIES = """
CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE
NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN
SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE
MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ
"""

BOOT = """\
mount -o remount,rw /sys
mount -o remount,rw /proc/sys
mkdir -p -m 0755 /run/sshd
ssh-keygen -A >/dev/null && /usr/sbin/sshd
while :; do
    dockerd --host=unix:///run/docker.sock --host="tcp://$ADDRESS:$PORT" --cgroup-parent="/$CGROUP" "$@"
    sleep 0.1
done
"""
"""An engine that ends starts again, as a service of systemd's."""


@dataclass(frozen=True)
class Machine:
    """One machine, which may be down."""

    hostname: str
    container: str
    address: str

    @property
    def engine(self) -> str:
        """The address of its engine."""
        return f"tcp://{self.address}:{PORT}"

    def wait(self) -> None:
        """Wait until its engine answers."""
        until(lambda: answers(self.engine), f"the engine of {self.hostname} answers")


@dataclass(frozen=True)
class Nested:
    """Machines that make one Swarm; the first of them manages it."""

    outer: str
    machines: Mapping[str, Machine]

    @property
    def manager(self) -> str:
        """The address of the manager's engine."""
        return next(iter(self.machines.values())).engine

    @property
    def gateway(self) -> str:
        """The address at which the machines reach this one."""
        return next(iter(self.machines.values())).address.rpartition(".")[0] + ".1"

    def load(self, image: str, *hostnames: str) -> None:
        """Copy an image of the outer engine to these machines, or to all."""
        for hostname in hostnames or self.machines:
            inner = ["docker", "-H", self.machines[hostname].engine, "load", "--quiet"]
            with subprocess.Popen(
                ["docker", "-H", self.outer, "save", image], stdout=subprocess.PIPE, env=environment()
            ) as save:
                subprocess.run(inner, stdin=save.stdout, stdout=subprocess.DEVNULL, env=environment(), check=True)
            if save.returncode != 0:
                raise DockerFailed(f"docker save {image}: exit code {save.returncode}")

    def trust(self, address: str, certificate: Path) -> None:
        """Let the machines' engines use a registry that has this certificate."""
        folder = f"/etc/docker/certs.d/{address}"
        script = f"mkdir -p {folder} && cat >{folder}/ca.crt"
        for machine in self.machines.values():
            command = ("exec", "--interactive", machine.container, "sh", "-c", script)
            docker(self.outer, *command, stdin=certificate.read_text())

    def kill(self, hostname: str) -> None:
        """A machine's sudden death."""
        docker(self.outer, "kill", self.machines[hostname].container)

    def start(self, hostname: str) -> None:
        """Start a machine that was killed, and wait until the Swarm has it back."""
        docker(self.outer, "start", self.machines[hostname].container)
        self.machines[hostname].wait()
        self.wait(hostname)

    def kill_engine(self, hostname: str) -> None:
        """The sudden death of an engine alone; it starts again."""
        docker(self.outer, "exec", self.machines[hostname].container, "pkill", "--signal=KILL", "--exact", "dockerd")

    @contextmanager
    def cut(self, hostname: str) -> Iterator[None]:
        """A machine and the others do not reach each other, for as long as the context lasts; this computer reaches all of them."""
        pid = docker(self.outer, "inspect", "--format", "{{.State.Pid}}", self.machines[hostname].container)
        others = [machine.address for name, machine in self.machines.items() if name != hostname]

        def apply(action: str) -> None:
            for chain, side in (("INPUT", "--source"), ("OUTPUT", "--destination")):
                rule = ("iptables", action, chain, side, ",".join(others), "--jump", "DROP")
                subprocess.run(["nsenter", "--target", pid, "--net", *rule], check=True, capture_output=True)

        apply("--insert")
        try:
            yield
        finally:
            apply("--delete")

    def readmit(self, hostname: str) -> None:
        """Start a machine that was killed, and let it join again: its node was removed from the Swarm."""
        docker(self.outer, "start", self.machines[hostname].container)
        self.machines[hostname].wait()
        docker(self.machines[hostname].engine, "swarm", "leave", "--force")
        self.join(hostname)

    def join(self, hostname: str) -> None:
        """Let a machine join the Swarm."""
        machine, token = self.machines[hostname], docker(self.manager, "swarm", "join-token", "--quiet", "worker")
        manager = next(iter(self.machines.values())).address
        docker(machine.engine, "swarm", "join", "--advertise-addr", machine.address, "--token", token, manager)
        self.wait(hostname)

    def wait(self, hostname: str, state: str = "ready") -> None:
        """Wait until the manager says this of a node: `ready`, `down`."""
        until(lambda: self.state(hostname) == state, f"{hostname} is {state}")

    def state(self, hostname: str) -> str:
        """What the manager says of a node; nothing where there is none of the name, or no manager."""
        try:
            return docker(self.manager, "node", "inspect", "--format", "{{.Status.State}}", hostname)
        except DockerFailed:
            return ""


@contextmanager
def nested(
    outer: str,
    hostnames: Sequence[str] = HOSTNAMES,
    labels: Mapping[str, Mapping[str, str]] | None = None,
    authorized_key: str = "",
) -> Iterator[Nested]:
    """Machines of these names, with labels for their engines by name, and ssh for root with one key."""
    image = machine_image(outer)
    name = f"tfdeploy-test-{uuid.uuid4().hex[:8]}"
    machines: dict[str, Machine] = {}
    subnet = _network(outer, name)
    try:
        for number, hostname in enumerate(hostnames):
            machine = Machine(hostname, f"{name}-{hostname}", f"{subnet}.{number + 2}")
            machines[hostname] = machine
            _boot(outer, image, name, machine, (labels or {}).get(hostname, {}))
        found = Nested(outer, machines)
        for machine in machines.values():
            machine.wait()
            if authorized_key:
                _admit(outer, machine, authorized_key)
        _join(found)
        yield found
    finally:
        _remove(outer, name, machines)


def _network(outer: str, name: str) -> str:
    """A bridge network with the first subnet that is free; its first three numbers."""
    for subnet in SUBNETS:
        with suppress(DockerFailed):
            docker(outer, "network", "create", "--label", LABEL, "--subnet", f"{subnet}.0/24", name)
            return subnet
    raise DockerFailed(f"no subnet of {SUBNETS[0]}.0/24 … {SUBNETS[-1]}.0/24 is free")


def _boot(outer: str, image: str, network: str, machine: Machine, labels: Mapping[str, str]) -> None:
    settings = {"ADDRESS": machine.address, "PORT": PORT, "CGROUP": machine.container}
    docker(
        outer,
        "run",
        "--detach",
        *(f"--label={LABEL}", f"--name={machine.container}", f"--hostname={machine.hostname}"),
        *(f"--network={network}", f"--ip={machine.address}"),
        *(f"--env={key}={value}" for key, value in settings.items()),
        *rights(),
        # As a machine's: what is in memory goes with it, what is on disk stays.
        *("--tmpfs=/run:exec", f"--volume={machine.container}:/var/lib/docker", f"--volume={network}:{SHARED}"),
        image,
        *("sh", "-c", BOOT, "boot"),
        *(f"--label={key}={value}" for key, value in labels.items()),
    )


def rights() -> list[str]:
    """What lets a container have an engine of its own, as options of `docker run`; no more than this process may."""
    status = Path("/proc/self/status").read_text()
    bounding = int(status.partition("CapBnd:")[2].split()[0], 16)
    names = [name for number, name in enumerate(CAPABILITIES.split()) if bounding >> number & 1]
    open_to = ["--security-opt=seccomp=unconfined", "--security-opt=apparmor=unconfined"]
    return [*(f"--cap-add={name}" for name in names), *open_to, "--volume=/sys/fs/cgroup:/sys/fs/cgroup:rw"]


def remove_cgroups(name: str) -> None:
    """Remove the cgroups of an engine that has ended."""
    for group in sorted(Path("/sys/fs/cgroup").glob(f"*/{name}/**/"), reverse=True):
        with suppress(OSError):
            group.rmdir()


def _admit(outer: str, machine: Machine, key: str) -> None:
    script = "mkdir -p -m 0700 /root/.ssh && cat >/root/.ssh/authorized_keys"
    docker(outer, "exec", "--interactive", machine.container, "sh", "-c", script, stdin=f"{key}\n")


def _join(found: Nested) -> None:
    first, *others = found.machines.values()
    docker(first.engine, "swarm", "init", "--advertise-addr", first.address)
    for machine in others:
        found.join(machine.hostname)
    found.wait(first.hostname)


def _remove(outer: str, network: str, machines: Mapping[str, Machine]) -> None:
    for machine in machines.values():
        with suppress(DockerFailed):
            docker(outer, "rm", "--force", "--volumes", machine.container)
        with suppress(DockerFailed):
            docker(outer, "volume", "rm", "--force", machine.container)
        remove_cgroups(machine.container)
    with suppress(DockerFailed):
        docker(outer, "volume", "rm", "--force", network)
    docker(outer, "network", "rm", network)
