"""The mounts of containers on any engine: the form `SOURCE:TARGET[:ro]`, and which targets a container may have. Pure."""

from collections.abc import Sequence

from ..errors import SpecError


def split_mount(where: str, text: str, remedy: str) -> tuple[str, str, bool]:
    """Source and target of a text, and whether it is only read.

    Raises:
        SpecError: the text does not have the form.
    """
    source, _, rest = text.partition(":")
    target, _, mode = rest.partition(":")
    if not source or mode not in ("", "ro", "rw"):
        raise SpecError(where, f"{text!r} is not a valid mount", remedy)
    refuse_relative(where, text, target, remedy)
    return source, target, mode == "ro"


def refuse_relative(where: str, text: str, target: str, remedy: str) -> None:
    """A target is a folder other than `/`."""
    if not target.startswith("/") or not target.strip("/"):
        raise SpecError(where, f"the target in {text!r} is not an absolute folder", remedy)


def refuse_targets(where: str, targets: Sequence[str], reserved: Sequence[str]) -> None:
    """Two mounts must not have the same target, and none may hide a folder that tfdeploy needs."""
    folders = [target.rstrip("/") for target in targets]
    for target, folder in zip(targets, folders, strict=True):
        if folders.count(folder) > 1:
            raise SpecError(where, f"{folder} is the target of two mounts", "Change the target of one of them.")
        if any(f"{folder}/".startswith(f"{own}/") or f"{own}/".startswith(f"{folder}/") for own in reserved):
            raise SpecError(where, f"{target} is reserved for tfdeploy", "Choose another target.")
