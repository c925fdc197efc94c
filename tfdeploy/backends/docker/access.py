"""How a user gets at one task of a cluster on a Swarm: the contract is `backends.access.Access`."""

import base64
import io
import os
import time
import zipfile
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from ...agent.states import Job
from ...errors import BackendError, Unreachable
from ..access import Way, address_of, announce, forgotten, task_of, to_restart, until_back
from ..base import KEEPER, Cluster
from . import belongings, clearing, names, terminal
from .engine import Engine
from .exec_keeper import keeper_of, present_job
from .mirror import Mirror
from .services import AGENT, FOLDER, PYTHON, stop_seconds
from .streams import Relayed, Stream
from .swarm import Swarm, one_of

_MARGIN = 60.0
_FORGET_SECONDS = 120.0
_TRIES, _PAUSE = 5, 1.0


class DockerAccess:
    """Services of a Swarm."""

    def means(self, cluster: Cluster, hostname: str, anew: bool) -> str:
        """What it does to the task and its data."""
        job = _job(cluster)
        to_restart(job, cluster, hostname)
        train_dir = job.run["train_dir"] if job else ""
        told = belongings.sentences(cluster, _services(cluster, hostname), hostname, train_dir, anew)
        return " ".join([*told, *forgotten(job, hostname)])

    def restart(self, cluster: Cluster, hostname: str) -> None:
        """Have the Swarm give it a new container."""
        self._again(cluster, hostname, "restarted", [])

    def replace(self, cluster: Cluster, hostname: str) -> None:
        """The same, without the volumes that no other task mounts."""
        services = _services(cluster, hostname)
        lost = belongings.own(cluster, services, hostname)
        if lost:
            _refuse_old(Engine(cluster["home"]), services[hostname], "relay", hostname)
        self._again(cluster, hostname, "replaced", lost)

    def _again(self, cluster: Cluster, hostname: str, word: str, lost: Sequence[str]) -> None:
        job, swarm = _job(cluster), _swarm(cluster)
        before = to_restart(job, cluster, hostname)
        _services(cluster, hostname)
        seconds = stop_seconds(float(job.run["grace"]) if job else 0.0) + _MARGIN
        announce(keeper_of(cluster), hostname, word)
        if lost:
            try:
                swarm.halt(hostname, seconds)
                clearing.forget_volumes(swarm, hostname, lost, _FORGET_SECONDS)
            finally:
                _bring_back(swarm, hostname)
        else:
            swarm.restart(hostname)
        try:
            until_back(partial(present_job, cluster), before, seconds)
        except BackendError as error:
            seen = swarm.tasks().get(hostname)
            raise BackendError(f"{error}{f' ({seen.word}: {seen.reason})' if seen and seen.reason else ''}") from None

    def execute(self, cluster: Cluster, hostname: str, command: Sequence[str]) -> int:
        """Run it in the container, with the working directory and the environment of the task's program."""
        task_of(_job(cluster), cluster, hostname)
        found = _services(cluster, hostname)[hostname]
        seen = one_of(_swarm(cluster).tasks(), cluster, hostname)
        if not seen.alive or not seen.container:
            why = f" ({seen.reason})" if seen.reason else ""
            raise BackendError(f"{hostname} has no container now: it is {seen.word}{why}.")
        engine = self._engine(cluster, found["Spec"]["Labels"].get(names.MACHINE, ""), hostname, seen.container)
        is_terminal = terminal.is_terminal()
        env = {"TERM": os.environ.get("TERM", "xterm")} if is_terminal else {}
        if _has(Engine(cluster["home"]), found, "enter"):
            command = [*PYTHON, "enter", FOLDER, *command]
            env |= terminal.size() if is_terminal else {}
        stream = Stream(engine, seen.container, command, env, is_terminal)
        try:
            return terminal.attach(stream)
        finally:
            stream.close()

    def _engine(self, cluster: Cluster, machine: str, hostname: str, container: str) -> Engine:
        """The engine of one machine; the one that manages the Swarm for none.

        Raises:
            BackendError: this computer does not know how it is reached.
        """
        engine = Engine(cluster["home"])
        if machine in ("", engine.call(lambda api: api.info())["Name"]):
            return engine
        raise BackendError(
            f"{hostname} stands on {machine}, and only the engine at {cluster['home']} is known here. "
            f"On {machine}, `docker exec -it {container} sh` leads to it."
        )

    def ssh(self, cluster: Cluster, machine: str) -> list[str]:
        """The machines are the user's own."""
        raise BackendError(
            f"{machine} is yours, and tfdeploy does not know how ssh leads there. "
            "`tfdeploy exec HOSTNAME -- sh` leads into a task."
        )

    def way(self, cluster: Cluster, hostname: str) -> Way:
        """Through the keeper's container, which is in the tasks' network."""
        host, port = address_of(_job(cluster), cluster, hostname)
        engine, keeper = Engine(cluster["home"]), keeper_of(cluster)
        services = _swarm(cluster).services()
        if KEEPER not in services:
            raise Unreachable(
                f"the keeper of {cluster['name']} is gone, and only it leads there. `pulumi up --refresh` heals."
            )
        _refuse_old(engine, services[KEEPER], "relay", KEEPER)
        command = [*PYTHON, "relay", host, str(port)]
        return Way(host, port, lambda: Relayed(engine, keeper.container(), command))


def _services(cluster: Cluster, hostname: str) -> Mapping[str, Mapping[str, Any]]:
    """The cluster's services, of which that task has one.

    Raises:
        NotFound: it has none.
    """
    found = _swarm(cluster).services()
    one_of(found, cluster, hostname)
    return found


def _bring_back(swarm: Swarm, hostname: str) -> None:
    """Have the service that was halted start its task again.

    Raises:
        BackendError: it does not, though it was asked more than once; with what starts it.
    """
    for left in reversed(range(_TRIES)):
        try:
            swarm.restart(hostname)
            return
        except BackendError as error:
            if not left:
                remedy = f"`tfdeploy restart {hostname}` starts it"
                raise BackendError(f"{hostname} is stopped, and was not started again: {error}. {remedy}.") from error
        time.sleep(_PAUSE)


def _refuse_old(engine: Engine, service: Mapping[str, Any], command: str, hostname: str) -> None:
    if not _has(engine, service, command):
        raise BackendError(
            f"the agent of {hostname} is older than this command. `pulumi up` brings the one that it needs."
        )


def _has(engine: Engine, service: Mapping[str, Any], command: str) -> bool:
    """Whether the agent of a service knows a command."""
    configs = service["Spec"]["TaskTemplate"]["ContainerSpec"].get("Configs") or []
    identity = next((one["ConfigID"] for one in configs if one["File"]["Name"] == AGENT), None)
    if identity is None:
        return False
    data = engine.call(lambda api: api.inspect_config(identity))["Spec"]["Data"]
    return f"agent/{command}.py" in zipfile.ZipFile(io.BytesIO(base64.b64decode(data))).namelist()


def _job(cluster: Cluster) -> Job | None:
    """The present job, from the copy of the record where the keeper does not answer."""
    return present_job(cluster) or Mirror(cluster).record.current()


def _swarm(cluster: Cluster) -> Swarm:
    return Swarm(Engine(cluster["home"]), cluster)


ACCESS = DockerAccess()
