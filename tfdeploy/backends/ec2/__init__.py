"""Tasks on machines of Amazon EC2 that are made for the cluster: they form a Swarm, and there it goes on as on `docker`."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import pulumi

from ...agent.container import NOTICE
from ...containers import HOST, OVERLAY
from ...ec2 import boot
from ...ec2.boot import GPU, SHARED, disk
from ...errors import BackendError, SpecError, Unreachable
from ...placement import Machine
from ...plan import Plan
from ...spec import ClusterSpec, JobSpec
from ..base import GONE, KEEPER, Cluster, Keep, RunProps, Sight
from ..docker import DockerBackend, mounts, outfit
from ..docker.engine import ROUTES
from ..docker.exec_keeper import keeper_of
from ..docker.mirror import Mirror
from ..docker.services import MANAGER
from . import archive, clearing, costs, failing, fleet, keys, reach, refusals, status

for _package in ("pulumi_aws", "pulumi_docker"):  # imported where they are used: they take long
    if find_spec(_package) is None:
        raise ModuleNotFoundError(f"No module named {_package!r}", name=_package)

ROUTES[reach.SCHEME] = reach.route

_HOST_PORT = 20000
"""Where the keeper listens on the host network; the Swarm has no other keeper."""


class Ec2Backend(DockerBackend):
    """Services on a Swarm of machines that are the cluster's own. The contract is `backends.base.Backend`."""

    heal = "pulumi up"
    _others = GONE

    def cluster(self, project: str, stack: str, spec: ClusterSpec) -> Cluster:
        """The handle of a cluster in its region."""
        home = reach.home(fleet.region(spec), project, stack, spec.name)
        return {"backend": reach.SCHEME, "project": project, "stack": stack, "name": spec.name, "home": home}

    def machines(self, cluster: Cluster, spec: ClusterSpec) -> Sequence[Machine]:
        """The machines that the cluster shall have; those that stand are reached from here from now on."""
        refusals.refuse_early(spec)
        known = fleet.facts(cluster, spec)
        refusals.refuse_facts(spec, known)
        clearing.meet(cluster, spec, known.instances.values())
        archive.bring(cluster)
        return fleet.machines(cluster, spec, known)

    def standing_on(self, cluster: Cluster) -> Mapping[str, str]:
        """Hostname to machine, of the tasks that stand."""
        try:
            return super().standing_on(cluster)
        except (Unreachable, SpecError):
            return {}

    def command(self, cluster: Cluster, spec: ClusterSpec) -> tuple[str, ...]:
        """The command that is asked for: no image can be asked before there is a machine."""
        if not spec.command:
            wrong = "is missing, and on ec2 no image can be asked for its entry point"
            raise SpecError(f"{spec.name}: command", wrong, 'Give it, such as ["python", "train.py"].')
        return spec.command

    def check(self, cluster: Cluster, spec: ClusterSpec, plan: Plan, code_files: Sequence[str]) -> Sequence[str]:
        """Refuse what cannot work; the warnings. What `pulumi up` makes is kept from now on, for what it costs."""
        refusals.refuse_failing(spec, plan, failing.read(cluster))
        warnings = [*refusals.refuse(spec, plan, code_files), *archive.warnings(cluster, spec)]
        if not pulumi.runtime.is_dry_run():
            costs.keep_plan(cluster, spec, plan)
        return warnings

    def folder(self, cluster: Cluster, spec: ClusterSpec, key: str, program: str) -> str:
        """A path on the machines, or a URL; the shared file system's, else a volume, where no `train_dir` is given."""
        given: str = getattr(spec, key)
        if given or key != "train_dir":
            refusals.refuse_folder(spec, key, given)
            return given
        return f"{SHARED}/{fleet.shared_folder(cluster, spec)}" if spec.fleet.efs else outfit.TRAIN

    def containers(self, cluster: Cluster, spec: ClusterSpec, plan: Plan) -> Mapping[str, dict[str, Any]]:
        """What the containers of tasks and keeper have, beyond what every task has."""
        manager = fleet.manager(plan.machines).name
        address = outfit.OVERLAY_KEEPER if spec.engine.network == OVERLAY else f"{MANAGER}:{_HOST_PORT}"
        kinds = {machine.name: GPU for machine in plan.machines if machine.gpus}
        shared = replace(spec, train_dir=plan.run["train_dir"]) if spec.fleet.efs else spec
        mounted = replace(shared, jobs=tuple(map(_with_disks, spec.jobs)))
        found = outfit.containers(cluster, mounted, plan, outfit.Post(f"hostname=={manager}", address, kinds))
        return {name: one if name == KEEPER else _on_machine(one) for name, one in found.items()}

    def changes(
        self, cluster: Cluster, spec: ClusterSpec, plan: Plan, containers: Mapping[str, dict[str, Any]]
    ) -> Sequence[str]:
        """What the plan makes and costs, and what it changes in machines and services that stand."""
        told = [*status.sentences(cluster, plan), *costs.sentences(spec, plan)]
        with suppress(Unreachable, SpecError):
            told += super().changes(cluster, spec, plan, containers)
        return told

    def unneeded(self, cluster: Cluster, plan: Plan) -> frozenset[str]:
        """Those that are gone, when the record says that this run is over; all, when the one that manages is among them."""
        job = Mirror(cluster).record.current()
        if job is None or job.verdict is None or job.run["id"] != plan.run["id"]:
            return frozenset()
        gone = {machine.name for machine in plan.machines if not fleet.plot_of(machine)["instance_id"]}
        all_go = fleet.manager(plan.machines).name in gone
        return frozenset(machine.name for machine in plan.machines if machine.name in gone or all_go)

    def supply(
        self,
        name: str,
        cluster: Cluster,
        spec: ClusterSpec,
        plan: Plan,
        token: pulumi.Output[str],
        secrets: Mapping[str, pulumi.Input[str]],
        opts: pulumi.ResourceOptions,
    ) -> Mapping[str, pulumi.Output[str]]:
        """Register the machines, their Swarm, and what `docker` needs on it."""
        from ..docker.supplies import Where, supply
        from .machines import supply as make

        standing = [machine for machine in plan.machines if machine.name not in plan.unneeded]
        swarm = make(name, cluster, spec, standing, (keys.public(spec), keys.private(keys.found(spec))), opts)
        manager = fleet.manager(standing).name
        where = Where(swarm.swarm.apply(lambda _: f"ssh://{manager}"), swarm.swarm, ["-F", str(reach.config(cluster))])
        made = supply(name, cluster, spec, token, secrets, opts, where)
        return {**made, "swarm": swarm.swarm, "manager": swarm.manager}

    def dismiss(self, props: RunProps) -> None:
        """Stop the job, and take the whole record home: the machines go soon, or have gone."""
        super().dismiss(props)
        Mirror(props["cluster"]).bring_home(keeper_of(props["cluster"]))

    def clear(self, cluster: Cluster, token: str, keep: Keep) -> str:
        """Remove all that carries the cluster's tags; what is on the machines goes with them."""
        files = clearing.clear(cluster, keep["volumes"])
        outlives = archive.end(cluster, keep["record"])
        said = [Mirror(cluster).end(), outlives, *(f"the shared files are kept: efs={one}" for one in files)]
        return "; ".join(filter(None, said))

    def look(self, cluster: Cluster, token: str, ask: Mapping[str, Any]) -> Sight:
        """As `docker` looks, and which machines could not boot; where none is left, what they put into the bucket."""
        failures = {name: f"{one.reason}\n{one.console}".rstrip() for name, one in failing.read(cluster).items()}
        seen = replace(super().look(cluster, token, ask), failures=failures)
        if seen.keeper_silent_since is None or any(status != GONE for status in seen.machines.values()):
            return seen
        try:
            if not archive.bring(cluster):
                return seen
        except (BackendError, SpecError) as error:
            return replace(seen, problems=[*seen.problems, str(error)])
        return replace(super().look(cluster, token, ask), failures=failures)

    def _seen(self, cluster: Cluster) -> tuple[Mapping[str, str], Mapping[str, str]]:
        """The status and the public address of all machines that are there."""
        return status.seen(cluster)

    def _cost(self, cluster: Cluster) -> Mapping[str, Any]:
        """What the machines cost, and have cost so far."""
        return costs.told(cluster)


def _on_machine(container: dict[str, Any]) -> dict[str, Any]:
    """The container of a task, so that its launcher sees why the machine goes, and no task sees the machine's role.

    On the machine's own network NET_RAW would be enough to mark packets as the caretaker does.
    """
    seen = mounts.bind(boot.SHOWN, str(NOTICE.parent), True)
    drop = {"cap_drop": ["CAP_NET_RAW"]} if container["network"] == HOST else {}
    return {**container, "mounts": [*container["mounts"], seen], **drop}


def _with_disks(job: JobSpec) -> JobSpec:
    """The job, so that its containers mount its machines' further disks."""
    disks = (f"{disk(number)}:{volume.target}" for number, volume in enumerate(job.instance.ebs_volumes))
    return replace(job, container=replace(job.container, volumes=(*job.container.volumes, *disks)))


BACKEND = Ec2Backend()
