"""What was asked for: a cluster as plain values, checked at birth. Pure; knows neither Pulumi nor the disk."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .errors import SpecError
from .quantities import DURATION_FORM, SIZE_FORM, seconds, size

JOBS = ("chief", "ps", "worker", "evaluator")
"""The jobs of a cluster in the order in which tables list them."""

SUCCESS_RULES = ("chief", "worker 0", "all workers")
"""Whose success is the job's success."""

LONGEST_NAME = 40
LONGEST_COMMAND = 100_000
MOST_TASKS = 1_000

_NAME = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?", re.IGNORECASE)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_EXIT_CODES = re.compile(r"any|signal|oom|([0-9]{1,3})(-([0-9]{1,3}))?")
_RESERVED = ("TF_CONFIG", "CUDA_VISIBLE_DEVICES")


@dataclass(frozen=True)
class Restart:
    """When a task whose program ended badly is started again."""

    maximum: int = 3
    """How often at most, in one run."""
    backoff: float = 1.0
    """Seconds before the first restart; doubled with each one after it."""
    on: tuple[str, ...] = ("signal",)
    """After which ends: `any`, `signal`, `oom`, an exit code (`3`) or a range of them (`64-78`)."""


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


@dataclass(frozen=True)
class ClusterSpec:
    """One cluster as the user asked for it; see `arguments.TensorFlowClusterArgs` for the meaning of each field."""

    name: str
    command: tuple[str, ...]
    jobs: tuple[JobSpec, ...]
    success: str
    code: str = ""
    serve: bool = False
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
    serve = ask.flag("serve")
    jobs = _jobs(ask)
    env = _environment(ask)
    return ClusterSpec(
        name=name,
        command=_command(ask, serve),
        jobs=jobs,
        success=_success(ask, jobs, serve),
        code=ask.text("code"),
        serve=serve,
        requirements=_requirements(ask),
        metrics=_metrics(ask),
        env=env,
        secrets=_secrets(ask, env),
        data_dir=ask.text("data_dir"),
        train_dir=ask.text("train_dir"),
        context=_context(ask),
        grace=ask.duration("grace", 10.0),
        wait=ask.duration("wait", 600.0),
        start_timeout=ask.duration("start_timeout", 300.0),
        run_id=ask.text("run_id"),
        resume_from=ask.text("resume_from"),
        log_lines=ask.whole("log_lines", 20, 0, 10_000),
        backend=ask.text("backend") or "local",
    )


class Asked:
    """The arguments of one cluster, or of one job in it, read one by one; each reader refuses what it cannot be."""

    def __init__(self, where: str, args: Mapping[str, Any]) -> None:
        self.where = where
        self.args = args

    def refuse(self, key: str, wrong: str, remedy: str) -> SpecError:
        """The error to raise."""
        return SpecError(f"{self.where}: {key}", wrong, remedy)

    def _get(self, key: str, kind: type | tuple[type, ...], words: str) -> Any:
        value = self.args.get(key)
        wrong_bool = isinstance(value, bool) and kind is not bool
        if value is not None and (wrong_bool or not isinstance(value, kind)):
            raise self.refuse(key, f"is {value!r}, of type {type(value).__name__}", f"It takes {words}.")
        return value

    def text(self, key: str) -> str:
        """A text; empty when not given."""
        value: str = self._get(key, str, "a text") or ""
        if "\0" in value:
            raise self.refuse(key, "has a NUL character in it", "Leave it out.")
        return value

    def flag(self, key: str) -> bool:
        """True or False; False when not given."""
        return bool(self._get(key, bool, "True or False"))

    def whole(self, key: str, default: int, least: int, most: int) -> int:
        """A whole number within bounds."""
        value = self._get(key, int, "a whole number")
        if value is None:
            return default
        if not least <= value <= most:
            raise self.refuse(key, f"is {value}", f"It takes a whole number from {least} to {most}.")
        return int(value)

    def number(self, key: str) -> float:
        """A number, 0 or more; 0 when not given."""
        value = self._get(key, (int, float), "a number") or 0
        if not 0 <= value < 1e6:
            raise self.refuse(key, f"is {value}", "It takes a number from 0 on.")
        return float(value)

    def duration(self, key: str, default: float) -> float:
        """A duration in seconds, from a number or a text such as `10m`."""
        value = self._get(key, (str, int, float), DURATION_FORM)
        try:
            found = default if value is None else seconds(str(value))
        except ValueError:
            raise self.refuse(key, f"{value!r} is no duration", f"It takes {DURATION_FORM}.") from None
        return found

    def bytes(self, key: str) -> int:
        """A size in bytes, from a number or a text such as `2GiB`; 0 when not given."""
        value = self._get(key, (str, int), SIZE_FORM)
        try:
            return 0 if value is None else size(str(value))
        except ValueError:
            raise self.refuse(key, f"{value!r} is no size", f"It takes {SIZE_FORM}.") from None

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts."""
        value = self._get(key, (list, tuple), "a list of texts") or ()
        for item in value:
            if not isinstance(item, str) or "\0" in item:
                raise self.refuse(key, f"has {item!r} in it", "It takes a list of texts.")
        return tuple(value)

    def mapping(self, key: str, names: re.Pattern[str] | None = None, values: type = str) -> dict[str, Any]:
        """Names to values of one type."""
        value = self._get(key, Mapping, "names and their values") or {}
        for name, item in value.items():
            if not isinstance(name, str) or (names and not names.fullmatch(name)):
                raise self.refuse(
                    key, f"has the name {name!r}", f"Names look like {names.pattern if names else 'text'}."
                )
            if not isinstance(item, values) or (isinstance(item, str) and "\0" in item):
                raise self.refuse(f"{key}: {name}", f"is {item!r}", f"It takes a {values.__name__}.")
        return dict(value)

    def only(self, key: str, known: Sequence[str]) -> None:
        """Refuse names that nobody reads."""
        for name in self.args:
            if name not in known:
                raise self.refuse(key, f"{name!r} is unknown", f"It knows {', '.join(known)}.")


def _command(ask: Asked, serve: bool) -> tuple[str, ...]:
    command = ask.texts("command")
    if serve and command:
        raise ask.refuse(
            "command", "is given together with serve", "With serve=True tfdeploy brings the server: give one."
        )
    if serve:
        return ("python", "{agent}", "serve")
    if not command or not command[0].strip():
        raise ask.refuse("command", "is missing", 'Give the program and its arguments, such as ["python", "train.py"].')
    if sum(map(len, command)) > LONGEST_COMMAND:
        raise ask.refuse(
            "command", f"has over {LONGEST_COMMAND} characters", "Ship a file with `code`, or use `context`."
        )
    return command


_JOB_KEYS = ("cpus", "memory", "gpus", "port", "env", "restart")


def _jobs(ask: Asked) -> tuple[JobSpec, ...]:
    serve = ask.flag("serve")
    counts = {
        "chief": ask.whole("chief", 0, 0, 1),
        "ps": ask.whole("ps", 0, 0, MOST_TASKS),
        "worker": ask.whole("workers", 0, 0, MOST_TASKS),
        "evaluator": ask.whole("evaluator", 0, 0, 1),
    }
    own = ask.mapping("jobs", values=Mapping)
    for name in own:
        if not counts.get(name):
            has = ", ".join(job for job in JOBS if counts[job]) or "none"
            raise ask.refuse("jobs", f"{name!r} is no job of this cluster", f"Its jobs are: {has}.")
    if not any(counts.values()):
        raise ask.refuse(
            "workers", "and ps, chief, evaluator are all 0: there is no task at all", "Give workers=1 or more."
        )
    if not serve and not counts["chief"] and not counts["worker"]:
        alone = " and ".join(name for name in JOBS if counts[name])
        raise ask.refuse("workers", f"is 0: {alone} alone trains nothing", "Give workers or chief, or serve=True.")
    common = _restart(ask, Restart())
    return tuple(_job(ask, name, counts[name], own.get(name, {}), common) for name in JOBS if counts[name])


def _job(ask: Asked, name: str, count: int, own: Mapping[str, Any], common: Restart) -> JobSpec:
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
        gpus=asked.whole("gpus", 0, 0, 1_000),
        port=port,
        env=_environment(asked),
        restart=_restart(asked, common),
    )


def _restart(ask: Asked, default: Restart) -> Restart:
    given = ask.mapping("restart", values=object)
    policy = Asked(f"{ask.where}: restart", given)
    policy.only("its settings", ("maximum", "backoff", "on"))
    on = policy.texts("on") or default.on
    for kind in on:
        match = _EXIT_CODES.fullmatch(kind)
        if match is None or int(match.group(1) or 0) > int(match.group(3) or match.group(1) or 0):
            raise policy.refuse("on", f"{kind!r} is no way to end", 'It takes "any", "signal", "oom", "3" or "64-78".')
    return Restart(
        policy.whole("maximum", default.maximum, 0, 1_000_000), policy.duration("backoff", default.backoff), on
    )


def _success(ask: Asked, jobs: Sequence[JobSpec], serve: bool) -> str:
    present = {job.name for job in jobs}
    rule = ask.text("success")
    if not rule:
        return "chief" if "chief" in present else "all workers"
    needs = {"chief": "chief", "worker 0": "worker", "all workers": "worker"}
    if rule not in needs:
        raise ask.refuse("success", f"{rule!r} is no rule", f"It takes one of: {', '.join(SUCCESS_RULES)}.")
    if serve:
        raise ask.refuse("success", "is given together with serve", "Tasks that only serve never end by themselves.")
    if needs[rule] not in present:
        has = ", ".join(sorted(present))
        raise ask.refuse(
            "success", f"{rule!r} needs a {needs[rule]}, and the cluster has only {has}", "Choose another rule."
        )
    return rule


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
        except re.error as error:
            where = f"metrics: {name}"
            raise ask.refuse(where, f"{pattern!r} is no regular expression ({error})", "Mend it.") from None
    return patterns


def _environment(ask: Asked) -> dict[str, str]:
    env = ask.mapping("env", _VARIABLE)
    for name in env:
        if name in _RESERVED or name.startswith("TFDEPLOY_"):
            raise ask.refuse("env", f"{name} is set by tfdeploy itself", "Choose another name.")
    return env


def _secrets(ask: Asked, env: Mapping[str, str]) -> tuple[str, ...]:
    names = tuple(ask.mapping("secrets", _SECRET, object))
    for name in names:
        if name in env or name in _RESERVED:
            raise ask.refuse("secrets", f"{name} stands in env too, or is tfdeploy's own", "Choose another name.")
    return names


def _context(ask: Asked) -> str:
    value = ask.mapping("context", values=object)
    try:
        return json.dumps(value, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ask.refuse(
            "context", f"cannot be written as JSON ({error})", "Use texts, numbers, lists, dicts."
        ) from None
