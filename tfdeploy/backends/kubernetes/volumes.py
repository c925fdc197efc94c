"""The volumes of pods: those that the user names, `data_dir` and `train_dir`. Pure."""

from collections.abc import Sequence

from ...errors import SpecError
from ...plan.plan import Plan
from ...spec.cluster import ClusterSpec
from .pods import RESERVED_FOLDERS, PodMount

_REMEDY = "Use CLAIM:/FOLDER[:ro] for a PersistentVolumeClaim of the namespace, or /FOLDER:/FOLDER[:ro] for a folder of the nodes."


def parse_mount(where: str, text: str) -> PodMount:
    """The volume that a text describes.

    Raises:
        SpecError: the text does not have the form.
    """
    source, _, rest = text.partition(":")
    target, _, mode = rest.partition(":")
    if (
        not source
        or "," in source
        or not target.startswith("/")
        or not target.strip("/")
        or mode not in ("", "ro", "rw")
    ):
        raise SpecError(where, f"{text!r} is not a volume of a pod", _REMEDY)
    return PodMount(source, target, mode == "ro")


def mounts(spec: ClusterSpec, plan: Plan, volumes: Sequence[str], train_claim: str) -> tuple[PodMount, ...]:
    """The volumes of a job's pods. `data_dir` and `train_dir` are folders of the nodes, unless a volume has them.

    Raises:
        SpecError: a volume is not valid, or two have the same target.
    """
    where = f"{spec.name}: container.volumes"
    own = [parse_mount(where, text) for text in volumes]
    data_dir, train_dir = plan.run.data_dir, plan.run.train_dir
    shared = [
        *([PodMount(data_dir, data_dir, True)] if is_folder(data_dir) and not covers(own, data_dir) else []),
        *_train_mount(spec, train_dir, train_claim, own),
    ]
    targets = [mount.target.rstrip("/") for mount in (*own, *shared)]
    for target in targets:
        if targets.count(target) > 1:
            raise SpecError(where, f"{target} is the target of two volumes", "Change the target of one of them.")
        if any(
            f"{target}/".startswith(f"{folder}/") or f"{folder}/".startswith(f"{target}/")
            for folder in RESERVED_FOLDERS
        ):
            raise SpecError(where, f"{target} is reserved for tfdeploy", "Choose another target.")
    return (*shared, *own)


def _train_mount(spec: ClusterSpec, train_dir: str, train_claim: str, own: Sequence[PodMount]) -> list[PodMount]:
    if not is_folder(train_dir) or covers(own, train_dir):
        return []
    return [PodMount(train_dir if spec.train_dir else train_claim, train_dir)]


def is_folder(text: str) -> bool:
    """Whether this is a folder, and not a URL."""
    return text.startswith("/")


def covers(mounts: Sequence[PodMount], folder: str) -> bool:
    """Whether one of these volumes has the folder."""
    return any(f"{folder.rstrip('/')}/".startswith(f"{mount.target.rstrip('/')}/") for mount in mounts)
