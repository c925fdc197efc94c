"""What was asked for: a cluster as plain values, checked at birth. Pure; knows neither Pulumi nor the disk."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .agent.states import GPU_WORKER, TENSORBOARD, WORKERS
from .asked import Asked
from .containers import KEYS as CONTAINER_KEYS
from .containers import ContainerSpec, EngineSpec, container_spec, engine_spec
from .errors import SpecError
from .instances import KEYS as INSTANCE_KEYS
from .instances import FleetSpec, InstanceSpec, fleet_spec, instance_spec, steady
from .restarts import Restart, restarts
from .surroundings import context, environment, refuse_long, secrets

JOBS = ("chief", "ps", *WORKERS, "evaluator", TENSORBOARD)
"""The jobs of a cluster in the order in which tables list them."""

_STEADY = ("ps",)
"""Jobs that are on spot instances only by a word of their own: the variables go with a parameter server."""

_SERVER = ("python", "{agent}", "serve")

SUCCESS_RULES = ("chief", "worker 0", "all workers")
"""Whose success is the job's success."""

LONGEST_NAME = 40

MOST_TASKS = 1_000

_NAME = re.compile(r"[A-Za-z]([A-Za-z0-9-]*[A-Za-z0-9])?")
_RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


@dataclass(frozen=True)
class JobSpec:
    """One job: how many tasks, and what each of them gets."""

    name: str
    count: int
    cpus: float = 0.0
    memory: int = 0
    gpus: int = 0
    port: int = 0
    env: Mapping[str, str] = field(default_factory=dict)
    restart: Restart = field(default_factory=Restart)
    container: ContainerSpec = field(default_factory=ContainerSpec)
    instance: InstanceSpec = field(default_factory=InstanceSpec)
    command: tuple[str, ...] = ()
    """Its own; none for the cluster's."""

    @property
    def stem(self) -> str:
        """What the names of its hosts and machines begin with: RFC 1123 knows no underscore in them."""
        return self.name.replace("_", "-")


@dataclass(frozen=True)
class ClusterSpec:
    """One cluster as the user asked for it; see `arguments.TensorFlowClusterArgs` for the meaning of each field."""

    name: str
    command: tuple[str, ...]
    jobs: tuple[JobSpec, ...]
    success: str
    code: str = ""
    serve: bool = False
    master: bool = False
    requirements: tuple[str, ...] = ()
    metrics: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()
    data_dir: str = ""
    train_dir: str = ""
    context: str = "{}"
    grace: float = 10.0
    wait: float = 600.0
    start_timeout: float = 300.0
    run_id: str = ""
    resume_from: str = ""
    log_lines: int = 20
    backend: str = "local"
    image: str = ""
    engine: EngineSpec = field(default_factory=EngineSpec)
    fleet: FleetSpec = field(default_factory=FleetSpec)

    @property
    def crew(self) -> tuple[JobSpec, ...]:
        """The jobs that the cluster is for: all but the one that looks on."""
        return tuple(job for job in self.jobs if job.name != TENSORBOARD)

    def job(self, name: str) -> JobSpec | None:
        """The job of that name, if the cluster has it."""
        return next((job for job in self.jobs if job.name == name), None)


def cluster_spec(name: str, args: Mapping[str, Any]) -> ClusterSpec:
    """The spec that these arguments ask for.

    Raises:
        SpecError: an argument cannot be what the user wants.
    """
    ask = Asked(name, args)
    if not _NAME.fullmatch(name) or len(name) > LONGEST_NAME:
        remedy = f"A name begins with a letter and has at most {LONGEST_NAME} letters, digits and hyphens."
        raise SpecError("TensorFlowCluster", f"the name {name!r} cannot be a host's or a container's", remedy)
    serve = ask.flag("serve") and not ask.texts("command")
    jobs = _jobs(ask)
    env = environment(ask)
    return ClusterSpec(
        name=name,
        command=_command(ask),
        jobs=jobs,
        success=_success(ask, jobs),
        code=ask.text("code"),
        serve=serve,
        master=ask.flag("master"),
        requirements=_requirements(ask),
        metrics=_metrics(ask),
        env=env,
        secrets=secrets(ask, {*env, *(variable for job in jobs for variable in job.env)}),
        data_dir=ask.text("data_dir"),
        train_dir=ask.text("train_dir"),
        context=context(ask),
        grace=ask.duration("grace", 10.0),
        wait=ask.duration("wait", 600.0),
        start_timeout=ask.duration("start_timeout", 300.0),
        run_id=ask.text("run_id"),
        resume_from=_resume_from(ask),
        log_lines=ask.whole("log_lines", 20, 0, 10_000),
        backend=ask.text("backend") or "local",
        image=ask.text("image"),
        engine=engine_spec(ask),
        fleet=fleet_spec(ask),
    )


def _command(ask: Asked) -> tuple[str, ...]:
    command, serve = ask.texts("command"), ask.flag("serve")
    if serve and command and not ask.args.get("chief"):
        remedy = "With serve=True tfdeploy brings the server: give one, or chief=1, whose command it is."
        raise ask.refuse("command", "is given together with serve", remedy)
    if serve and not command:
        return _SERVER
    if not command and (ask.text("backend") or "local") != "local":
        return ()
    if not command or not command[0].strip():
        raise ask.refuse("command", "is missing", 'Give the program and its arguments, such as ["python", "train.py"].')
    refuse_long(ask, "command", "".join(command))
    return command


_JOB_KEYS = ("cpus", "memory", "gpus", "port", "env", "restart", *CONTAINER_KEYS, *INSTANCE_KEYS)
_TENSORBOARD_KEYS = tuple(key for key in _JOB_KEYS if key not in ("gpus", *INSTANCE_KEYS))


def _jobs(ask: Asked) -> tuple[JobSpec, ...]:
    serve = ask.flag("serve")
    counts = {
        "chief": ask.whole("chief", 0, 0, 1),
        "ps": ask.whole("ps", 0, 0, MOST_TASKS),
        "worker": ask.whole("workers", 0, 0, MOST_TASKS),
        GPU_WORKER: ask.whole("gpu_workers", 0, 0, MOST_TASKS),
        "evaluator": ask.whole("evaluator", 0, 0, 1),
    }
    own = ask.mapping("jobs", values=Mapping)
    looks_on = ask.flag(TENSORBOARD)
    for name in own:
        if not counts.get(name) and not (looks_on and name == TENSORBOARD):
            has = ", ".join([*filter(counts.get, counts), *([TENSORBOARD] if looks_on else [])]) or "none"
            raise ask.refuse("jobs", f"{name!r} is no job of this cluster", f"Its jobs are: {has}.")
    if not any(counts.values()):
        raise ask.refuse(
            "workers", "and ps, chief, evaluator are all 0: there is no task at all", "Give workers=1 or more."
        )
    if not serve and not any(counts[name] for name in ("chief", *WORKERS)):
        alone = " and ".join(name for name in counts if counts[name])
        raise ask.refuse("workers", f"is 0: {alone} alone trains nothing", "Give workers or chief, or serve=True.")
    if ask.flag("master") and not counts["chief"]:
        raise ask.refuse("master", "is another name for the chief, and the cluster has none", "Give chief=1.")
    common = JobSpec(
        "",
        0,
        restart=restarts(ask, Restart()),
        container=container_spec(ask, ContainerSpec()),
        instance=instance_spec(ask, InstanceSpec()),
    )
    crew = [_job(ask, name, counts[name], own.get(name, {}), common) for name in counts if counts[name]]
    if serve and ask.texts("command"):
        crew = [job if job.name in ("chief", "evaluator") else replace(job, command=_SERVER) for job in crew]
    return (*crew, *([_tensorboard(ask, own.get(TENSORBOARD, {}), common)] if looks_on else []))


def _tensorboard(ask: Asked, own: Mapping[str, Any], common: JobSpec) -> JobSpec:
    """It has no machine, and no GPU, of its own, and stands where the cluster's constraints are not about it."""
    Asked(f"{ask.where}: jobs: {TENSORBOARD}", own).only("its settings", _TENSORBOARD_KEYS)
    anywhere = replace(common, container=replace(common.container, placement=()), instance=InstanceSpec())
    return replace(_job(ask, TENSORBOARD, 1, own, anywhere), command=("python3", "{agent}", TENSORBOARD))


def _job(ask: Asked, name: str, count: int, own: Mapping[str, Any], common: JobSpec) -> JobSpec:
    asked = Asked(f"{ask.where}: jobs: {name}", own)
    asked.only("its settings", _JOB_KEYS)
    port = asked.whole("port", 0, 1, 65535)
    if port + count - 1 > 65535:
        raise asked.refuse("port", f"{port} and the {count - 1} after it go beyond 65535", "Give a lower one.")
    return JobSpec(
        name=name,
        count=count,
        cpus=asked.number("cpus"),
        memory=asked.bytes("memory"),
        gpus=asked.whole("gpus", int(name == GPU_WORKER), 0, 1_000),
        port=port,
        env=environment(asked),
        restart=restarts(asked, common.restart),
        container=container_spec(asked, common.container),
        instance=instance_spec(asked, steady(common.instance) if name in _STEADY else common.instance),
    )


def _success(ask: Asked, jobs: Sequence[JobSpec]) -> str:
    present = {"worker" if job.name in WORKERS else job.name for job in jobs}
    rule = ask.text("success")
    if not rule:
        return "chief" if "chief" in present else "all workers"
    needs = {"chief": "chief", "worker 0": "worker", "all workers": "worker"}
    if rule not in needs:
        raise ask.refuse("success", f"{rule!r} is no rule", f"It takes one of: {', '.join(SUCCESS_RULES)}.")
    if ask.flag("serve"):
        raise ask.refuse("success", "is given together with serve", "Tasks that serve never end by themselves.")
    if needs[rule] not in present:
        has = ", ".join(sorted(present))
        raise ask.refuse(
            "success", f"{rule!r} needs a {needs[rule]}, and the cluster has only {has}", "Choose another rule."
        )
    return rule


def _resume_from(ask: Asked) -> str:
    run = ask.text("resume_from")
    if run and not _RUN.fullmatch(run):
        raise ask.refuse(
            "resume_from", f"{run!r} is no run", "It takes the id of an earlier run, such as 0123456789ab."
        )
    return run


def _requirements(ask: Asked) -> tuple[str, ...]:
    lines = ask.texts("requirements")
    for line in lines:
        if not line.strip() or line.strip().startswith(("-", "#")) or "\n" in line:
            raise ask.refuse("requirements", f"{line!r} names no package", 'It takes lines such as "pandas==2.2.3".')
    return lines


def _metrics(ask: Asked) -> dict[str, str]:
    patterns = ask.mapping("metrics")
    for name, pattern in patterns.items():
        try:
            re.compile(pattern)
        except (re.error, OverflowError, RecursionError) as error:
            where = f"metrics: {name}"
            raise ask.refuse(where, f"{pattern!r} is no regular expression ({error})", "Mend it.") from None
    return patterns
