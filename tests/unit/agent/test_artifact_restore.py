"""Paths of artifacts lead nowhere else."""

from pathlib import Path

import pytest

from tfdeploy.agent.record.artifact_restore import restorable, restored_path


def test_the_artifacts_of_a_run_are_its_plain_files(tmp_path: Path) -> None:
    (tmp_path / "saved").mkdir()
    (tmp_path / "saved/model.ckpt-5.index").write_text("index")
    (tmp_path / "link").symlink_to("/etc/passwd")
    ((path, size, sha256),) = restorable(tmp_path)
    assert (path, size) == ("saved/model.ckpt-5.index", 5)
    assert sha256.startswith("1bc04b5291c26a46")
    assert restorable(tmp_path / "none") == []


@pytest.mark.parametrize("path", ["../outside", "/etc/passwd", "a/../../b", "", "a//b", "./a", "a\0b", "link/passwd"])
def test_a_path_that_leads_out_is_refused(tmp_path: Path, path: str) -> None:
    (tmp_path / "link").symlink_to("/etc")
    with pytest.raises(ValueError, match=r"artifact"):
        restored_path(tmp_path, path)
