"""Two runs side by side, and the difference of their code."""

import io
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.unit.report.test_run_history import finished, stored
from tfdeploy.receipts import Receipt
from tfdeploy.report.run_diff import FileChange, RunDiff, code_changes
from tfdeploy.report.run_history import StoredRun


def archive(path: Path, files: dict[str, bytes], executable: Sequence[str] = ()) -> Path:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as target:
        for name, content in files.items():
            item = zipfile.ZipInfo(name)
            item.external_attr = (0o755 if name in executable else 0o644) << 16
            target.writestr(item, content)
    path.write_bytes(buffer.getvalue())
    return path


def test_text_files_as_a_unified_diff_and_others_by_name(tmp_path: Path) -> None:
    older = archive(
        tmp_path / "a.zip", {"train.py": b"lr = 1\nend\n", "same": b"x", "data": b"\xff\x00", "gone": b"g\n"}
    )
    newer = archive(
        tmp_path / "b.zip", {"train.py": b"lr = 2\nend\n", "same": b"x", "data": b"\xff\x01", "new": b"n\n"}
    )
    diffs = {change.path: list(change.lines) for change in code_changes(older, newer)}
    assert diffs == {
        "data": [],
        "gone": ["--- a/gone", "+++ /dev/null", "@@ -1 +0,0 @@", "-g"],
        "new": ["--- /dev/null", "+++ b/new", "@@ -0,0 +1 @@", "+n"],
        "train.py": ["--- a/train.py", "+++ b/train.py", "@@ -1,2 +1,2 @@", "-lr = 1", "+lr = 2", " end"],
    }


def test_a_large_file_is_named_only(tmp_path: Path) -> None:
    older, newer = (
        archive(tmp_path / name, {"big": letter * 2_000_000}) for name, letter in (("a", b"a"), ("b", b"b"))
    )
    assert code_changes(older, newer) == [FileChange("big", (), "not-text")]


@pytest.mark.parametrize(
    ("before", "after", "kind", "text"),
    [
        (b"a\nb\n", b"a\r\nb\r\n", "line-ends", "f differs only in its line ends, or in the newline at its end."),
        (b"a\nb\n", b"a\nb", "line-ends", "f differs only in its line ends, or in the newline at its end."),
        (None, b"", "new-empty", "f is new and empty."),
        (b"", None, "removed-empty", "f is removed. It was empty."),
        (b"\xff", b"\xfe", "not-text", "f differs. It is not text, or has more than 1 MiB."),
        (None, b"\xfe", "not-text", "f differs. It is not text, or has more than 1 MiB."),
    ],
)
def test_a_file_without_a_diff_has_the_reason(
    before: bytes | None, after: bytes | None, kind: str, text: str, tmp_path: Path
) -> None:
    paths = [
        archive(tmp_path / name, {} if content is None else {"f": content})
        for name, content in (("a", before), ("b", after))
    ]
    found = code_changes(*paths)
    assert found == [FileChange("f", (), kind)]
    assert shown(found) == [text]


def test_a_change_of_the_executable_bit_is_named(tmp_path: Path) -> None:
    before, after = {"alone": b"x", "less": b"x", "same": b"x"}, {"alone": b"x", "less": b"y", "same": b"x"}
    older = archive(tmp_path / "a", before, ["less", "same"])
    newer = archive(tmp_path / "b", {**after, "new": b""}, ["alone", "same", "new"])
    found = code_changes(older, newer)
    assert [(change.path, change.kind, change.mode) for change in found] == [
        ("alone", "mode", "executable"),
        ("less", "text", "not executable"),
        ("new", "new-empty", ""),
    ]
    assert shown(found)[:4] == ["alone: mode: now executable.", "", "less: mode: now not executable.", "--- a/less"]


def shown(changes: Sequence[FileChange]) -> list[str]:
    """What the text of a comparison has of these files."""
    run = stored(finished(1_000.0))
    return RunDiff(run, run, changes).text(9_000.0).partition("nothing\n\n")[2].splitlines()


def test_the_text_has_results_changes_and_code(tmp_path: Path) -> None:
    first, second = stored(finished(1_000.0)), stored(finished(5_000.0, env={"LR": "0.1"}, workers=3))
    code = code_changes(
        archive(tmp_path / "a", {"t.py": b"a\n", "d": b"\xff"}), archive(tmp_path / "b", {"t.py": b"b\n", "d": b"\xfe"})
    )
    difference = RunDiff(first, second, code)
    assert difference.text(9_000.0).splitlines() == [
        "           OLDER                  NEWER",
        f"run        {first.spec.id}           {second.spec.id}",
        "started    1970-01-01 00:16:40Z   1970-01-01 01:23:20Z",
        "took       1m30s                  1m30s",
        "where      local                  local",
        "result     succeeded              succeeded",
        "accuracy   0.95                   0.95",
        "tasks      ps: 1, worker: 2       ps: 1, worker: 3",
        "",
        "Changed:",
        "  env LR",
        "  2 -> 3 worker",
        "",
        "TASKS    OLDER   NEWER",
        "worker   2       3",
        "",
        "d differs. It is not text, or has more than 1 MiB.",
        "",
        "--- a/t.py",
        "+++ b/t.py",
        "@@ -1 +1 @@",
        "-a",
        "+b",
    ]
    assert difference.to_dict()["code"][1] == {
        "path": "t.py",
        "kind": "text",
        "mode": "",
        "diff": "--- a/t.py\n+++ b/t.py\n@@ -1 +1 @@\n-a\n+b",
    }
    assert "is not compared" in RunDiff(first, second, None).text(9_000.0)


def learning(rate: str, receipt: Receipt | None, **args: Any) -> StoredRun:
    """A run whose learning rate is on its command line, and a variable with a value that nobody may see."""
    command = ["python", "train.py", f"--learning_rate={rate}"]
    return stored(finished(1_000.0, command=command, env={"KEY": f"hidden-{rate}"}, **args), receipt=receipt)


def test_values_are_side_by_side_and_those_of_the_environment_are_not_shown() -> None:
    jobs = '{{"worker": {{"cpus": {0}, "command": ["hidden"], "env": {{"KEY": "hidden-{0}"}}}}}}'
    before = Receipt(
        {"ec2": '{"instance_type": "c7i.large"}', "jobs": jobs.format(1), "env": '{"KEY": "hidden-0.1"}'},
        {"tensorflow": "2.20.0"},
        {"c7i.large": 2},
    )
    after = Receipt({"ec2": '{"instance_type": "g6.xlarge"}', "jobs": jobs.format(2)}, {}, {"g6.xlarge": 2})
    found = RunDiff(learning("0.1", before), learning("0.2", after, worker_timeout="5m"), [])
    text = found.text(9_000.0)
    assert text.partition("Changed:\n")[2].splitlines() == [
        "  command",
        "  worker_timeout",
        "  env KEY",
        "  ec2.instance_type",
        "  jobs.worker.cpus",
        "  2 -> 0 c7i.large",
        "  0 -> 2 g6.xlarge",
        "  tensorflow 2.20.0 -> none",
        "",
        "ARGUMENTS           OLDER                                 NEWER",
        "command             python train.py --learning_rate=0.1   python train.py --learning_rate=0.2",
        "ec2.instance_type   c7i.large                             g6.xlarge",
        "jobs.worker.cpus    1                                     2",
        "worker_timeout      60                                    300",
        "",
        "MACHINES    OLDER   NEWER",
        "c7i.large   2",
        "g6.xlarge           2",
        "",
        "VERSIONS     OLDER    NEWER",
        "tensorflow   2.20.0",
    ]
    data = found.to_dict()
    assert data["arguments"][0] == {
        "name": "command",
        "older": "python train.py --learning_rate=0.1",
        "newer": "python train.py --learning_rate=0.2",
    }
    assert (data["tasks"], [row["name"] for row in data["machines"]]) == ([], ["c7i.large", "g6.xlarge"])
    assert "hidden" not in text + str(data)


def test_what_only_one_run_has_a_receipt_for_is_not_compared() -> None:
    found = RunDiff(
        learning("0.1", None), learning("0.2", Receipt({"wait": "0"}, {"python": "3.11.7"}, {"c7i.large": 2})), []
    )
    assert {title: [row[0] for row in rows] for title, rows in found.value_tables().items()} == {
        "Arguments": ["command"],
        "Tasks": [],
        "Machines": [],
        "Versions": [],
    }


def test_a_value_cannot_control_the_terminal() -> None:
    assert "\x1b" not in RunDiff(learning("0.1", None), learning("\x1b[2J", None), []).text(9_000.0)
