"""When a checkpoint is uploaded while the run trains."""

import pytest

from tfdeploy.agent.launch.artifact_sender import LOOK_SECONDS, CheckpointWatch
from tfdeploy.agent.record.artifact_selection import Artifact, FileInfo, choose, whole_checkpoints

PATTERNS = ["**/checkpoint", "**/*.index", "**/*.keras"]


def found(names: dict[str, int], text: str = "") -> list[Artifact]:
    """What is uploaded of these files, each with the time of its last change; `checkpoint` names the step `text`."""
    files = {name: FileInfo(1, changed) for name, changed in names.items()}
    return whole_checkpoints(choose(files, PATTERNS, lambda _: f'model_checkpoint_path: "/other/{text}"')[0])


def checkpoint(step: int, at: int = 0) -> dict[str, int]:
    return {f"c-{step}.index": at, f"c-{step}.data-00000-of-00001": at}


def test_only_what_the_file_checkpoint_names_is_whole() -> None:
    files = {**checkpoint(1), **checkpoint(2), "k.keras": 1}
    assert found(files) == []
    assert [item.name for item in found({**files, "checkpoint": 1}, "c-1")] == ["c-1"]
    assert found({**files, "checkpoint": 1}, "c-3") == []


@pytest.mark.parametrize(("shards", "is_whole"), [((0, 1), True), ((0,), False), ((1,), False), ((), False)])
def test_a_checkpoint_without_one_of_its_shards_is_not_whole(shards: tuple[int, ...], is_whole: bool) -> None:
    names = {"c-1.index": 1, "checkpoint": 1, **{f"c-1.data-{shard:05}-of-00002": 1 for shard in shards}}
    assert bool(found(names, "c-1")) == is_whole


def test_a_newer_checkpoint_is_due_when_the_interval_is_over() -> None:
    watch = CheckpointWatch(300.0)
    assert not watch.is_due([], 0.0)
    first, second = (found({**checkpoint(step), "checkpoint": step}, f"c-{step}") for step in (1, 2))
    assert watch.is_due(first, 10.0), "the first one at once"
    assert watch.is_due(first, 12.0), "until it is uploaded"
    watch.note_sent(first, 12.0)
    assert not watch.is_due(first, 400.0), "it has not changed"
    watch.note_sent(first, 400.0)
    assert not watch.is_due(second, 699.0)
    assert watch.is_due(second, 700.0)


def test_a_checkpoint_that_is_written_under_the_same_name_is_due_when_it_rests() -> None:
    watch = CheckpointWatch(1.0)
    versions = [
        found({**checkpoint(1, data), "c-1.index": index, "checkpoint": 1}, "c-1")
        for data, index in ((1, 1), (2, 1), (2, 2), (2, 2))
    ]
    assert [watch.is_due(version, now) for now, version in enumerate(versions)] == [True, False, False, True]


def test_looks_take_a_small_part_of_the_time_and_are_not_rarer_than_uploads() -> None:
    watch = CheckpointWatch(300.0)
    assert [watch.pause(seconds) for seconds in (0.0, 0.1, 10.0)] == [LOOK_SECONDS, 10.0, 300.0]
    assert CheckpointWatch(0.5).pause(0.0) == 0.5
