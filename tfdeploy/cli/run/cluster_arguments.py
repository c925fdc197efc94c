"""The options of `tfdeploy run` as arguments of a cluster, and the exit code for its result. Pure."""

import re
from argparse import Namespace
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ...agent.control.end_policy import may_fail
from ...agent.model.run_state import DEAD, SUCCEEDED, RunState
from ...agent.model.task_command import FLAGS
from ...errors import SpecError
from ...spec.backends import BackendEntry, backend_entry, is_this_computer

CLUSTER = "run"
PLACEHOLDERS = (*FLAGS, "chief_hosts", "hostname", "address", "data_dir", "train_dir", "context")

_WHOLE = re.compile(r"(?:--?[\w-]+=)?\{([a-z_]+)\}")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def arguments(options: Namespace, user: str = "") -> dict[str, Any]:
    """The arguments of the cluster for these options, where `code` is absolute; those of `--set` are left to the stack's configuration.

    `user` is the caller as `UID:GID`: the user of containers on a Docker engine. On EC2's machines the caller has no number.

    Raises:
        SpecError: the options are not valid together.
    """
    backend = backend_entry(options.on)
    _check(options, backend)
    jobs = {"worker": _job(options, "worker"), **({"ps": _job(options, "ps")} if options.ps else {})}
    container = {
        "image": options.image,
        "user": user if backend.has_users_of_this_computer else "",
        "volumes": options.volume if backend.runs_containers else [],
    }
    values = {
        "command": options.command,
        "workers": options.workers,
        "ps": options.ps,
        "jobs": {name: job for name, job in jobs.items() if job},
        "backend": options.on,
        "code": options.code,
        "container": {name: value for name, value in container.items() if value},
        "env": pairs("--env", options.env),
        "restart": {"maximum": 0},
        "wait": "0",
    }
    return _without({name: value for name, value in values.items() if value}, settings(options.settings))


def settings(texts: Sequence[str]) -> dict[str, str]:
    """The arguments of `--set NAME=VALUE`, for `pulumi up --config-path`; `ec2.instance_type=…` is a member of the group `ec2`.

    Raises:
        SpecError: one is not of that form, or a name is a group and a value.
    """
    values = pairs("--set", texts)
    for name in values:
        group, _, member = name.rpartition(".")
        if group in values:
            raise SpecError("--set", f"{group} has a value and a member {member}", "Set one of them.")
    return values


def _without(arguments: Mapping[str, Any], names: Collection[str], group: str = "") -> dict[str, Any]:
    """The arguments without those that `--set` overrides: the program's value would otherwise win."""
    remaining = {name: value for name, value in arguments.items() if f"{group}{name}" not in names}
    return {
        name: _without(value, names, f"{group}{name}.") if isinstance(value, Mapping) else value
        for name, value in remaining.items()
    }


def pairs(option: str, texts: Sequence[str]) -> dict[str, str]:
    """Texts of the form NAME=VALUE.

    Raises:
        SpecError: one is not of that form.
    """
    for text in texts:
        if not text.partition("=")[0] or "=" not in text:
            raise SpecError(option, f"{text!r} has no value", "It takes NAME=VALUE.")
    return {name: value for name, _, value in (text.partition("=") for text in texts)}


def exit_code(run: RunState | None) -> int:
    """0 for success; else the exit code of the first failed task (128 + n for a signal), except TensorBoard and those that may
    fail; 1 if no task failed."""
    if run is None or run.result is None:
        return 1
    if run.result.state == SUCCEEDED:
        return 0
    failed = [task for task in run.training_tasks if task.state in DEAD and not may_fail(run, task)]
    first = min(failed, key=lambda task: task.ended, default=None)
    return first.exit_code or 1 if first else 1


def _check(options: Namespace, backend: BackendEntry) -> None:
    for part in options.command:
        match = _WHOLE.fullmatch(part)
        if match and match[1] not in PLACEHOLDERS:
            placeholders = " ".join(f"{{{name}}}" for name in PLACEHOLDERS)
            raise SpecError("command", f"{{{match[1]}}} is not a placeholder", f"There are: {placeholders}.")
    if options.workers < 1:
        raise SpecError("--workers", f"is {options.workers}", "At least one worker runs the command.")
    if options.in_terminal and not is_this_computer(options.on):
        wrong = f"cannot be with --on {options.on}: a worker in this terminal is out of the other tasks' reach there"
        raise SpecError("--here", wrong, "Leave one of them out.")
    if not backend.runs_containers:
        _check_no_containers(options)


def _check_no_containers(options: Namespace) -> None:
    if options.image:
        raise SpecError("--image", "is for containers", "Give --on docker or --on ec2 too.")
    for volume in options.volume:
        source, target = (*volume.split(":"), "")[:2]
        if source != target:
            wrong = f"{volume!r} cannot be had without containers: tasks see this machine's folders where they are"
            raise SpecError("--volume", wrong, "Name the same folder twice, or give --on docker.")


def _job(options: Namespace, job: str) -> dict[str, Any]:
    resources = {name: getattr(options, f"{job}_{name}") for name in ("cpus", "memory", "gpus")}
    if _NUMBER.fullmatch(resources["memory"]):  # without a unit it means megabytes, as in TFMesos
        resources["memory"] += "MiB"
    return {name: value for name, value in resources.items() if value}
