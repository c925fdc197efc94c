"""The jobs of a cluster, from its arguments: how many tasks each has, and their settings. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..agent.model.deciding_tasks import ALL_WORKERS
from ..agent.model.json_data import JsonData
from ..agent.model.run_state import EVALUATOR, GPU_WORKER, TENSORBOARD, WORKERS
from ..agent.model.settings import Limits
from ..agent.model.task_command import AGENT, DATA_DISPATCHER, DATA_WORKER
from .arg_reader import ArgReader
from .argument import (
    MAPPING,
    TEXTS,
    duration,
    flag,
    group,
    integer,
    members_of_groups,
    names,
    own,
    read_all,
    size,
    texts,
    values_of,
)
from .docker import JobContainerSpec
from .ec2 import InstanceSpec, on_demand
from .environment import environment, refuse_too_long
from .kubernetes import PodSpec

JOBS = ("chief", "ps", *WORKERS, EVALUATOR, TENSORBOARD)
"""The jobs of a cluster in the order in which tables list them."""

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

_MOST_PORTS = 65535

_ON = re.compile(r"any|signal|oom|([0-9]{1,3})(-([0-9]{1,3}))?")


def _reason(policy: ArgReader, key: str, reason: str) -> str:
    match = _ON.fullmatch(reason)
    low, high = (int(match.group(n) or match.group(1) or 0) for n in (1, 3)) if match else (1, 0)
    if not low <= high <= 255:
        remedy = 'Use "any", "signal", "oom", an exit code ("3") or a range ("64-78").'
        raise policy.error(key, f"{reason!r} is not valid", remedy)
    return reason


@dataclass(frozen=True)
class Restart(JsonData):
    """When a failed task is restarted."""

    maximum: int = integer(3, 0, 1_000_000)
    """The highest number of restarts of a task in one run; 0 disables restarts."""
    backoff: float = duration(2.0)
    """The delay before the second restart; the first is immediate. It doubles with each further restart, up to 300 s."""
    on: tuple[str, ...] = texts(_reason, ("signal",))
    """The failures after which a task is restarted: "any", "signal", "oom", an exit code ("3") or a range of exit codes ("64-78")."""


def job_rank(job: str) -> int:
    """The position of a job in the order of updates; services come first."""
    return JOBS.index(job) if job in JOBS else -1


@dataclass(frozen=True)
class JobSpec(JsonData):
    """Settings of one job."""

    name: str
    count: int
    cpus: float = own("float", ArgReader.number, 0.0)
    """CPUs reserved for each task, in a container also its limit; 0 sets neither. A machine must have those of all its tasks."""
    memory: int = size()
    """The memory limit of each task, such as "2GiB"; a task above it is killed and reported as `out of memory`. 0 means no limit."""
    gpus: int = integer(0, 0, 1_000)
    """GPUs of each task, which it sees by `CUDA_VISIBLE_DEVICES`. A gpu_worker has 1 by default."""
    nice: int = integer(0, 0, 19)
    """The niceness of each task: while other programs need the processors, Linux gives this one less of them; 19 gives the least. It
    compares programs of one control group: in a container those of this container, such as what `tfdeploy exec` runs."""
    port: int = integer(0, 1, _MOST_PORTS)
    """The port of task 0; task 1 has the next one, and so on. By default each task uses a free port."""
    env: Mapping[str, str] = own(MAPPING, environment, {})
    """Environment variables of this job, in addition to the cluster's; the same name overrides."""
    restart: Restart = group(Restart)
    """This job's restart policy; each setting overrides the cluster's."""
    required: bool = flag(True)
    """Whether the run fails if a task of this job fails for good. Only an evaluator and services can be not required."""
    container: JobContainerSpec = group(JobContainerSpec)
    """This job's containers."""
    ec2: InstanceSpec = group(InstanceSpec)
    """This job's EC2 instances."""
    kubernetes: PodSpec = group(PodSpec)
    """This job's pods on Kubernetes."""
    command: tuple[str, ...] = ()
    """Empty for the cluster's command."""
    is_service: bool = False
    is_unlisted: bool = False
    """Whether no other task gets its addresses, so that its count can change while the others run."""

    @property
    def limits(self) -> Limits:
        """What each task may use."""
        return Limits.from_dict(vars(self))

    @property
    def stem(self) -> str:
        """The first part of hostnames and machine names; RFC 1123 allows no underscore in them."""
        return self.name.replace("_", "-")


def _service_command(args: ArgReader, key: str, _default: object) -> tuple[str, ...]:
    command = args.strings(key)
    if not command or not command[0].strip():
        raise args.error(key, "is missing", 'Set the program and its arguments, such as ["python", "serve.py"].')
    refuse_too_long(args, key, "".join(command))
    return command


@dataclass(frozen=True)
class ServiceSpec:
    """A program that the training needs. Its further settings are those of a job."""

    command: tuple[str, ...] = own(TEXTS, _service_command, ())
    """The program and its arguments, with placeholders as in the cluster's command. It has to listen at {port}. Required."""
    count: int = integer(1, 1, MOST_TASKS)
    """The number of its tasks."""


@dataclass(frozen=True)
class DataServiceSpec:
    """The tasks of tf.data service."""

    workers: int = integer(0, 1, MOST_TASKS)
    """The number of its workers: the tasks data-worker-0, … Another number restarts no other task. Required."""


_NOT_OF_TENSORBOARD = ("gpus", "required", "ec2")


def jobs_of(args: ArgReader, counts: Mapping[str, int], data_workers: int, common: JobSpec) -> tuple[JobSpec, ...]:
    """The jobs of a cluster: those of the training, its services, and TensorBoard. `counts` is job of the training to the number of its
    tasks; `common` has what all jobs have of the cluster.

    Raises:
        SpecError: an argument is not valid.
    """
    has_tensorboard = args.boolean(TENSORBOARD)
    data_counts = {DATA_DISPATCHER: 1, DATA_WORKER: data_workers} if data_workers else {}
    existing = [name for name in counts if counts[name]] + ([TENSORBOARD] if has_tensorboard else []) + [*data_counts]
    settings = args.mapping("jobs", values=Mapping)
    for name in settings:
        if name not in existing:
            remedy = f"Its jobs are: {', '.join(existing) or 'none'}."
            raise args.error(f"jobs.{name}", "the cluster does not have this job", remedy)
    readers = {name: ArgReader(args.cluster, settings.get(name, {}), f"{args.prefix}jobs.{name}.") for name in existing}
    services = {
        name: ArgReader(args.cluster, own_settings, f"{args.prefix}services.{name}.")
        for name, own_settings in args.mapping("services", values=Mapping).items()
    }
    of_services = _common_of_services(args, common)
    made = [_service(args, name, reader, of_services) for name, reader in services.items()]
    _refuse_counts(args, counts, sum(job.count for job in made) + sum(data_counts.values()))
    jobs = [_job(readers[name], name, counts[name], common) for name in counts if counts[name]]
    if args.boolean("standalone_servers") and args.strings("command"):
        jobs = [job if job.name in ("chief", EVALUATOR) else replace(job, command=SERVER) for job in jobs]
    data_jobs = [_data_job(readers[name], name, count, of_services) for name, count in data_counts.items()]
    return (*jobs, *made, *data_jobs, *([_tensorboard(readers[TENSORBOARD], common)] if has_tensorboard else []))


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


def _tensorboard(reader: ArgReader, common: JobSpec) -> JobSpec:
    """TensorBoard has no machine or GPU; the cluster's placement constraints do not apply to it."""
    taken = [name for name in names(JobSpec) if name not in _NOT_OF_TENSORBOARD]
    groups = {name: members for name, members in members_of_groups(JobSpec).items() if name in taken}
    reader.refuse_unknown(f"a setting of the job {TENSORBOARD}", taken, groups)
    anywhere = replace(common, container=replace(common.container, placement=()), ec2=InstanceSpec())
    return replace(_job_of(reader, TENSORBOARD, 1, anywhere), command=("python3", AGENT, TENSORBOARD))


def _service(args: ArgReader, name: str, reader: ArgReader, common: JobSpec) -> JobSpec:
    if not _SERVICE_NAME.fullmatch(name):
        remedy = "Use lower case letters, digits and underscores, such as feature_server."
        raise args.error(f"services.{name}", "is not a valid name", remedy)
    if name in _RESERVED:
        raise args.error(f"services.{name}", "is the name of something else", "Choose another name.")
    reader.refuse_unknown("a setting of a service", names(ServiceSpec, JobSpec), members_of_groups(JobSpec))
    service = read_all(reader, ServiceSpec)
    return replace(_job_of(reader, name, service.count, common), command=service.command, is_service=True)


def _data_job(reader: ArgReader, name: str, count: int, common: JobSpec) -> JobSpec:
    _refuse_unknown(reader)
    job = _job_of(reader, name, count, common)
    return replace(job, command=DATA_SERVICE[name], is_service=True, is_unlisted=name == DATA_WORKER)


def _common_of_services(args: ArgReader, common: JobSpec) -> JobSpec:
    """The cluster's placement constraints do not apply to services: they are for the tasks of the training."""
    return replace(
        common,
        restart=read_all(args.group("restart", names(Restart)), Restart, Restart(on=("any",))),
        container=replace(common.container, placement=()),
        ec2=on_demand(common.ec2),
    )


def _job(reader: ArgReader, name: str, count: int, common: JobSpec) -> JobSpec:
    _refuse_unknown(reader)
    if not reader.boolean("required", default=True) and name != EVALUATOR:
        remedy = "Remove it; or use `elastic`."
        raise reader.error("required", "only an evaluator can fail while the run continues", remedy)
    own_common = replace(common, ec2=on_demand(common.ec2)) if name in _ON_DEMAND else common
    return _job_of(reader, name, count, replace(own_common, gpus=int(name == GPU_WORKER)))


def _refuse_unknown(reader: ArgReader) -> None:
    reader.refuse_unknown("a setting of a job", names(JobSpec), members_of_groups(JobSpec))


def _job_of(reader: ArgReader, name: str, count: int, common: JobSpec) -> JobSpec:
    job = JobSpec(name, count, **values_of(reader, JobSpec, common))
    if job.port + count - 1 > _MOST_PORTS:
        wrong = f"{count} tasks need the ports {job.port} to {job.port + count - 1}"
        raise reader.error("port", wrong, "Use a lower port.")
    return job


@dataclass(frozen=True)
class ElasticSpec:
    """Workers that are added, removed or lost while the others train."""

    max: int = integer(0, 2, MOST_TASKS)
    """The highest number of workers. Every task knows the addresses of so many from its start. A change restarts all tasks."""


def refuse_elastic(args: ArgReader, most: int, jobs: Sequence[JobSpec]) -> None:
    """Refuse a cluster that cannot be elastic, or not with so many workers.

    Raises:
        SpecError: it is not valid.
    """
    if not args.has("elastic"):
        return
    elastic = args.group("elastic", names(ElasticSpec))
    if not elastic.has("max"):
        raise elastic.error("max", "is missing", 'Set the highest number of workers, such as elastic={"max": 8}.')
    counts = {job.name: job.count for job in jobs}
    worker_port = sum(job.port for job in jobs if job.name == "worker")
    workers = counts.get("worker", 0)
    _refuse_jobs(args, counts)
    if args.string("success") == ALL_WORKERS:
        wrong = f"{ALL_WORKERS!r} cannot be combined with `elastic`: workers may be removed or lost"
        raise args.error("success", wrong, 'Use "worker-0", or "chief" if there is one.')
    if workers > most:
        raise elastic.error("max", f"{most} is less than workers={workers}", f"Use {workers} or more.")
    others = sum(counts.values()) - workers
    if others + most > MOST_TASKS:
        wrong = f"with {most} workers the cluster has {others + most} tasks, and at most {MOST_TASKS} in all are proven to work"
        raise elastic.error("max", wrong, f"Use at most {MOST_TASKS - others}.")
    if worker_port and worker_port + most - 1 > _MOST_PORTS:
        wrong = f"{most} workers need the ports {worker_port} to {worker_port + most - 1}"
        raise args.error("jobs.worker.port", wrong, "Use a lower port.")


def _refuse_jobs(args: ArgReader, counts: Mapping[str, int]) -> None:
    if args.boolean("standalone_servers"):
        wrong = "cannot be combined with `standalone_servers`: a client of the servers knows a fixed number of them"
        raise args.error("elastic", wrong, "Remove one of them.")
    if not counts.get("ps"):
        wrong = "the cluster has no parameter server, and without one workers train only together"
        raise args.error("elastic", wrong, "Set ps=1 or more, or remove `elastic`.")
    if counts.get(GPU_WORKER):
        remedy = 'Use `workers` with jobs={"worker": {"gpus": 1}}.'
        raise args.error("elastic", "cannot be combined with `gpu_workers`", remedy)
    if not counts.get("worker"):
        raise args.error("elastic", "the cluster has no worker 0, which always exists", "Set workers=1 or more.")
