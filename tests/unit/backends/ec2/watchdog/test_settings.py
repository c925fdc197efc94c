"""The settings of the watchdog: whatever has become of the files, the machine ends."""

import json
from pathlib import Path
from typing import Any

import pytest

from tfdeploy.backends.ec2.watchdog import main
from tfdeploy.backends.ec2.watchdog.main import DEFAULTS, read_settings
from tfdeploy.spec.ec2 import Ec2Spec

CREATED = {**DEFAULTS, "lifetime": 3600.0, "bucket": "records"}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(main, "SETTINGS", tmp_path / "present")
    monkeypatch.setattr(main, "CREATED_WITH", tmp_path / "created")
    (tmp_path / "present").write_text(json.dumps({**CREATED, "lifetime": 7200.0}))
    (tmp_path / "created").write_text(json.dumps(CREATED))
    return tmp_path


def read() -> dict[str, Any]:
    said: list[str] = []
    found = read_settings(said.append)
    return {**found, "said": len(said)}


def test_the_present_settings_are_read(files: Path) -> None:
    assert read() == {**CREATED, "lifetime": 7200.0, "said": 0}


@pytest.mark.parametrize("text", ["", '{"lifetime": 36', "[1]", "\0\0\0", '{"lifetime": null}', '{"idle": "soon"}'])
def test_what_cannot_be_read_is_as_the_machine_was_created(files: Path, text: str) -> None:
    (files / "present").write_text(text)
    assert read() == {**CREATED, "said": 1}
    (files / "created").write_text(text)
    assert read() == {**DEFAULTS, "said": 2}


def test_without_any_file_the_arguments_own_defaults_hold(files: Path) -> None:
    for name in ("present", "created"):
        (files / name).unlink()
    found = read()
    assert (found["lifetime"], found["idle"]) == (Ec2Spec.max_lifetime, Ec2Spec.idle_timeout)
