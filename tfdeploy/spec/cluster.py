"""The validated specification of a cluster as plain values. Pure: it depends on neither Pulumi nor the file system."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from ..agent.control.until_metrics import COMPARISONS
from ..agent.record.artifacts import DEFAULT_PATTERNS
from ..agent.record.metric_values import number_in
from ..agent.record.record_files import is_valid_name
from ..agent.run_state import TENSORBOARD, WORKERS
from ..agent.task_command import ALWAYS, AUTO, NEVER
from ..errors import SpecError, nearest
from . import docker, ec2, elastic, kubernetes
from .arg_reader import ArgReader, refuse_deep
from .backends import BACKENDS, DEFAULT_BACKEND, JOB_MAPPINGS
from .docker import ContainerSpec, DockerSpec
from .ec2 import Ec2Spec
from .environment import context, refuse_too_long, secret_environment, secrets
from .jobs import JOB_GROUPS, MOST_TASKS, SERVER, JobSpec, jobs_of
from .kubernetes import KubernetesSpec

GROUPS: Mapping[str, tuple[str, ...]] = {
    "container": docker.KEYS,
    "docker": docker.DOCKER_KEYS,
    "ec2": ec2.KEYS,
    "kubernetes": kubernetes.KEYS,
}
"""The groups of arguments and their members."""


_JOB_FIELDS: Mapping[str, str] = {"container": "container", "ec2": "instance", "kubernetes": "pod"}
"""A group to the field of `JobSpec` that has it."""

FLAG_RULES = (AUTO, ALWAYS, NEVER)
"""Whether the four flags are appended to the command."""

SUCCESS_RULES = ("chief", "worker-0", "all-workers")
"""The tasks that must succeed for the run to succeed."""

LONGEST_NAME = 40


MOST_LOG_LINES = 20_000
"""`log_lines` of all tasks together: each update stores them in Pulumi's state."""

MOST_PATTERNS = 100
"""The patterns of `artifacts`."""


_NAME = re.compile(r"[A-Za-z]([A-Za-z0-9-]*[A-Za-z0-9])?")

_ID = re.compile(r"[a-z0-9]{10}")
"""The id of a cluster, as `identity` draws it."""

_COMPARISON = re.compile(rf"\s*({'|'.join(COMPARISONS)})\s*(\S+)\s*")

_RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


@dataclass(frozen=True)
class Comparison:
    """What a metric is compared with by `until`."""

    comparison: str
    threshold: float


@dataclass(frozen=True)
class ClusterSpec:
    """One cluster; see `args.TensorFlowClusterArgs` for the meaning of the fields."""

    name: str
    command: tuple[str, ...]
    jobs: tuple[JobSpec, ...]
    success: str
    worker_timeout: float = field(default=60.0, metadata={"unit": "s"})
    """0 by default where a chief decides and there are parameter servers: workers only serve the chief then."""
    evaluator_timeout: float = field(default=600.0, metadata={"unit": "s"})
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
    jobs = jobs_of(args)
    env, success = secret_environment(args), _success(args, jobs)
    spec = ClusterSpec(
        name=name,
        command=_command(args),
        jobs=jobs,
        success=success,
        worker_timeout=_worker_timeout(args, jobs, success),
        evaluator_timeout=args.duration("evaluator_timeout", ClusterSpec.evaluator_timeout),
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
        data_dir=_data_dir(args),
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
        return SERVER
    if not command and BACKENDS[args.choice("backend", tuple(BACKENDS), ClusterSpec.backend)].runs_containers:
        return ()
    if not command or not command[0].strip():
        raise args.error("command", "is missing", 'Set the program and its arguments, such as ["python", "train.py"].')
    refuse_too_long(args, "command", "".join(command))
    return command


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


def _flags(args: ArgReader) -> str:
    rule = args.choice("flags", FLAG_RULES, "")
    if rule and args.boolean("standalone_servers") and not args.strings("command"):
        raise args.error("flags", "cannot be combined with `standalone_servers`", "Remove it: there is no `command`.")
    return rule or ClusterSpec.flags


def _resume_from(args: ArgReader) -> str:
    return args.matching("resume_from", _RUN, "the id of an earlier run, such as 0123456789ab")


def _requirements(args: ArgReader) -> tuple[str, ...]:
    """Without comments and empty lines, as pip reads a file."""
    lines = args.strings("requirements")
    for line in lines:
        if line.strip().startswith("-") or "\n" in line.strip():
            raise args.error("requirements", f"{line!r} is not a package", 'Use requirements such as "pandas==2.2.3".')
    return tuple(filter(None, (re.sub(r"(^|\s+)#.*$", "", line).strip() for line in lines)))


def _data_dir(args: ArgReader) -> str:
    """A folder is the same with and without a slash at its end; what a URL names is its store's to say."""
    path = args.string("data_dir")
    return path if "://" in path or not path.strip("/") else path.rstrip("/")


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
