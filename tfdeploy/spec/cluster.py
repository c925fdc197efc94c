"""The validated specification of a cluster as plain values. Pure: it depends on neither Pulumi nor the file system."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from ..agent.control.until_metrics import COMPARISONS
from ..agent.model.deciding_tasks import ALL_WORKERS, CHIEF, WORKER_0
from ..agent.model.json_data import JsonData
from ..agent.model.run_spec import DEFAULT_PATTERNS
from ..agent.model.run_state import EVALUATOR, GPU_WORKER, TENSORBOARD, WORKERS
from ..agent.model.task_command import ALWAYS, AUTO, NEVER
from ..agent.record.metric_values import number_in
from ..agent.record.record_files import is_valid_name
from ..errors import SpecError, nearest
from .arg_reader import ArgReader, refuse_deep
from .argument import (
    DATA,
    MAPPING,
    TEXTS,
    Choices,
    choice,
    duration,
    flag,
    group,
    groups,
    integer,
    mapping,
    members_of_groups,
    own,
    text,
    values_of,
)
from .backends import BACKENDS, DEFAULT_BACKEND, JOB_MAPPINGS
from .docker import ContainerSpec, DockerSpec
from .ec2 import Ec2Spec
from .environment import context, plain_environment, refuse_same_names, refuse_too_long, secrets
from .jobs import (
    MOST_TASKS,
    SERVER,
    DataServiceSpec,
    ElasticSpec,
    JobSpec,
    Restart,
    ServiceSpec,
    jobs_of,
    refuse_elastic,
)
from .kubernetes import KubernetesSpec

BACKEND_CHOICES = Choices("Backend", "Where tasks run.", tuple(BACKENDS))
FLAG_RULES = Choices("FlagRule", "Whether the four flags are appended to the command.", (AUTO, ALWAYS, NEVER))
SUCCESS_RULES = Choices(
    "SuccessRule", "Which tasks must succeed for the run to succeed.", (CHIEF, WORKER_0, ALL_WORKERS)
)

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


def _command(args: ArgReader, key: str, _default: object) -> tuple[str, ...]:
    command, servers = args.strings(key), args.boolean("standalone_servers")
    if servers and command and not args.args.get("chief"):
        remedy = "Remove `command`, or set chief=True: then it is the chief's command."
        raise args.error("command", "cannot be combined with `standalone_servers`", remedy)
    if servers and not command:
        return SERVER
    if not command and BACKENDS[args.choice("backend", BACKEND_CHOICES.values, DEFAULT_BACKEND)].runs_containers:
        return ()
    if not command or not command[0].strip():
        raise args.error("command", "is missing", 'Set the program and its arguments, such as ["python", "train.py"].')
    refuse_too_long(args, "command", "".join(command))
    return command


def _success(args: ArgReader, rule: str, counts: Mapping[str, int]) -> str:
    existing = {"worker" if job in WORKERS else job for job in counts if counts[job]}
    if not rule:
        return CHIEF if "chief" in existing else WORKER_0
    if args.boolean("standalone_servers"):
        remedy = "Remove it: the servers run until they are stopped."
        raise args.error("success", "cannot be combined with `standalone_servers`", remedy)
    needed = "chief" if rule == CHIEF else "worker"
    if needed not in existing:
        raise args.error("success", f"{rule!r} needs a {needed}, which the cluster does not have", "Use another rule.")
    return rule


def _worker_timeout(args: ArgReader, asked: float, success: str, counts: Mapping[str, int]) -> float:
    if not args.has("worker_timeout"):
        only_serve = success == CHIEF and counts["ps"]
        return 0.0 if only_serve else asked
    if success == ALL_WORKERS:
        raise args.error("worker_timeout", "has no effect with success='all-workers'", "Remove one of them.")
    return asked


def _servers(args: ArgReader, key: str, default: bool) -> bool:
    """With a command, the servers are jobs with a command of their own."""
    return args.boolean(key, default) and not args.strings("command")


def _flags(args: ArgReader, key: str, default: str) -> str:
    rule = args.choice(key, FLAG_RULES.values, "")
    if rule and _servers(args, "standalone_servers", False):
        raise args.error(key, "cannot be combined with `standalone_servers`", "Remove it: there is no `command`.")
    return rule or default


def _requirements(args: ArgReader, key: str, _default: object) -> tuple[str, ...]:
    """Without comments and empty lines, as pip reads a file."""
    lines = args.strings(key)
    for line in lines:
        if line.strip().startswith("-") or "\n" in line.strip():
            raise args.error(key, f"{line!r} is not a package", 'Use requirements such as "pandas==2.2.3".')
    return tuple(filter(None, (re.sub(r"(^|\s+)#.*$", "", line).strip() for line in lines)))


def _data_dir(_args: ArgReader, _key: str, path: str) -> str:
    """A folder is the same with and without a slash at its end; what a URL names is its store's to say."""
    return path if "://" in path or not path.strip("/") else path.rstrip("/")


def _metrics(args: ArgReader, key: str) -> dict[str, str]:
    patterns: dict[str, str] = args.mapping(key)
    for name, pattern in patterns.items():
        try:
            re.compile(pattern)
        except (re.error, OverflowError, RecursionError) as error:
            wrong = f"{pattern!r} is not a valid regular expression ({error})"
            raise args.error(f"{key}.{name}", wrong, "Fix the pattern.") from None
    return patterns


def _artifacts(args: ArgReader, key: str, default: tuple[str, ...]) -> tuple[str, ...]:
    if not args.has(key):
        return default
    patterns = args.strings(key)
    for pattern in patterns:
        if not is_valid_name(pattern):
            remedy = 'Use patterns such as "**/*.keras", "export/**" or "checkpoint".'
            raise args.error(key, f"{pattern!r} is not a path below `train_dir`", remedy)
    if len(patterns) > MOST_PATTERNS:
        raise args.error(key, f"has {len(patterns)} patterns", f"Use at most {MOST_PATTERNS}.")
    return tuple(dict.fromkeys(patterns))


def _checkpoint_upload_interval(args: ArgReader, key: str, default: float | None) -> float | None:
    if not args.has(key):
        return default
    interval = args.duration(key, 0.0)
    if interval and args.has("artifacts") and not args.strings("artifacts"):
        remedy = "Remove one of them, or name checkpoints in `artifacts`."
        raise args.error(key, "has no effect with artifacts=[], which stores nothing", remedy)
    return interval


def _until(args: ArgReader, key: str, _default: object) -> dict[str, Comparison]:
    texts, metrics = args.mapping(key, values=object), args.mapping("metrics")
    for name in texts:
        if name not in metrics:
            remedy = nearest(name, list(metrics)) if metrics else f'Add metrics={{"{name}": …}}.'
            raise args.error(f"until.{name}", "is not a metric of `metrics`", remedy)
    if texts and _servers(args, "standalone_servers", False):
        raise args.error("until", "cannot be combined with `standalone_servers`", "Remove it: servers log no metrics.")
    return {name: _comparison(args, name, text) for name, text in texts.items()}


def _comparison(args: ArgReader, name: str, text: object) -> Comparison:
    match = _COMPARISON.fullmatch(text) if isinstance(text, str) else None
    threshold = number_in(match[2]) if match else None
    if match is None or threshold is None:
        remedy = f'Use one of {" ".join(COMPARISONS)} and a number, such as ">= 0.95".'
        raise args.error(f"until.{name}", f"{text!r} is not a comparison with a number", remedy)
    return Comparison(match[1], threshold)


@dataclass(frozen=True)
class ClusterSpec(JsonData):
    """The training program, the number of tasks, and where they run."""

    name: str
    command: tuple[str, ...] = own(TEXTS, _command, ())
    """The program and its arguments. Placeholders: {job_name} {task_index} {ps_hosts} {worker_hosts} {chief_hosts} {hostname}
    {address} {port} {data_dir} {train_dir} {context}, {NAME_hosts} of each of `services`, and {data_service}. Required, except
    with `standalone_servers`, and on "docker" if the image has an entry point."""
    flags: str = own("str", _flags, AUTO, choices=FLAG_RULES)
    """Whether the flags --job_name, --task_index, --ps_hosts and --worker_hosts are appended to the command. "auto": if there is a ps
    and no chief, and the command contains none of {job_name} {task_index} {ps_hosts} {worker_hosts}. A change is a new run."""
    code: str = text()
    """A folder, relative to the Pulumi program, that is copied to every task and is its working directory. Files that .gitignore,
    .git/info/exclude and .tfdeployignore name are not copied, nor is what editors, desktops, coverage and experiment trackers leave
    there, nor logs (*.log), nor keys and credentials such as .env, *.pem, secrets.yaml and .aws, which the preview lists."""
    standalone_servers: bool = flag(read=_servers)
    """Whether tasks only run a TensorFlow gRPC server, for a client program that you run. With chief=True, `command` is
    that client: it runs as the chief, and the run ends with it."""
    requirements: tuple[str, ...] = own(TEXTS, _requirements, ())
    """Python packages in addition to TensorFlow, as in a requirements file: "pandas==2.2.3", or "NAME @ URL" of a wheel, an archive or
    a Git repository, which pip downloads with the permissions of the user that runs pip. Options such as --index-url are refused."""
    ps: int = integer(0, 0, MOST_TASKS)
    """The number of parameter servers."""
    workers: int = integer(0, 0, MOST_TASKS)
    """The number of workers."""
    elastic: ElasticSpec = group(ElasticSpec)
    """That `workers` may change, up to a maximum, during the training: no other task restarts, and the loss of a worker other than
    worker 0 never fails the run. For asynchronous training with parameter servers; the sessions of the program need device filters."""
    gpu_workers: int = integer(0, 0, MOST_TASKS)
    """The number of workers with GPUs: the tasks gpu-worker-0, … TensorFlow sees them as workers, after those of `workers`."""
    chief: bool = flag(read=ArgReader.boolean_or_count)
    """Whether there is a chief."""
    tf_config_master: bool = flag()
    """Whether `TF_CONFIG` calls the chief `master`, as programs for TensorFlow 1 expect."""
    evaluator: bool = flag(read=ArgReader.boolean_or_count)
    """Whether there is an evaluator, which is not part of the cluster spec."""
    tensorboard: bool = flag()
    """Whether TensorBoard runs on `train_dir` as the task tensorboard-0, on port 6006 (on "local" on another one if that is in
    use; see the output `endpoints`). It runs until `destroy` and does not affect the result of the run. The environment or
    image of the tasks must have the package tensorboard."""
    jobs: tuple[JobSpec, ...] = groups(JobSpec)
    """Settings of single jobs: chief, ps, worker, gpu_worker, evaluator, tensorboard, data_dispatcher, data_worker."""
    services: tuple[ServiceSpec, ...] = groups(ServiceSpec)
    """Programs that the training needs, such as a store: {"store": {"command": ["redis-server", "--port={port}"]}} is the task
    store-0, which others reach by {store_hosts} or $TFDEPLOY_STORE_HOSTS. Services start first and end with the run, of which they
    do not decide the result; by default they are restarted after any failure. A changed command is a new run."""
    data_service: DataServiceSpec = group(DataServiceSpec)
    """tf.data service: tasks that compute the dataset, without a program of yours: data-dispatcher-0, with its journal below
    `train_dir`, and workers. Your program gets its address as {data_service} and $TFDEPLOY_DATA_SERVICE."""
    metrics: Mapping[str, str] = mapping(_metrics)
    """Metrics by name: a regular expression that is searched in the log of the tasks that decide success, then in the other logs. The
    value is the last match (of group 1 if there is one), as a number if possible, and None without a match."""
    until: Mapping[str, Comparison] = own(MAPPING, _until, {})
    """Comparisons that end the run as succeeded: a name of `metrics`, and `>=`, `<=`, `>` or `<` with a number, such as
    {"accuracy": ">= 0.95"}. All of them must hold for the last values of their metrics. The tasks are then stopped as by
    `tfdeploy stop`, so that the program has `stop_grace_period` to save. A change is not a new run."""
    env: Mapping[str, str] = own(MAPPING, plain_environment, {})
    """Environment variables of all tasks; values may contain the placeholders. A change is a new run. Secret Outputs and secret
    configuration are stored as `secrets` are."""
    secrets: tuple[str, ...] = own(MAPPING, secrets, ())
    """Secret values by name. Each is a file in the folder $TFDEPLOY_SECRETS, and an environment variable if its name is in capitals.
    A change is not a new run."""
    data_dir: str = text(check=_data_dir)
    """The folder of the training data, relative to the Pulumi program, or a URL: $TFDEPLOY_DATA_DIR. An Output must be a URL."""
    train_dir: str = text()
    """The folder for checkpoints, relative to the Pulumi program, or a URL: $TFDEPLOY_TRAIN_DIR in the tasks. Each run has a
    subfolder. By default a folder of the cluster."""
    artifacts: tuple[str, ...] = own(TEXTS, _artifacts, DEFAULT_PATTERNS)
    """What is stored of `train_dir` with the record when the run ends or is stopped: glob patterns of files in the folder of the run.
    `saved_model.pb` means the model in its folder, `checkpoint` for the newest checkpoint in its folder, `NAME.index` for the newest
    one where no file `checkpoint` names one, and `**` for any number of folders. By default models, the newest checkpoints, and weights
    in HDF5. An empty list stores nothing. See the output `artifacts`. A change is not a new run."""
    checkpoint_upload_interval: float | None = own("str", _checkpoint_upload_interval, None, unit="s")
    """While the run trains, its newest complete checkpoint is stored with the record when it has changed, at most once in this
    time. A task with an empty `train_dir` continues from it. It is the one that TensorFlow's file `checkpoint` names where the chief
    runs, else worker 0. "0": only when the run ends. The default is "5m" where machines can be lost (on "ec2" and "kubernetes", and on
    "docker" with several machines), else "0". A change is not a new run."""
    context: str = own(DATA, context, "{}")
    """Data for the program: $TFDEPLOY_CONTEXT, as JSON."""
    success: str = choice(SUCCESS_RULES)
    """The tasks that must succeed for the run to succeed. By default the chief; without a chief, worker 0."""
    worker_timeout: float = duration(60.0)
    """After the chief or worker 0 has decided that the run succeeded: the time that the other workers have to end by themselves. Their
    failures do not count then. The parameter servers serve them for so long. What still runs after it is stopped. The
    default is "0" where a chief decides and there are parameter servers: workers only serve then."""
    evaluator_timeout: float = duration(600.0)
    """After the success of the run: the time that the evaluator has to evaluate the last checkpoint and to end by itself; "0" stops it
    at once. An evaluator that fails meanwhile does not change the result."""
    restart: Restart = group(Restart)
    """When failed tasks are restarted."""
    stop_grace_period: float = duration(10.0)
    """The time between SIGTERM and SIGKILL when a task is stopped."""
    wait: float = duration(600.0)
    """The longest time that `pulumi up` waits for the end of the run; "0" to not wait. TFDEPLOY_WAIT overrides it for one call."""
    start_timeout: float = duration(0.0)
    """The longest time that tasks wait for one another before the first start; then the run fails. By default there is no limit."""
    retention: float = duration(0.0, has_default=False)
    """How long this computer keeps what `destroy` has stored of clusters of this stack (records; on "local" also checkpoints), such as
    "30d". An update removes what is older, and its preview lists it; the newest record, the newest checkpoints and what is of a
    cluster that still exists stay. By default nothing is removed."""
    run_id: str = text()
    """Any text; a new one is a new run of the same program."""
    resume_from: str = text(pattern=_RUN, form="the id of an earlier run, such as 0123456789ab")
    """The id of an earlier run; this run continues in its folder of `train_dir`."""
    adopt: str = text(pattern=_ID, form="the id of a cluster, such as k3v9x2abcd")
    """The id of a cluster that exists and that the state of this stack does not have, for example because the state was lost. This
    stack takes it over. Without this argument it creates a new cluster."""
    log_lines: int = integer(20, 0, 10_000)
    """The number of last lines of each task in the output `logs`; at most 20000 for all tasks together."""
    backend: str = choice(BACKEND_CHOICES, DEFAULT_BACKEND)
    """Where tasks run. "local": processes on this machine. "docker": containers on a Docker Swarm. "ec2": containers on
    EC2 instances that are created for the cluster (beta: it has never run on AWS itself). "kubernetes": pods of a Kubernetes
    cluster that exists."""
    container: ContainerSpec = group(ContainerSpec)
    """Settings of containers, for the backends "docker", "ec2" and "kubernetes"."""
    docker: DockerSpec = group(DockerSpec)
    """Settings of the backend "docker"."""
    ec2: Ec2Spec = group(Ec2Spec)
    """Settings of the backend "ec2"."""
    kubernetes: KubernetesSpec = group(KubernetesSpec)
    """Settings of the backend "kubernetes"."""
    secret_env: tuple[str, ...] = ()
    """The names of the variables of `env` with secret values."""
    written_container: ContainerSpec = field(default_factory=ContainerSpec)
    """The group as the user wrote it, also on a backend that does not use it: the image counts in the name of a run everywhere."""
    unused_groups: tuple[str, ...] = ()
    """Groups of arguments that are set and have no effect on this backend."""

    @property
    def training_jobs(self) -> tuple[JobSpec, ...]:
        """All jobs but TensorBoard, which takes no part in the training. Services are among them."""
        return tuple(job for job in self.jobs if job.name != TENSORBOARD)

    @property
    def counts(self) -> dict[str, int]:
        """Job of the training to the number of its tasks. Services are not among them."""
        return {
            "chief": int(self.chief),
            "ps": self.ps,
            "worker": self.workers,
            GPU_WORKER: self.gpu_workers,
            EVALUATOR: int(self.evaluator),
        }

    @property
    def max_workers(self) -> int:
        """How many workers there may be in an elastic cluster; 0 where it is not elastic."""
        return self.elastic.max

    def job(self, name: str) -> JobSpec | None:
        """The job of that name, if the cluster has it."""
        return next((job for job in self.jobs if job.name == name), None)


GROUPS = members_of_groups(ClusterSpec)
"""The groups that only some backends use, and their members."""


def cluster_spec(name: str, values: Mapping[str, Any]) -> ClusterSpec:
    """The specification from the arguments. Groups that the backend does not use are validated, and then left out.

    Raises:
        SpecError: an argument is not valid.
    """
    args = _reader(name, values)
    asked = ClusterSpec(name, **values_of(args, ClusterSpec))
    jobs = _jobs(args, asked)
    secret_env = tuple(name for name in args.args.get("env") or () if name not in asked.env)
    env = {*asked.env, *secret_env, *(variable for job in jobs for variable in job.env)}
    refuse_same_names(args, asked.secrets, env)
    refuse_elastic(args, asked.elastic.max, jobs)
    _refuse_log_lines(args, asked.log_lines, sum(job.count for job in jobs))
    success = _success(args, asked.success, asked.counts)
    spec = replace(
        asked,
        jobs=jobs,
        success=success,
        worker_timeout=_worker_timeout(args, asked.worker_timeout, success, asked.counts),
        secret_env=secret_env,
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


def _jobs(args: ArgReader, asked: ClusterSpec) -> tuple[JobSpec, ...]:
    workers = asked.data_service.workers
    if args.has("data_service") and not workers:
        wrong, remedy = "is missing", 'Set their number, such as data_service={"workers": 4}.'
        raise args.error("data_service.workers", wrong, remedy)
    common = JobSpec(
        "", 0, restart=asked.restart, container=asked.container, ec2=asked.ec2, kubernetes=asked.kubernetes
    )
    return jobs_of(args, asked.counts, workers, common)


def _refuse_log_lines(args: ArgReader, lines: int, tasks: int) -> None:
    if lines * tasks > MOST_LOG_LINES:
        wrong = f"{lines} lines of {tasks} tasks are more than the {MOST_LOG_LINES} lines that an update stores in the outputs"
        remedy = f"Use at most {MOST_LOG_LINES // tasks}; `tfdeploy logs` prints any number."
        raise args.error("log_lines", wrong, remedy)


def _without_unused_groups(spec: ClusterSpec, args: ArgReader) -> ClusterSpec:
    job_groups = members_of_groups(JobSpec)
    used = BACKENDS[spec.backend].groups
    set_groups = [name for name in GROUPS if args.args.get(name)]
    for jobs_argument in JOB_MAPPINGS:
        settings = args.mapping(jobs_argument, values=Mapping)
        set_groups += [
            f"{jobs_argument}.{job}.{name}" for job in settings for name in job_groups if settings[job].get(name)
        ]
    unused = tuple(name for name in set_groups if name.rpartition(".")[2] not in used)
    job_fields = [name for name in job_groups if name not in used]
    jobs = tuple(_emptied(job, job_fields) for job in spec.jobs)
    written = replace(spec, jobs=jobs, written_container=spec.container, unused_groups=unused)
    return _emptied(written, [name for name in GROUPS if name not in used])


_Spec = TypeVar("_Spec", ClusterSpec, JobSpec)


def _emptied(spec: _Spec, fields: Sequence[str]) -> _Spec:
    """The specification with the defaults in these fields, which are specifications themselves."""
    return replace(spec, **{name: type(getattr(spec, name))() for name in fields})
