"""What `tfdeploy cp` copies: a path in a task, or among the artifacts of a stored run."""

import json
from pathlib import Path

import pytest

from tests.clusters import ID
from tests.unit.cli import calling
from tests.unit.cli.calling import Result
from tests.unit.cli.commands.test_runs import add, entry
from tfdeploy.agent.launch.copy_archive import ABSOLUTE, TRAIN_DIR, WORK
from tfdeploy.agent.record.record import Record
from tfdeploy.cli.completion import candidates
from tfdeploy.cli.copy.source import RunPath, TaskPath, parse_source
from tfdeploy.errors import BackendError, NotFound, SpecError

OTHER = "bbbbbbbbbb"


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("worker-0:logs/a.txt", TaskPath("worker-0", WORK, "logs/a.txt")),
        ("worker-0:./logs//a/", TaskPath("worker-0", WORK, "logs/a")),
        ("worker-0:", TaskPath("worker-0", WORK, "")),
        ("worker-0:/tmp/a:b", TaskPath("worker-0", ABSOLUTE, "tmp/a:b")),
        ("worker-0:train_dir/model", TaskPath("worker-0", TRAIN_DIR, "model")),
        ("worker-0:./train_dir/model", TaskPath("worker-0", WORK, "train_dir/model")),
        ("run:0123/model/a", RunPath("0123", "model/a")),
        ("run:0123/", RunPath("0123", "")),
        ("run:", RunPath("", "")),
    ],
)
def test_a_source_is_a_path_in_a_task_or_in_a_run(text: str, path: TaskPath | RunPath) -> None:
    assert parse_source(text) == path


@pytest.mark.parametrize("text", ["model", "./a:b", ":a", "worker-0:../a", "worker-0:/a/../b", "run:0123/../.."])
def test_what_is_no_source_is_refused(text: str) -> None:
    with pytest.raises(SpecError, match="SOURCE"):
        parse_source(text)


@pytest.fixture(autouse=True)
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return calling.program(tmp_path, monkeypatch)


def call(*arguments: str) -> Result:
    return calling.call(["cp", *arguments])


def stored(record: Path, at: float, accuracy: str, **files: str) -> str:
    run_id = add(record, at, accuracy, env={"ACCURACY": accuracy})
    for name, text in files.items():
        path = Record(record).artifacts_folder(run_id) / "model" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return run_id


@pytest.fixture
def runs(program: Path) -> list[str]:
    """A run of a cluster that was destroyed, one of the cluster after it, and one without artifacts."""
    state = program / "tfdeploy"
    entry(OTHER, "mnist", state, ended=3_000.0)
    destroyed = stored(state / f"retained/mnist-{OTHER}/19700101T005000Z/record", 1_000.0, "0.1", first="destroyed")
    record = Path(entry(ID, "mnist", state).cluster["home"]) / "record"
    return [destroyed, stored(record, 5_000.0, "0.2", first="one", second="two"), stored(record, 6_000.0, "0.3")]


def test_the_artifacts_of_a_run_are_copied(runs: list[str], program: Path) -> None:
    run_id = runs[1]
    done = call(f"run:{run_id[:6]}/model/first", "copied")
    assert (done.stdout, (program / "copied").read_text()) == (f"{program}/copied: 1 file, 3 B\n", "one")
    assert call(f"run:{run_id}/model", "models").exit_code == 0
    assert {path.name: path.read_text() for path in (program / "models").iterdir()} == {"first": "one", "second": "two"}
    done = call(f"run:{run_id}/", ".", "--json")
    assert json.loads(done.stdout) == {
        "destination": str(program / run_id),
        "files": 2,
        "bytes": 6,
        "grown": [],
        "changed": [],
        "skipped": {},
        "failed": {},
    }
    assert (program / run_id / "model" / "second").read_text() == "two"


def test_the_artifacts_of_a_destroyed_cluster_are_copied(runs: list[str]) -> None:
    assert call(f"run:{runs[0]}/model/first", "-").stdout_bytes == b"destroyed"


def test_a_run_that_does_not_exist_is_refused_with_those_that_do(runs: list[str]) -> None:
    with pytest.raises(NotFound, match=f"has no run 'none'. Runs with artifacts: {runs[1]}, {runs[0]}."):
        call("run:none/", ".")
    with pytest.raises(NotFound, match=f"has no run ''. Runs with artifacts: {runs[1]}, {runs[0]}."):
        call("run:", ".")
    with pytest.raises(NotFound, match=f"no artifacts are stored of run {runs[2]} .* Runs with artifacts: {runs[1]}, "):
        call(f"run:{runs[2]}/", ".")


def test_a_path_that_does_not_exist_is_refused_with_what_there_is(runs: list[str]) -> None:
    with pytest.raises(NotFound, match=f"run:{runs[1]}/model/third does not exist. .*/model has: first, second."):
        call(f"run:{runs[1]}/model/third", ".")
    with pytest.raises(NotFound, match=f"run:{runs[1]}/other does not exist. .*/artifacts has: model/."):
        call(f"run:{runs[1]}/other", ".")


def test_stdout_takes_a_single_file_and_no_json(runs: list[str]) -> None:
    with pytest.raises(SpecError, match="is a folder, and stdout takes a single file"):
        call(f"run:{runs[1]}/model", "-")
    with pytest.raises(SpecError, match="--json"):
        call(f"run:{runs[1]}/model/first", "-", "--json")


def test_what_is_left_out_is_named_and_the_exit_code_is_that_of_a_failure(runs: list[str], program: Path) -> None:
    folder = program / f"tfdeploy/clusters/mnist-{ID}/record/runs/{runs[1]}/artifacts/model"
    (folder / "far\x1b[2J").symlink_to("/etc/passwd")
    done = call(f"run:{runs[1]}/model", ".")
    assert (done.exit_code, done.stderr) == (0, "far: skipped, a link to /etc/passwd, outside of the folder.\n")
    (program / "model" / "first").unlink()
    (program / "model" / "first").mkdir()
    done = call(f"run:{runs[1]}/model", ".")
    assert done.exit_code == 1
    assert "first: not copied, Is a directory.\n" in done.stderr


@pytest.mark.parametrize(("begin", "completed"), [("wor", "worker-0:\nworker-1:"), ("run:", "")])
def test_tasks_and_runs_are_completed(runs: list[str], program: Path, begin: str, completed: str) -> None:
    expected = completed.split() or [f"run:{name}/" for name in runs]
    assert sorted(candidates(["cp"], begin)) == sorted(expected)


def test_a_link_among_artifacts_does_not_lead_to_other_files(runs: list[str], program: Path) -> None:
    (program / "own").write_text("own")
    folder = next(path for path in program.glob(f"**/{runs[1]}/artifacts/model"))
    (folder / "far").symlink_to(program / "own")
    with pytest.raises(BackendError, match="not an artifact"):
        call(f"run:{runs[1]}/model/far", "copy")
    assert not (program / "copy").exists()


def test_a_file_is_not_replaced_by_its_own_copy(runs: list[str], program: Path) -> None:
    """A program that has it open would write to a file without a name."""
    (artifact,) = [path for path in program.glob(f"**/{runs[1]}/artifacts/model/*") if path.is_file()][:1]
    before = artifact.stat().st_ino
    with pytest.raises(SpecError, match="is the source"):
        call(f"run:{runs[1]}/model/{artifact.name}", str(artifact.parent))
    with pytest.raises(SpecError, match="is in the source"):
        call(f"run:{runs[1]}/model", str(artifact.parent))
    assert artifact.stat().st_ino == before
