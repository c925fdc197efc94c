"""The code of a run between the plan and the submission."""

import io
import zipfile
from pathlib import Path
from typing import Any, cast

import pytest

from tests.clusters import cluster_ref
from tests.unit.simulation import World
from tfdeploy.agent.model.run_spec import RunSpec
from tfdeploy.backends import code_archives, controller_calls
from tfdeploy.errors import BackendError
from tfdeploy.program import shipped_code

CLUSTER = cluster_ref()


def submitted(folder: Path, code: str) -> str:
    """The program in the archive that is submitted."""
    props: Any = {
        "cluster": CLUSTER,
        "run": {"code": code},
        "code_folder": str(folder),
        "code_without": [],
    }
    archive = controller_calls._archive(cast(Any, props))
    return zipfile.ZipFile(io.BytesIO(archive)).read("train.py").decode()


def test_the_code_of_a_new_run_is_that_of_the_plan_although_the_folder_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "train.py").write_text("original")
    code = shipped_code.bundle("mnist", folder, ())
    run = RunSpec("0123", [], {}, code=code.name)
    current = World(workers=1).job
    current.spec = run
    shipped_code.store(CLUSTER, code, run, current)
    assert not (tmp_path / "state").exists(), "the record has the run"
    shipped_code.store(CLUSTER, code, run, None)
    (folder / "train.py").write_text("changed")
    assert submitted(folder, code.name) == "original"
    code_archives.delete(CLUSTER)
    with pytest.raises(BackendError, match="was changed after the plan was made"):
        submitted(folder, code.name)


def test_a_file_that_this_command_writes_to_is_warned_of_unless_it_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "code"
    (folder / "out").mkdir(parents=True)
    (folder / "train.py").write_text("pass")
    (folder / ".gitignore").write_text("ignored.txt\nout/\n")
    names = ("up.txt", "up.log", "nohup.out", "ignored.txt", "out/a.txt", "../elsewhere.txt")
    files = [(folder / name).resolve() for name in names]
    for file in files:
        file.touch()
    monkeypatch.setattr(shipped_code, "output_files", lambda: files)
    warned = shipped_code.output_warnings(shipped_code.bundle("mnist", folder, []))
    assert [line.split()[1] for line in warned] == ["up.txt"]
