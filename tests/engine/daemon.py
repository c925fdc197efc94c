"""An engine in swarm mode for as long as it is needed: the one that answers, else one that the tests start themselves."""

import fcntl
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from tests.artefacts import artefacts
from tests.debian import NotInstalled, install
from tests.engine import killed
from tests.engine.cli import DockerFailed, cache, docker
from tests.engine.machine import kept
from tests.waiting import until

SOCKET = "unix:///var/run/docker.sock"
LOOPBACK = "127.0.0.1"
PACKAGES = ("docker.io", "iptables", "iproute2", "debootstrap", "docker-registry")
PROGRAMS = ("docker", "debootstrap", "docker-registry")
LAST_LINES = 20
# Debian asks this program whether an installed service may be started.
POLICY = Path("/usr/sbin/policy-rc.d")


class NoEngine(Exception):
    """There is no Docker engine, and none can be started; the message says why, in a line."""


@contextmanager
def engine() -> Iterator[str]:
    """The address of an engine in swarm mode; what had to be started or changed for it is put back at the end."""
    with ExitStack() as stack:
        address = running()
        if any(not shutil.which(name) for name in (*PROGRAMS, *([] if address else ["dockerd"]))):
            _install()
            address = running()
        if address is None:
            address = stack.enter_context(daemon())
        stack.enter_context(swarm(address))
        yield address


def running() -> str | None:
    """The address of an engine that answers: what DOCKER_HOST names, else the usual socket."""
    address = os.environ.get("DOCKER_HOST") or SOCKET
    return address if shutil.which("docker") and answers(address) else None


def answers(address: str) -> bool:
    """Whether an engine listens there."""
    try:
        return bool(docker(address, "version", "--format", "{{.Server.Version}}"))
    except DockerFailed:
        return False


@contextmanager
def swarm(address: str) -> Iterator[None]:
    """Swarm mode; left again where it was not on before."""
    state = docker(address, "info", "--format", "{{.Swarm.LocalNodeState}} {{.Swarm.ControlAvailable}}")
    if state == "active true":
        yield
        return
    if state != "inactive false":
        raise NoEngine(f"the engine at {address} is in a Swarm that it does not manage, or cannot ({state})")
    # On a busy machine its only node shall not count as lost, and its tasks start again.
    patient = "--dispatcher-heartbeat=60s"
    docker(address, "swarm", "init", "--advertise-addr", LOOPBACK, "--listen-addr", f"{LOOPBACK}:2377", patient)
    try:
        yield
    finally:
        docker(address, "swarm", "leave", "--force")


@contextmanager
def daemon() -> Iterator[str]:
    """A dockerd of our own: its images stay in the user's cache, everything else goes with it."""
    if _in_use(cache() / "docker"):
        raise NoEngine(f"another Docker engine uses {cache() / 'docker'}: name its address in DOCKER_HOST, or end it")
    if os.geteuid() != 0:
        raise NoEngine(
            f"no Docker engine answers at {os.environ.get('DOCKER_HOST') or SOCKET}; only root can start one"
        )
    with (
        (cache() / "lock").open("w") as lock,
        tempfile.TemporaryDirectory(prefix=killed.PREFIX, ignore_cleanup_errors=True) as folder,
    ):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise NoEngine("another run of the tests has started its engine: wait for its end") from None
        home, data = Path(folder), cache() / "docker"
        killed.remove_remains(data)
        with killed.noted(home, data), kept(home, data), _dockerd(home, data) as address:
            clear(address)  # what a killed run has left
            yield address


def _in_use(data: Path) -> bool:
    """Whether a dockerd that runs has this data folder: it holds a lock there, and a second one would harm it."""
    held = data / "volumes/metadata.db"
    if not held.exists():
        return False
    with held.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


@contextmanager
def _dockerd(home: Path, data: Path) -> Iterator[str]:
    address = f"unix://{home}/docker.sock"
    settings = {
        "hosts": [address],
        "data-root": str(data),
        "exec-root": f"{home}/run",
        "pidfile": f"{home}/docker.pid",
        "group": "",
    }
    (home / "daemon.json").write_text(json.dumps(settings))
    with (home / "log").open("wb") as log:
        # It ends with this process, however that ends.
        command = ["setpriv", "--pdeathsig=TERM", "dockerd", f"--config-file={home}/daemon.json"]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)

    def ready() -> bool:
        if process.poll() is not None:
            last = "\n".join((home / "log").read_text(errors="replace").splitlines()[-LAST_LINES:])
            raise NoEngine(f"dockerd has ended with exit code {process.returncode}:\n{last}")
        return answers(address)

    try:
        until(ready, "dockerd answers")
        yield address
    finally:
        if process.poll() is None:
            with suppress(DockerFailed):
                clear(address)
            process.terminate()
        process.wait(timeout=60)
        shutil.copyfile(home / "log", artefacts() / "engine.log")


def clear(address: str) -> None:
    """Remove all but images from an engine: only for one that the tests have to themselves."""
    if docker(address, "info", "--format", "{{.Swarm.LocalNodeState}}") != "inactive":
        docker(address, "swarm", "leave", "--force")
    for kind, options in (("container", ["--all"]), ("volume", []), ("network", ["--filter", "type=custom"])):
        found = docker(address, kind, "ls", "--quiet", *options).split()
        gwbridge = [name for name in found if kind == "network" and _name(address, name) == "docker_gwbridge"]
        if left := [name for name in found if name not in gwbridge]:
            docker(address, kind, "rm", *([] if kind == "network" else ["--force"]), *left)
    docker(address, "image", "prune", "--force")


def _name(address: str, network: str) -> str:
    return docker(address, "network", "inspect", "--format", "{{.Name}}", network)


def _install() -> None:
    """Install what is missing; no service is started."""
    with _no_services():
        try:
            install(f"one of {', '.join((*PROGRAMS, 'dockerd'))} is missing", PACKAGES)
        except NotInstalled as reason:
            raise NoEngine(str(reason)) from None


@contextmanager
def _no_services() -> Iterator[None]:
    if POLICY.exists():
        yield
        return
    POLICY.write_text("#!/bin/sh\nexit 101\n")
    POLICY.chmod(0o755)
    try:
        yield
    finally:
        POLICY.unlink()
