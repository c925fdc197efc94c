"""Which checkpoints are uploaded while a run trains, and when. Pure.

TensorFlow writes the shards of a checkpoint, then its index, and the file `checkpoint` last: what that names is whole. A program that
writes each checkpoint under the same name replaces one file after another: it is waited for until nothing changes.
"""

import re
from typing import Dict, List, Sequence, Union

from .artifacts import Artifact
from .stored_artifact import CHECKPOINT, LeftOut

LOOK_SECONDS = 2.0
"""The shortest time between two looks at `train_dir`, unless uploads may follow each other faster."""

_LOOK_RATIO = 100.0
"""A look takes at most one part in so many of the time."""

_SHARD = re.compile(r"\.data-[0-9]+-of-([0-9]+)")

Found = Union[Artifact, LeftOut]


def whole_checkpoints(artifacts: Sequence[Artifact]) -> List[Artifact]:
    """The checkpoints that a file `checkpoint` names, with all of their shards: other machines may have some."""
    return [
        item
        for item in artifacts
        if item.kind == CHECKPOINT and item.files[-1].text is not None and _has_all_shards(item)
    ]


def _has_all_shards(checkpoint: Artifact) -> bool:
    matches = [_SHARD.fullmatch(file.name[len(checkpoint.name) :]) for file in checkpoint.files]
    counts = [int(match[1]) for match in matches if match]
    return bool(counts) and all(count == len(counts) for count in counts)


class CheckpointWatch:
    """What was found at the last look, and what was uploaded last."""

    def __init__(self, interval: float) -> None:
        self._interval = interval
        self._seen: Dict[str, Found] = {}
        self._sent: Sequence[Found] = []
        self._due = 0.0

    def is_due(self, found: Sequence[Found], now: float) -> bool:
        """Whether this is uploaded now: it is not what was uploaded last, that was long enough ago, and nothing of it has changed
        under the same name since the last look."""
        is_written = any(self._seen.get(item.name, item) != item for item in found)
        self._seen = {item.name: item for item in found}
        return found != self._sent and not is_written and now >= self._due

    def note_sent(self, found: Sequence[Found], begin: float) -> None:
        """This was uploaded, from `begin` on."""
        self._sent, self._due = found, begin + self._interval

    def pause(self, seconds: float) -> float:
        """The seconds until the next look, after one that took so long."""
        return min(max(LOOK_SECONDS, _LOOK_RATIO * seconds), self._interval)
