"""What the tasks of `programs/dcos_mnist` take as a job, and what they do not."""

import hashlib
import importlib.util
import os
import stat
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

from tests.integration.conftest import ROOT

SOURCE = ROOT / "programs/dcos_mnist/service/dcos.py"
MAIN = "def main(server, log_dir, context): return log_dir"


@pytest.fixture
def dcos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module, as if it had been shipped into a task's folder."""
    shipped = tmp_path / "task" / "dcos.py"
    shipped.parent.mkdir()
    shipped.write_text(SOURCE.read_text())
    description = importlib.util.spec_from_file_location("shipped_dcos", shipped)
    assert description is not None
    assert description.loader is not None
    module = importlib.util.module_from_spec(description)
    description.loader.exec_module(module)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "modules", {**sys.modules})
    return module


def loaded(dcos: ModuleType, where: Path, **options: str) -> ModuleType:
    """The job that is found behind the URL of a file."""
    flags = [f"--{name}={value}" for name, value in {"url": where.as_uri(), **options}.items()]
    found: ModuleType = dcos.load(dcos.parser().parse_args(flags))
    return found


def archive(folder: Path, *members: zipfile.ZipInfo | str) -> Path:
    """A ZIP with `good.py`, a job, and these."""
    path = folder / "job.zip"
    with zipfile.ZipFile(path, "w") as made:
        for member in ("my_job/good.py", *members):
            made.writestr(member, MAIN)
    return path


def link(name: str) -> zipfile.ZipInfo:
    """A symbolic link."""
    found = zipfile.ZipInfo(name)
    found.external_attr = (stat.S_IFLNK | 0o777) << 16
    return found


def test_a_python_file_is_a_job_by_its_name_or_by_another(dcos: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "my_model.py"
    path.write_text(MAIN)
    assert loaded(dcos, path).__name__ == "my_model"
    assert loaded(dcos, path, name="renamed").main(None, "there", {}) == "there"


def test_a_folder_of_a_zip_is_on_the_path_of_its_job(dcos: ModuleType, tmp_path: Path) -> None:
    path = archive(tmp_path, "my_job/")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    found = loaded(dcos, path, path="my_job", name="good", sha256=digest.upper())
    assert Path(found.__file__ or "") == tmp_path / "task/job/my_job/good.py"


@pytest.mark.parametrize("member", ["../out.py", "/tmp/out.py", "a/../../out.py", "..\\out.py", link("out.py")])
def test_nothing_is_unpacked_of_a_zip_that_leads_out(
    dcos: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], member: zipfile.ZipInfo | str
) -> None:
    with pytest.raises(SystemExit) as ended:
        loaded(dcos, archive(tmp_path, member), path="my_job", name="good")
    assert ended.value.code == 78
    assert "out.py' in it, which" in capsys.readouterr().err
    assert [one.name for one in tmp_path.rglob("*.py")] == ["dcos.py"]


@pytest.mark.parametrize(
    ("limit", "most", "wrong"),
    [
        ("LARGEST", 10, "has more than 10 bytes"),
        ("LARGEST_UNPACKED", 10, "or 10 bytes unpacked"),
        ("MOST_FILES", 0, "has more than 0 files"),
    ],
)
def test_what_is_too_large_is_not_taken(
    dcos: ModuleType,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    limit: str,
    most: int,
    wrong: str,
) -> None:
    monkeypatch.setattr(dcos, limit, most)
    with pytest.raises(SystemExit):
        loaded(dcos, archive(tmp_path), path="my_job", name="good")
    assert wrong in capsys.readouterr().err
    assert not (tmp_path / "task/job/my_job").exists()


@pytest.mark.parametrize(
    ("options", "wrong"),
    [
        ({"sha256": "0" * 64}, f"not {'0' * 64}"),
        ({"path": ".."}, "job_path '..' is not a folder of the job"),
        ({"path": "none"}, "job_path 'none' is not a folder of the job"),
        ({"path": "my_job", "name": "none"}, "there is no none.py in the job's folder my_job"),
        ({"path": "my_job", "name": "empty"}, "empty.py has no main(server, log_dir, context)"),
        ({"url": "ftp://example.com/job.py"}, "is none that begins with https://, http:// or file://"),
    ],
)
def test_what_is_no_job_is_told_in_a_sentence(
    dcos: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: dict[str, str], wrong: str
) -> None:
    path = archive(tmp_path)
    with zipfile.ZipFile(path, "a") as made:
        made.writestr("my_job/empty.py", "")
    with pytest.raises(SystemExit) as ended:
        loaded(dcos, path, **{"path": "my_job", "name": "good", **options})
    assert ended.value.code == 78
    assert wrong in capsys.readouterr().err


def test_a_log_dir_that_this_tensorflow_cannot_reach_is_told(tmp_path: Path) -> None:
    (tmp_path / "gcs_key").write_text("{}")
    script = (
        "import dcos, os\n"
        "dcos.bring_file_system('gs://bucket/logs')\n"
        "print(os.environ['GOOGLE_APPLICATION_CREDENTIALS'], flush=True)\n"
        "dcos.bring_file_system('s3://bucket/logs')\n"
    )
    env = {**os.environ, "TFDEPLOY_SECRETS": str(tmp_path), "TF_CPP_MIN_LOG_LEVEL": "2"}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=SOURCE.parent, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 78, done.stderr
    assert done.stdout == f"{tmp_path / 'gcs_key'}\n"
    assert "log_dir s3://bucket/logs: s3:// needs the package tensorflow-io" in done.stderr
