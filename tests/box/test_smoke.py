"""The smoke test for AWS itself, tried in the box."""

import getpass
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.box.aws_project import EC2_MODULES
from tests.box.cloud import Box
from tests.integration.conftest import ROOT
from tests.pulumi_home import pulumi_home

pytestmark = pytest.mark.full

CODE = """\
import os, pathlib, time
print("started", os.environ["TFDEPLOY_HOSTNAME"], flush=True)
end = pathlib.Path(os.environ["TFDEPLOY_TRAIN_DIR"], "end")
while os.environ["TFDEPLOY_JOB_NAME"] == "ps" or not end.exists():
    time.sleep(0.1)
"""


def end_programs(box: Box) -> None:
    """Let the programs end, by a file on the file system that they share."""
    for made in box.client("efs").describe_file_systems()["FileSystems"]:
        for folder in box.efs(made["FileSystemId"]).glob("smoke-*/*/"):
            (folder / "end").touch()


def test_the_smoke_test_leaves_nothing_but_its_file(box: Box, box_image: str, tmp_path: Path) -> None:
    before = box.left()
    (tmp_path / "code").mkdir()
    (tmp_path / "code/train.py").write_text(CODE)
    chosen = {
        "folder": tmp_path / "smoke",
        "report": tmp_path / "smoke.txt",
        "code": tmp_path / "code",
        "command": "python train.py",
        "image": box_image,
        "ssh-cidr": "127.0.0.0/8",
        "region": box.environment["AWS_REGION"],
        "instance-type": "m7i.large",
    }
    lines = []
    with subprocess.Popen(
        [sys.executable, "-m", "tools.smoke", "--yes", *(f"--{name}={value}" for name, value in chosen.items())],
        cwd=ROOT,
        env={**os.environ, **box.pulumi_environment, **pulumi_home(tmp_path, EC2_MODULES)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        for line in process.stdout or ():
            lines.append(line)
            if line.startswith("$ tfdeploy wait "):
                end_programs(box)
    assert process.returncode == 0, "".join(lines)
    text = (tmp_path / "smoke.txt").read_text()
    assert "## Result\neverything did what it should\n" in text
    for section in ("Properties, where they differ from the table of the box", "Left after destroy"):
        assert f"## {section}\n(nothing)\n" in text
    assert "EC2 DescribeInstances:" in text
    assert "smoke-worker-m0: connected after" in text
    assert "worker-0 running" in text
    assert "worker-0 | started worker-0" in text
    for word in ("123456789012", "172.", "ssh-ed25519", f"{getpass.getuser()}@{socket.gethostname()}"):
        assert word not in text
    assert box.left() == before
