"""What of `train_dir` is an artifact, and what the file `checkpoint` names."""

from pathlib import Path

import pytest

from tfdeploy.agent.launch import artifact_sender
from tfdeploy.agent.model.run_spec import DEFAULT_PATTERNS
from tfdeploy.agent.record import stored_artifact
from tfdeploy.agent.record.artifact_selection import (
    Artifact,
    ArtifactFile,
    FileInfo,
    choose,
    limited,
    matches,
    newest_checkpoint,
    relative_checkpoint,
)
from tfdeploy.agent.record.stored_artifact import BAD_NAME, LIMIT, NO_MATCH, OUTSIDE, LeftOut


def named(path: str) -> str:
    return f'model_checkpoint_path: "{path}"\nall_model_checkpoint_paths: "{path}"\n'


def chosen(
    names: list[str], *patterns: str, text: str = "", outside: str = ""
) -> tuple[dict[tuple[str, str], list[str]], list[LeftOut]]:
    """Kind and name to the files of each artifact."""
    files = {name: FileInfo(10, number, name == outside) for number, name in enumerate(names)}
    found, left_out = choose(files, patterns or DEFAULT_PATTERNS, lambda _: text)
    return {(item.kind, item.name): [file.name for file in item.files] for item in found}, left_out


CHECKPOINT = ["checkpoint", "ckpt-1.index", "ckpt-1.data-00000-of-00001", "ckpt-2.index", "ckpt-2.data-00000-of-00001"]


def test_what_workers_beside_the_chief_save_for_nobody_is_stored_only_where_a_pattern_names_it() -> None:
    names = [
        "model/saved_model.pb",
        "workertemp_0/model/saved_model.pb",
        "a/workertemp_12/checkpoint",
        "workertemp_x/w.h5",
    ]
    assert list(chosen(names)[0]) == [("model", "model"), ("weights", "workertemp_x/w.h5")]
    assert list(chosen(names, "workertemp_0/**")[0]) == [("model", "workertemp_0/model")]


def test_a_model_in_train_dir_itself_is_not_all_of_it() -> None:
    names = ["saved_model.pb", "variables/v", "assets/vocabulary", "events.out", *CHECKPOINT]
    found, _ = chosen(names, "**/saved_model.pb")
    assert found == {("model", "."): ["assets/vocabulary", "saved_model.pb", "variables/v"]}


def test_each_folder_has_its_newest_checkpoint() -> None:
    names = ["a/checkpoint", "a/ckpt-1.index", "b/checkpoint", "b/ckpt-1.index"]
    found, _ = chosen(names, text=named("ckpt-1"))
    assert sorted(found) == [("checkpoint", "a/ckpt-1"), ("checkpoint", "b/ckpt-1")]


def test_a_file_checkpoint_that_names_no_checkpoint_is_one_only_if_its_folder_is_wanted() -> None:
    assert chosen(["checkpoint", "sub/checkpoint"], text="weights") == ({}, [])
    assert chosen(["checkpoint", "sub/checkpoint"], "sub/**", text="weights")[0] == {
        ("files", "sub/**"): ["sub/checkpoint"]
    }


def test_patterns_replace_the_default_and_one_without_files_is_named() -> None:
    found, left_out = chosen(["logs/a/one", "logs/two", "best.keras"], "logs/**", "nothing")
    assert found == {("files", "logs/**"): ["logs/a/one", "logs/two"]}
    assert left_out == [LeftOut("nothing", 0, NO_MATCH)]


def test_an_artifact_with_a_link_outside_is_left_out_as_a_whole() -> None:
    found, left_out = chosen(["export/saved_model.pb", "export/variables/v"], outside="export/variables/v")
    assert (found, left_out) == ({}, [LeftOut("export", 20, OUTSIDE)])


@pytest.mark.parametrize("name", ["\udcff.keras", f"{'x' * 256}.keras", "/".join(["x" * 200] * 6) + ".keras"])
def test_a_name_that_cannot_be_sent_is_left_out(name: str) -> None:
    found, left_out = chosen([name, "good.keras"])
    assert list(found) == [("keras", "good.keras")]
    assert [item.reason for item in left_out] == [BAD_NAME]


@pytest.mark.parametrize(
    ("text", "folder", "expected"),
    [
        (named("/abs/train/ckpt-3"), "", "ckpt-3"),
        (named("ckpt-3"), "", "ckpt-3"),
        (named("/abs/train/sub/ckpt-3"), "sub", "sub/ckpt-3"),
        (named("/abs/train/deeper/ckpt-4"), "", "deeper/ckpt-4"),
        (named("\\xyz/ckpt-3"), "", "ckpt-3"),
        (named("/abs/gone"), "", ""),
        (named("../../etc/passwd"), "", ""),
        ("nonsense", "", ""),
    ],
)
def test_the_file_checkpoint_names_the_newest(text: str, folder: str, expected: str) -> None:
    files = {f"{name}.index": FileInfo(1, 1) for name in ("ckpt-3", "sub/ckpt-3", "deeper/ckpt-4")}
    assert newest_checkpoint(text, folder, files) == expected


def test_a_relative_checkpoint_is_ascii_with_escapes_as_tensorflow_writes_them() -> None:
    text = relative_checkpoint('ü/a"b\\c')
    path = '\\303\\274/a\\"b\\\\c'
    assert text == f'model_checkpoint_path: "{path}"\nall_model_checkpoint_paths: "{path}"\n'
    assert newest_checkpoint(text, "", {'ü/a"b\\c.index': FileInfo(1, 1)}) == 'ü/a"b\\c'


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("*.keras", ["a.keras"], ["x/a.keras", "a.kerast"]),
        ("**/*.keras", ["a.keras", "x/y/a.keras"], ["a"]),
        ("x/**", ["x/a", "x/y/z"], ["x", "xy/a"]),
        ("x/**/z", ["x/z", "x/y/z"], ["xz", "x/yz"]),
        ("**", ["x", "x/y"], []),
        ("[!a]", ["b"], ["a", "/"]),
        ("[c-a]", [], ["b", "-"]),
    ],
)
def test_a_glob_pattern(pattern: str, matching: list[str], other: list[str]) -> None:
    assert [name for name in (*matching, *other) if matches(name.split("/"), pattern.split("/"))] == matching


def test_what_is_beyond_the_limits_is_left_out_and_smaller_ones_are_not() -> None:
    sizes = {"one": 60, "two": 50, "three": 40}
    items = [Artifact("keras", name, [ArtifactFile(name, size, "1")]) for name, size in sizes.items()]
    fitting, left_out = limited(items, 100, 10)
    assert [item.name for item in fitting] == ["one", "three"]
    assert left_out == [LeftOut("two", 50, LIMIT)]
    assert [item.name for item in limited(items, 1000, 2)[0]] == ["one", "two"]


def test_a_search_leaves_out_what_is_outside_or_tfdeploys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, outside = tmp_path / "train", tmp_path / "outside"
    for path in (root / "sub", outside):
        path.mkdir(parents=True)
        (path / "file").write_text("text")
    (root / ".tfdeploy-restore").mkdir()
    for name in (".tfdeploy-restore/file", ".tfdeploy-restored"):
        (root / name).touch()
    (root / "folder").symlink_to(outside)
    (root / "link").symlink_to(outside / "file")
    (root / "inside").symlink_to(root / "sub/file")
    (root / "gone").symlink_to("nothing")
    files, is_complete = artifact_sender.scan(root)
    assert {name: info.is_outside for name, info in files.items()} == {"sub/file": False, "link": True, "inside": False}
    assert is_complete
    monkeypatch.setattr(artifact_sender, "_MAX_SCANNED", 2)
    assert not artifact_sender.scan(root)[1]
    assert artifact_sender.scan(tmp_path / "nothing") == ({}, True)
    assert stored_artifact.MAX_FILES == 2000
