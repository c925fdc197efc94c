"""Files in a cluster's folder on this computer that are damaged, or that another version of tfdeploy wrote."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.backends.ec2.fleets import CLUSTER
from tfdeploy.backends.ec2.machine import boot, ssh
from tfdeploy.errors import SpecError

READERS: dict[str, Callable[[Any], Any]] = {
    "machines.json": ssh.read,
    "failures/m0.json": boot.read_failures,
}


@pytest.mark.parametrize("text", ["", "[1]", '"text"', '{"machine": {"life": 1}}', '{"hosts": {"m0": {"life": 1}}}'])
@pytest.mark.parametrize("name", READERS)
def test_it_is_refused_by_its_name(name: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    file = ssh.folder(CLUSTER) / name
    file.parent.mkdir(parents=True)
    file.write_text(text)
    with pytest.raises(SpecError, match="Destroy the cluster with that version, or delete the file") as error:
        READERS[name](CLUSTER)
    assert error.value.where == str(file)
    assert error.value.wrong == "cannot be read, because it is damaged or another version of tfdeploy wrote it"
