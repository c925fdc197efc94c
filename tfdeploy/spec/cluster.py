"""The validated specification of a cluster as plain values. Pure: it depends on neither Pulumi nor the file system."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from ..agent.control.until_metrics import COMPARISONS
from ..agent.record.artifacts import DEFAULT_PATTERNS
from ..agent.record.metric_values import number_in
from ..agent.record.record_files import is_valid_name
from ..agent.run_state import EVALUATOR, GPU_WORKER, TENSORBOARD, WORKERS
from ..agent.task_command import AGENT, ALWAYS, AUTO, NEVER
from ..errors import SpecError, nearest
from . import docker, ec2, elastic, kubernetes
from .arg_reader import ArgReader, refuse_deep
from .backends import BACKENDS, DEFAULT_BACKEND, JOB_MAPPINGS
from .docker import ContainerSpec, DockerSpec, JobContainerSpec
from .ec2 import Ec2Spec, InstanceSpec
from .environment import Restart, context, environment, refuse_too_long, restart_policy, secret_environment, secrets
from .kubernetes import KubernetesSpec, PodSpec

JOBS = ("chief", "ps", *WORKERS, EVALUATOR, TENSORBOARD)
"""The jobs of a cluster in the order in which tables list them."""


def job_rank(job: str) -> int:
    """The place of a job among those of a cluster, in the order in which tasks are updated; services come first."""
    return JOBS.index(job) if job in JOBS else -1


GROUPS: Mapping[str, tuple[str, ...]] = {
    "container": docker.KEYS,
    "docker": docker.DOCKER_KEYS,
    "ec2": ec2.KEYS,
    "kubernetes": kubernetes.KEYS,
}
"""The groups of arguments and their members."""

JOB_GROUPS: Mapping[str, tuple[str, ...]] = {
    "container": docker.JOB_KEYS,
    "ec2": ec2.JOB_KEYS,
    "kubernetes": kubernetes.JOB_KEYS,
}
"""The same for the arguments of one job."""

_JOB_FIELDS: Mapping[str, str] = {"container": "container", "ec2": "instance", "kubernetes": "pod"}
"""A group to the field of `JobSpec` that has it."""

FLAG_RULES = (AUTO, ALWAYS, NEVER)
"""Whether the four flags are appended to the command."""

SUCCESS_RULES = ("chief", "worker-0", "all-workers")
"""The tasks that must succeed for the run to succeed."""

LONGEST_NAME = 40

MOST_TASKS = 1_000
"""All tasks of a cluster: so many are proven (bench/ and tests/unit/agent)."""

MOST_LOG_LINES = 20_000
"""`log_lines` of all tasks together: each update stores them in Pulumi's state."""

MOST_PATTERNS = 100
"""The patterns of `artifacts`."""

SERVICE_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")

_RESERVED = (*JOBS, "master", "controller", "task")
"""Names of other jobs, of other tasks, and of TensorFlow's own."""

_ON_DEMAND = ("ps",)
"""Jobs that use spot instances only if their own group `ec2` sets it: an interrupted parameter server loses its variables."""

_SERVER = ("python", AGENT, "grpc-server")

_NAME = re.compile(r"[A-Za-z]([A-Za-z0-9-]*[A-Za-z0-9])?")

_ID = re.compile(r"[a-z0-9]{10}")
"""The id of a cluster, as `identity` draws it."""

_COMPARISON = re.compile(rf"\s*({'|'.join(COMPARISONS)})\s*(\S+)\s*")

_RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


def job_rank(job: str) -> int:
    """The position of a job in the order of updates: those that `JOBS` does not have come first."""
    return JOBS.index(job) if job in JOBS else -1


@dataclass(frozen=True)
class Comparison:
    """What a metric is compared with by `until`."""

    comparison: str
    threshold: float


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

    @property
    def stem(self) -> str:
        """The first part of hostnames and machine names; RFC 1123 allows no underscore in them."""
        return self.name.replace("_", "-")


@dataclass(frozen=True)
class ClusterSpec:
    """One cluster; see `args.TensorFlowClusterArgs` for the meaning of the fields."""

    name: str
    command: tuple[str, ...]
    jobs: tuple[JobSpec, ...]
    success: str
    worker_timeout: float = field(default=60.0, metadata={"unit": "s"})
    """0 by default where a chief decides and there are parameter servers: workers only serve the chief then."""
    quiet_timeout: float = 6.0
    """Within `worker_timeout`, a worker that does nothing for so long is stopped. 0 where the user has set another `worker_timeout`."""
    evaluator_timeout: float = field(default=600.0, metadata={"unit": "s"})
    evaluator_quiet_timeout: float = 150.0
    """As `quiet_timeout`: a program that looks for a new checkpoint every two minutes does nothing in between."""
    flags: str = AUTO
    code: str = ""
    standalone_servers: bool = False
    tf_config_master: bool = False
    requirements: tuple[str, ...] = ()
    metrics: Mapping[str, str] = field(default_factory=dict)
    until: Mapping[str, Comparison] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    secret_env: tuple[str, ...] = ()
    """The names of the variables of `env` with secret values."""
    secrets: tuple[str, ...] = ()
    data_dir: str = ""
    train_dir: str = ""
    artifacts: tuple[str, ...] = DEFAULT_PATTERNS
    checkpoint_upload_interval: float | None = field(default=None, metadata={"unit": "s"})
    """0 for never. None: the default, which depends on whether machines can be lost."""
    context: str = "{}"
    stop_grace_period: float = field(default=10.0, metadata={"unit": "s"})
    wait: float = field(default=600.0, metadata={"unit": "s"})
    start_timeout: float = field(default=0.0, metadata={"unit": "s"})
    retention: float = field(default=0.0, metadata={"unit": "s"})
    """0 for ever."""
    run_id: str = ""
    resume_from: str = ""
    adopt: str = ""
    log_lines: int = 20
    backend: str = DEFAULT_BACKEND
    container: ContainerSpec = field(default_factory=ContainerSpec)
    written_container: ContainerSpec = field(default_factory=ContainerSpec)
    """The group as the user wrote it, also on a backend that does not use it: the image counts in the name of a run everywhere."""
    docker: DockerSpec = field(default_factory=DockerSpec)
    ec2: Ec2Spec = field(default_factory=Ec2Spec)
    kubernetes: KubernetesSpec = field(default_factory=KubernetesSpec)
    unused_groups: tuple[str, ...] = ()
    """Groups of arguments that are set and have no effect on this backend."""
    max_workers: int = 0
    """How many workers there may be in an elastic cluster; 0 where it is not elastic."""

    @property
    def training_jobs(self) -> tuple[JobSpec, ...]:
        """All jobs but TensorBoard, which takes no part in the training. Services are among them."""
        return tuple(job for job in self.jobs if job.name != TENSORBOARD)

    def job(self, name: str) -> JobSpec | None:
        """The job of that name, if the cluster has it."""
        return next((job for job in self.jobs if job.name == name), None)


def cluster_spec(name: str, values: Mapping[str, Any]) -> ClusterSpec:
    """The specification from the arguments. Groups that the backend does not use are validated, and then left out.

    Raises:
        SpecError: an argument is not valid.
    """
    args = _reader(name, values)
    jobs = _jobs(args)
    env, success = secret_environment(args), _success(args, jobs)
    spec = ClusterSpec(
        name=name,
        command=_command(args),
        jobs=jobs,
        success=success,
        worker_timeout=_worker_timeout(args, jobs, success),
        quiet_timeout=_quiet_timeout(args, "worker_timeout", ClusterSpec.quiet_timeout),
        evaluator_timeout=args.duration("evaluator_timeout", ClusterSpec.evaluator_timeout),
        evaluator_quiet_timeout=_quiet_timeout(args, "evaluator_timeout", ClusterSpec.evaluator_quiet_timeout),
        flags=_flags(args),
        code=args.string("code"),
        standalone_servers=args.boolean("standalone_servers") and not args.strings("command"),
        tf_config_master=args.boolean("tf_config_master"),
        requirements=_requirements(args),
        metrics=_metrics(args),
        until=_until(args),
        env=env.plain,
        secret_env=env.secret,
        secrets=secrets(args, {*env.plain, *env.secret, *(variable for job in jobs for variable in job.env)}),
        data_dir=args.string("data_dir"),
        train_dir=args.string("train_dir"),
        artifacts=_artifacts(args),
        checkpoint_upload_interval=_checkpoint_upload_interval(args),
        context=context(args),
        stop_grace_period=args.duration("stop_grace_period", ClusterSpec.stop_grace_period),
        wait=args.duration("wait", ClusterSpec.wait),
        start_timeout=args.duration("start_timeout", ClusterSpec.start_timeout),
        retention=args.duration("retention", ClusterSpec.retention),
        run_id=args.string("run_id"),
        adopt=args.matching("adopt", _ID, "the id of a cluster, such as k3v9x2abcd"),
        resume_from=_resume_from(args),
        log_lines=_log_lines(args, jobs),
        backend=args.choice("backend", tuple(BACKENDS), ClusterSpec.backend),
        container=docker.container_spec(args.group("container", docker.KEYS)),
        docker=docker.docker_spec(args.group("docker", docker.DOCKER_KEYS)),
        ec2=ec2.ec2_spec(args.group("ec2", ec2.KEYS)),
        kubernetes=kubernetes.kubernetes_spec(args.group("kubernetes", kubernetes.KEYS)),
        max_workers=_max_workers(args, jobs),
    )
    return _without_unused_groups(spec, args)


def _reader(name: str, values: Mapping[str, Any]) -> ArgReader:
    if not _NAME.fullmatch(name) or len(name) > LONGEST_NAME:
        remedy = (
            f"Use a letter, followed by at most {LONGEST_NAME - 1} letters, digits and hyphens; no hyphen at the end."
        )
        raise SpecError("TensorFlowCluster", f"the name {name!r} is not valid", remedy)
    refuse_deep(name, values)
    return ArgReader(name, values)


def _max_workers(args: ArgReader, jobs: Sequence[JobSpec]) -> int:
    ports = [job.port for job in jobs if job.name == "worker"]
    return elastic.max_workers(args, {job.name: job.count for job in jobs}, sum(ports), MOST_TASKS)


def _log_lines(args: ArgReader, jobs: Sequence[JobSpec]) -> int:
    lines, tasks = args.integer("log_lines", ClusterSpec.log_lines, 0, 10_000), sum(job.count for job in jobs)
    if lines * tasks > MOST_LOG_LINES:
        wrong = f"{lines} lines of {tasks} tasks are more than the {MOST_LOG_LINES} lines that an update stores in the outputs"
        remedy = f"Use at most {MOST_LOG_LINES // tasks}; `tfdeploy logs` prints any number."
        raise args.error("log_lines", wrong, remedy)
    return lines


def _without_unused_groups(spec: ClusterSpec, args: ArgReader) -> ClusterSpec:
    used = BACKENDS[spec.backend].groups
    set_groups = [group for group in GROUPS if args.args.get(group)]
    for mapping in JOB_MAPPINGS:
        own = args.mapping(mapping, values=Mapping)
        set_groups += [f"{mapping}.{job}.{group}" for job in own for group in JOB_GROUPS if own[job].get(group)]
    unused = tuple(group for group in set_groups if group.rpartition(".")[2] not in used)
    job_fields = [field for group, field in _JOB_FIELDS.items() if group not in used]
    jobs = tuple(_emptied(job, job_fields) for job in spec.jobs)
    written = replace(spec, jobs=jobs, written_container=spec.container, unused_groups=unused)
    return _emptied(written, [group for group in GROUPS if group not in used])


_Spec = TypeVar("_Spec", ClusterSpec, JobSpec)


def _emptied(spec: _Spec, fields: Sequence[str]) -> _Spec:
    """The specification with the defaults in these fields, which are specifications themselves."""
    return replace(spec, **{name: type(getattr(spec, name))() for name in fields})


def _command(args: ArgReader) -> tuple[str, ...]:
    command, servers = args.strings("command"), args.boolean("standalone_servers")
    if servers and command and not args.args.get("chief"):
        remedy = "Remove `command`, or set chief=True: then it is the chief's command."
        raise args.error("command", "cannot be combined with `standalone_servers`", remedy)
    if servers and not command:
        return _SERVER
    if not command and BACKENDS[args.choice("backend", tuple(BACKENDS), ClusterSpec.backend)].runs_containers:
        return ()
    if not command or not command[0].strip():
        raise args.error("command", "is missing", 'Set the program and its arguments, such as ["python", "train.py"].')
    refuse_too_long(args, "command", "".join(command))
    return command


JOB_KEYS = ("cpus", "memory", "gpus", "port", "env", "restart", "required", *JOB_GROUPS)
SERVICE_KEYS = ("command", "count", *JOB_KEYS)
_TENSORBOARD_KEYS = ("cpus", "memory", "port", "env", "restart", "container", "kubernetes")


def _counts(args: ArgReader) -> dict[str, int]:
    return {
        "chief": int(args.boolean_or_count("chief")),
        "ps": args.integer("ps", 0, 0, MOST_TASKS),
        "worker": args.integer("workers", 0, 0, MOST_TASKS),
        GPU_WORKER: args.integer("gpu_workers", 0, 0, MOST_TASKS),
        EVALUATOR: int(args.boolean_or_count("evaluator")),
    }


def _jobs(args: ArgReader) -> tuple[JobSpec, ...]:
    counts = _counts(args)
    own = args.mapping("jobs", values=Mapping)
    has_tensorboard = args.boolean(TENSORBOARD)
    existing = [name for name in counts if counts[name]] + ([TENSORBOARD] if has_tensorboard else [])
    for name in own:
        if name not in existing:
            remedy = f"Its jobs are: {', '.join(existing) or 'none'}."
            raise args.error(f"jobs.{name}", "the cluster does not have this job", remedy)
    services = args.mapping("services", values=Mapping)
    _refuse_counts(args, counts, sum(_service_counts(args, services)))
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
        jobs = [job if job.name in ("chief", EVALUATOR) else replace(job, command=_SERVER) for job in jobs]
    jobs += [_service(args, name, services[name], common) for name in services]
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


def _service_reader(args: ArgReader, name: str, own: Mapping[str, Any]) -> ArgReader:
    return ArgReader(args.cluster, own, f"{args.prefix}services.{name}.")


def _service_counts(args: ArgReader, services: Mapping[str, Mapping[str, Any]]) -> list[int]:
    return [_service_reader(args, name, own).integer("count", 1, 1, MOST_TASKS) for name, own in services.items()]


def _service(args: ArgReader, name: str, own: Mapping[str, Any], common: JobSpec) -> JobSpec:
    """The cluster's placement constraints do not apply to it: they are for the tasks of the training."""
    if not SERVICE_NAME.fullmatch(name):
        remedy = "Use lower case letters, digits and underscores, such as feature_server."
        raise args.error(f"services.{name}", "is not a valid name", remedy)
    if name in _RESERVED:
        raise args.error(f"services.{name}", "is the name of something else", "Choose another name.")
    reader = _service_reader(args, name, own)
    reader.refuse_unknown("a setting of a service", SERVICE_KEYS, JOB_GROUPS)
    command = reader.strings("command")
    if not command or not command[0].strip():
        raise reader.error(
            "command", "is missing", 'Set the program and its arguments, such as ["python", "serve.py"].'
        )
    refuse_too_long(reader, "command", "".join(command))
    anywhere = replace(
        common,
        restart=restart_policy(args, Restart(on=("any",))),
        container=replace(common.container, placement=()),
        instance=ec2.on_demand(common.instance),
    )
    count = reader.integer("count", 1, 1, MOST_TASKS)
    return replace(_job_of(reader, name, count, anywhere), command=command, is_service=True)


def _job(args: ArgReader, name: str, count: int, own: Mapping[str, Any], common: JobSpec) -> JobSpec:
    job = ArgReader(args.cluster, own, f"{args.prefix}jobs.{name}.")
    job.refuse_unknown("a setting of a job", JOB_KEYS, JOB_GROUPS)
    if not job.boolean("required", default=True) and name != EVALUATOR:
        raise job.error(
            "required", "only an evaluator can fail while the run continues", "Remove it; or use `elastic`."
        )
    return _job_of(job, name, count, common)


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


def _success(args: ArgReader, jobs: Sequence[JobSpec]) -> str:
    existing = {"worker" if job.name in WORKERS else job.name for job in jobs}
    rule = args.choice("success", SUCCESS_RULES, "")
    if not rule:
        return "chief" if "chief" in existing else "worker-0"
    if args.boolean("standalone_servers"):
        remedy = "Remove it: the servers run until they are stopped."
        raise args.error("success", "cannot be combined with `standalone_servers`", remedy)
    needed = "chief" if rule == "chief" else "worker"
    if needed not in existing:
        raise args.error("success", f"{rule!r} needs a {needed}, which the cluster does not have", "Use another rule.")
    return rule


def _worker_timeout(args: ArgReader, jobs: Sequence[JobSpec], success: str) -> float:
    only_serve = success == "chief" and any(job.name == "ps" for job in jobs)
    timeout = args.duration("worker_timeout", 0.0 if only_serve else ClusterSpec.worker_timeout)
    if args.args.get("worker_timeout") is not None and args.string("success") == "all-workers":
        raise args.error("worker_timeout", "has no effect with success='all-workers'", "Remove one of them.")
    return timeout


def _quiet_timeout(args: ArgReader, name: str, quiet: float) -> float:
    """A task has all of a timeout that is not the default, also while it does nothing."""
    default = getattr(ClusterSpec, name)
    return quiet if args.duration(name, default) == default else 0.0


def _flags(args: ArgReader) -> str:
    rule = args.choice("flags", FLAG_RULES, "")
    if rule and args.boolean("standalone_servers") and not args.strings("command"):
        raise args.error("flags", "cannot be combined with `standalone_servers`", "Remove it: there is no `command`.")
    return rule or ClusterSpec.flags


def _resume_from(args: ArgReader) -> str:
    return args.matching("resume_from", _RUN, "the id of an earlier run, such as 0123456789ab")


def _requirements(args: ArgReader) -> tuple[str, ...]:
    lines = args.strings("requirements")
    for line in lines:
        if not line.strip() or line.strip().startswith(("-", "#")) or "\n" in line:
            raise args.error("requirements", f"{line!r} is not a package", 'Use requirements such as "pandas==2.2.3".')
    return lines


def _metrics(args: ArgReader) -> dict[str, str]:
    patterns = args.mapping("metrics")
    for name, pattern in patterns.items():
        try:
            re.compile(pattern)
        except (re.error, OverflowError, RecursionError) as error:
            wrong = f"{pattern!r} is not a valid regular expression ({error})"
            raise args.error(f"metrics.{name}", wrong, "Fix the pattern.") from None
    return patterns


def _artifacts(args: ArgReader) -> tuple[str, ...]:
    if args.args.get("artifacts") is None:
        return ClusterSpec.artifacts
    patterns = args.strings("artifacts")
    for pattern in patterns:
        if not is_valid_name(pattern):
            remedy = 'Use patterns such as "**/*.keras", "export/**" or "checkpoint".'
            raise args.error("artifacts", f"{pattern!r} is not a path below `train_dir`", remedy)
    if len(patterns) > MOST_PATTERNS:
        raise args.error("artifacts", f"has {len(patterns)} patterns", f"Use at most {MOST_PATTERNS}.")
    return tuple(dict.fromkeys(patterns))


def _checkpoint_upload_interval(args: ArgReader) -> float | None:
    name = "checkpoint_upload_interval"
    if args.args.get(name) is None:
        return None
    interval = args.duration(name, 0.0)
    if interval and not _artifacts(args):
        remedy = "Remove one of them, or name checkpoints in `artifacts`."
        raise args.error(name, "has no effect with artifacts=[], which stores nothing", remedy)
    return interval


def _until(args: ArgReader) -> dict[str, Comparison]:
    texts, metrics = args.mapping("until", values=object), args.mapping("metrics")
    for name in texts:
        if name not in metrics:
            remedy = nearest(name, list(metrics)) if metrics else f'Add metrics={{"{name}": …}}.'
            raise args.error(f"until.{name}", "is not a metric of `metrics`", remedy)
    if texts and args.boolean("standalone_servers") and not args.strings("command"):
        raise args.error("until", "cannot be combined with `standalone_servers`", "Remove it: servers log no metrics.")
    return {name: _comparison(args, name, text) for name, text in texts.items()}


def _comparison(args: ArgReader, name: str, text: object) -> Comparison:
    match = _COMPARISON.fullmatch(text) if isinstance(text, str) else None
    threshold = number_in(match[2]) if match else None
    if match is None or threshold is None:
        remedy = f'Use one of {" ".join(COMPARISONS)} and a number, such as ">= 0.95".'
        raise args.error(f"until.{name}", f"{text!r} is not a comparison with a number", remedy)
    return Comparison(match[1], threshold)
