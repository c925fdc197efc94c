"""A value that a preview cannot know, because another resource of the program is still to be created. Pure."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from .backends import BACKEND_GROUPS, BACKENDS, DEFAULT_BACKEND, JOB_MAPPINGS

_FOLDERS = ("train_dir", "data_dir")
_JOB = rf"(({'|'.join(JOB_MAPPINGS)})\.\w+\.)?"
_PART_OF_RUN = re.compile(rf"({_JOB}env|context)\..+|{_JOB}command\[[1-9][0-9]*\]|run_id|train_dir|data_dir")

_IMAGE = re.compile(rf"{_JOB}container\.image")


class Unknown(str):
    """The value that represents all values that only the update knows. It is a text, which a preview shows."""

    what: str
    """The value that is not known: an argument, or a property of the machine or of the account."""

    def __new__(cls, what: str) -> "Unknown":
        """The text of a folder is a URL: a folder that is an Output must be one."""
        text = f"unknown://{what}" if what in _FOLDERS else f"<{what}: known after the update>"
        value = super().__new__(cls, text)
        value.what = what
        return value

    def __getnewargs__(self) -> tuple[str]:
        return (self.what,)


def is_known(*values: object) -> bool:
    """Whether all of these values are known, those in mappings and lists included."""
    return not unknowns(values)


def unknowns(values: object) -> tuple[Unknown, ...]:
    """The unknown values in a value of mappings and lists."""
    if isinstance(values, Unknown):
        return (values,)
    items: Sequence[Any] = ()
    if isinstance(values, Mapping):
        items = list(values.values())
    elif isinstance(values, (list, tuple)):
        items = values
    return tuple(unknown for item in items for unknown in unknowns(item))


def undecided(args: Mapping[str, Any]) -> tuple[Unknown, ...]:
    """The unknown arguments without which a cluster cannot be planned. The others are only part of its run."""
    # Its entry point is the command, and what is built on it has a name that depends on it.
    needs_image = not args.get("command") or bool(args.get("requirements"))
    return tuple(
        unknown
        for unknown in unknowns(args)
        if not _PART_OF_RUN.fullmatch(unknown.what) and (needs_image or not _IMAGE.fullmatch(unknown.what))
    )


def without_unused(args: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments without the unknown ones of groups that the backend does not use."""
    backend = args.get("backend") or DEFAULT_BACKEND
    if backend not in BACKENDS:
        return dict(args)
    unused = {*BACKEND_GROUPS} - {*BACKENDS[backend].groups}

    def pruned(values: Mapping[str, Any]) -> dict[str, Any]:
        return {key: _pruned_group(value) if key in unused else value for key, value in values.items()}

    def pruned_jobs(jobs: Mapping[str, Any]) -> dict[str, Any]:
        return {job: pruned(values) if isinstance(values, Mapping) else values for job, values in jobs.items()}

    own = {key: pruned_jobs(args[key]) for key in JOB_MAPPINGS if isinstance(args.get(key), Mapping)}
    return {**pruned(args), **own}


def _pruned_group(group: Any) -> Any:
    """The known part of an unused group, and its image, which counts in the name of the run wherever it is."""
    if isinstance(group, Mapping) and isinstance(group.get("image"), Unknown):
        return {**_known_part(group), "image": group["image"]}
    return _known_part(group)


def _known_part(value: Any) -> Any:
    if isinstance(value, Unknown):
        return None
    if isinstance(value, Mapping):
        return {key: part for key, item in value.items() if (part := _known_part(item)) is not None}
    if isinstance(value, (list, tuple)):
        return [part for item in value if (part := _known_part(item)) is not None]
    return value
