"""A program in a container has a HOME that it may write in, also as a user whom the image does not know."""

import os
import tempfile
from pathlib import Path

import pytest

from tfdeploy.agent.launch.docker_env import home


def test_the_folder_of_the_images_user_stays(tmp_path: Path) -> None:
    assert home({"HOME": str(tmp_path)}) == str(tmp_path)


def test_a_folder_that_is_not_ones_own_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = tmp_path / "missing"
    assert home({"HOME": str(missing)}) == home({"HOME": ""}) == home({}) == tempfile.gettempdir()
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # the tests may be root, who may write everywhere
    assert home({"HOME": "/"}) == tempfile.gettempdir()
