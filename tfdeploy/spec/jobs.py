"""The jobs of a cluster, from its arguments: how many tasks each has, and their settings. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..agent.run_state import EVALUATOR, GPU_WORKER, TENSORBOARD, WORKERS
from ..agent.task_command import AGENT, DATA_DISPATCHER, DATA_WORKER
from . import docker, ec2, kubernetes
from .arg_reader import ArgReader
from .docker import JobContainerSpec
from .ec2 import InstanceSpec
from .environment import environment, refuse_too_long
from .kubernetes import PodSpec
from .restart import Restart, restart_policy

JOBS = ("chief", "ps", *WORKERS, EVALUATOR, TENSORBOARD)
"""The jobs of a cluster in the order in which tables list them."""

JOB_GROUPS: Mapping[str, tuple[str, ...]] = {
    "container": docker.JOB_KEYS,
    "ec2": ec2.JOB_KEYS,
    "kubernetes": kubernetes.JOB_KEYS,
}
"""The groups of arguments of one job, and their members."""

MOST_TASKS = 1_000
"""All tasks of a cluster: so many are proven (bench/ and tests/unit/agent)."""

_SERVICE_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")

DATA_SERVICE = {DATA_DISPATCHER: ("python3", AGENT, "data-dispatcher"), DATA_WORKER: ("python3", AGENT, "data-worker")}
"""The jobs of tf.data service, with their commands."""

_RESERVED = (*JOBS, *DATA_SERVICE, "master", "controller", "task")
"""Names of other jobs, of other tasks, and of TensorFlow's own."""

_ON_DEMAND = ("ps",)
"""Jobs that use spot instances only if their own group `ec2` sets it: an interrupted parameter server loses its variables."""

SERVER = ("python", AGENT, "grpc-server")


def job_rank(job: str) -> int:
    """The position of a job in the order of updates; services come first."""
    return JOBS.index(job) if job in JOBS else -1


@dataclass(frozen=True)
class JobSpec:
    """One job: the number of its tasks, and the settings of each."""

    name: str
    count: int
    cpus: float = 0.0
    memory: int = field(default=0, metadata={"unit": "B"})
    gpus: int = 0
    port: int = 0
    env: Mapping[str, str] = field(default_factory=dict)
    restart: Restart = field(default_factory=Restart)
    container: JobContainerSpec = field(default_factory=JobContainerSpec)
    instance: InstanceSpec = field(default_factory=InstanceSpec)
    pod: PodSpec = field(default_factory=PodSpec)
    command: tuple[str, ...] = ()
    """Empty for the cluster's command."""
    required: bool = True
    is_service: bool = False
    is_unlisted: bool = False
    """Whether no other task gets its addresses, so that its count can change while the others run."""

    @property
    def stem(self) -> str:
        """The first part of hostnames and machine names; RFC 1123 allows no underscore in them."""
        return self.name.replace("_", "-")


JOB_KEYS = ("cpus", "memory", "gpus", "port", "env", "restart", "required", *JOB_GROUPS)

SERVICE_KEYS = ("command", "count", *JOB_KEYS)

DATA_SERVICE_KEYS = ("workers",)

_TENSORBOARD_KEYS = ("cpus", "memory", "port", "env", "restart", "container", "kubernetes")


def _counts(args: ArgReader) -> dict[str, int]:
    return {
        "chief": int(args.boolean_or_count("chief")),
        "ps": args.integer("ps", 0, 0, MOST_TASKS),
        "worker": args.integer("workers", 0, 0, MOST_TASKS),
        GPU_WORKER: args.integer("gpu_workers", 0, 0, MOST_TASKS),
        EVALUATOR: int(args.boolean_or_count("evaluator")),
    }


def _data_counts(args: ArgReader) -> dict[str, int]:
    """Job of tf.data service to the number of its tasks."""
    group = args.group("data_service", DATA_SERVICE_KEYS)
    if not args.has("data_service"):
        return {}
    if not group.has("workers"):
        raise group.error("workers", "is missing", 'Set their number, such as data_service={"workers": 4}.')
    return {DATA_DISPATCHER: 1, DATA_WORKER: group.integer("workers", 0, 1, MOST_TASKS)}


def jobs_of(args: ArgReader) -> tuple[JobSpec, ...]:
    """The jobs of a cluster: those of the training, its services, and TensorBoard.

    Raises:
        SpecError: an argument is not valid.
    """
    counts, data_counts = _counts(args), _data_counts(args)
    own = args.mapping("jobs", values=Mapping)
    has_tensorboard = args.boolean(TENSORBOARD)
    existing = [name for name in counts if counts[name]] + ([TENSORBOARD] if has_tensorboard else []) + [*data_counts]
    for name in own:
        if name not in existing:
            remedy = f"Its jobs are: {', '.join(existing) or 'none'}."
            raise args.error(f"jobs.{name}", "the cluster does not have this job", remedy)
    services = {
        name: ArgReader(args.cluster, settings, f"{args.prefix}services.{name}.")
        for name, settings in args.mapping("services", values=Mapping).items()
    }
    service_counts = {name: reader.integer("count", 1, 1, MOST_TASKS) for name, reader in services.items()}
    _refuse_counts(args, counts, sum(service_counts.values()) + sum(data_counts.values()))
    container, instances = args.group("container", docker.KEYS), args.group("ec2", ec2.KEYS)
    common = JobSpec(
        "",
        0,
        restart=restart_policy(args, Restart()),
        container=docker.job_container_spec(container, JobContainerSpec()),
        instance=ec2.instance_spec(instances, InstanceSpec()),
        pod=kubernetes.pod_spec(args.group("kubernetes", kubernetes.KEYS), PodSpec()),
    )
    jobs = [_job(args, name, counts[name], own.get(name, {}), common) for name in counts if counts[name]]
    if args.boolean("standalone_servers") and args.strings("command"):
        jobs = [job if job.name in ("chief", EVALUATOR) else replace(job, command=SERVER) for job in jobs]
    jobs += [_service(args, name, reader, service_counts[name], common) for name, reader in services.items()]
    jobs += [_data_job(args, name, count, own.get(name, {}), common) for name, count in data_counts.items()]
    return (*jobs, *([_tensorboard(args, own.get(TENSORBOARD, {}), common)] if has_tensorboard else []))


def _refuse_counts(args: ArgReader, counts: Mapping[str, int], services: int) -> None:
    total = sum(counts.values()) + services
    if total > MOST_TASKS:
        wrong = f"the cluster has {total} tasks, and at most {MOST_TASKS} in all are proven to work"
        raise args.error("workers", wrong, "Ask for fewer tasks, or use several clusters.")
    if not any(counts.values()):
        raise args.error("workers", "the cluster has no task", "Set workers=1 or more.")
    if not args.boolean("standalone_servers") and not any(counts[name] for name in ("chief", *WORKERS)):
        wrong = f"{' and '.join(name for name in counts if counts[name])} cannot train alone"
        raise args.error("workers", wrong, "Set workers or chief, or standalone_servers=True.")
    if args.boolean("tf_config_master") and not counts["chief"]:
        raise args.error("tf_config_master", "the cluster has no chief", "Set chief=True.")


def _tensorboard(args: ArgReader, own: Mapping[str, Any], common: JobSpec) -> JobSpec:
    """TensorBoard has no machine or GPU; the cluster's placement constraints do not apply to it."""
    ArgReader(args.cluster, own, f"{args.prefix}jobs.{TENSORBOARD}.").refuse_unknown(
        f"a setting of the job {TENSORBOARD}",
        _TENSORBOARD_KEYS,
        {name: JOB_GROUPS[name] for name in ("container", "kubernetes")},
    )
    anywhere = replace(common, container=replace(common.container, placement=()), instance=InstanceSpec())
    return replace(_job(args, TENSORBOARD, 1, own, anywhere), command=("python3", AGENT, TENSORBOARD))


def _service(args: ArgReader, name: str, reader: ArgReader, count: int, common: JobSpec) -> JobSpec:
    if not _SERVICE_NAME.fullmatch(name):
        remedy = "Use lower case letters, digits and underscores, such as feature_server."
        raise args.error(f"services.{name}", "is not a valid name", remedy)
    if name in _RESERVED:
        raise args.error(f"services.{name}", "is the name of something else", "Choose another name.")
    reader.refuse_unknown("a setting of a service", SERVICE_KEYS, JOB_GROUPS)
    command = reader.strings("command")
    if not command or not command[0].strip():
        raise reader.error(
            "command", "is missing", 'Set the program and its arguments, such as ["python", "serve.py"].'
        )
    refuse_too_long(reader, "command", "".join(command))
    job = _job_of(reader, name, count, _common_of_services(args, common))
    return replace(job, command=command, is_service=True)


def _data_job(args: ArgReader, name: str, count: int, own: Mapping[str, Any], common: JobSpec) -> JobSpec:
    job = _job_of(_job_reader(args, name, own), name, count, _common_of_services(args, common))
    return replace(job, command=DATA_SERVICE[name], is_service=True, is_unlisted=name == DATA_WORKER)


def _common_of_services(args: ArgReader, common: JobSpec) -> JobSpec:
    """The cluster's placement constraints do not apply to services: they are for the tasks of the training."""
    return replace(
        common,
        restart=restart_policy(args, Restart(on=("any",))),
        container=replace(common.container, placement=()),
        instance=ec2.on_demand(common.instance),
    )


def _job(args: ArgReader, name: str, count: int, own: Mapping[str, Any], common: JobSpec) -> JobSpec:
    job = _job_reader(args, name, own)
    if not job.boolean("required", default=True) and name != EVALUATOR:
        raise job.error(
            "required", "only an evaluator can fail while the run continues", "Remove it; or use `elastic`."
        )
    return _job_of(job, name, count, common)


def _job_reader(args: ArgReader, name: str, own: Mapping[str, Any]) -> ArgReader:
    job = ArgReader(args.cluster, own, f"{args.prefix}jobs.{name}.")
    job.refuse_unknown("a setting of a job", JOB_KEYS, JOB_GROUPS)
    return job


def _job_of(job: ArgReader, name: str, count: int, common: JobSpec) -> JobSpec:
    port = job.integer("port", 0, 1, 65535)
    if port + count - 1 > 65535:
        raise job.error("port", f"{count} tasks need the ports {port} to {port + count - 1}", "Use a lower port.")
    instance = ec2.on_demand(common.instance) if name in _ON_DEMAND else common.instance
    return JobSpec(
        name=name,
        count=count,
        cpus=job.number("cpus"),
        memory=job.bytes("memory"),
        gpus=job.integer("gpus", int(name == GPU_WORKER), 0, 1_000),
        port=port,
        env=environment(job),
        restart=restart_policy(job, common.restart),
        container=docker.job_container_spec(job.group("container", docker.JOB_KEYS), common.container),
        instance=ec2.instance_spec(job.group("ec2", ec2.JOB_KEYS), instance),
        pod=kubernetes.pod_spec(job.group("kubernetes", kubernetes.JOB_KEYS), common.pod),
        required=job.boolean("required", default=True),
    )
