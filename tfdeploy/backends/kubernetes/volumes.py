"""The volumes of pods: those that the user names, `data_dir` and `train_dir`. Pure."""

from collections.abc import Sequence

from ...plan.plan import Plan
from ...spec.cluster import ClusterSpec
from ..mounts import refuse_targets, split_mount
from .pods import RESERVED_FOLDERS, PodMount

_REMEDY = "Use CLAIM:/FOLDER[:ro] for a PersistentVolumeClaim of the namespace, or /FOLDER:/FOLDER[:ro] for a folder of the nodes."


def mounts(spec: ClusterSpec, plan: Plan, volumes: Sequence[str], train_claim: str) -> tuple[PodMount, ...]:
    """The volumes of a job's pods. `data_dir` and `train_dir` are folders of the nodes, unless a volume has them.

    Raises:
        SpecError: a volume is not valid, or two have the same target.
    """
    where = f"{spec.name}: container.volumes"
    own = [PodMount(*split_mount(where, text, _REMEDY)) for text in volumes]
    data_dir, train_dir = plan.run.data_dir, plan.run.train_dir
    shared = [
        *([PodMount(data_dir, data_dir, True)] if is_folder(data_dir) and not covers(own, data_dir) else []),
        *_train_mount(spec, train_dir, train_claim, own),
    ]
    refuse_targets(where, [mount.target for mount in (*own, *shared)], RESERVED_FOLDERS)
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
