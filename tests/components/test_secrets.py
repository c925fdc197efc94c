"""Secrets reach the tasks, and no other place; of our own environment the tasks get what they need, and no more."""

import json
from pathlib import Path

import psutil
import pytest

from tests.components.conftest import Standing
from tfdeploy.backends.local.supervisor import marked

CANARY = "canary-5f1e0c"
SECRETS = {"API_KEY": CANARY + "\nof two lines", "service.json": json.dumps({"key": CANARY})}

READS_SECRETS = """
import os, pathlib
from steps import begin, here, wait_for

folder = pathlib.Path(os.environ["TFDEPLOY_SECRETS"])
for path in sorted(folder.iterdir()):
    text = path.read_text()
    mode = oct(path.stat().st_mode & 0o777)
    (here / f"seen-{path.name}").write_text(text)
    print(path.name, len(text), mode, os.environ.get(path.name) == text)
begin()
wait_for("gate")
"""

SHOWS_ENVIRONMENT = """
import os

for name, value in sorted(os.environ.items()):
    print(name + "=" + value)
"""


def holding(folder: Path, text: str) -> list[str]:
    """The files below a folder that have this text in them."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return sorted(path.relative_to(folder).as_posix() for path in files if text.encode() in path.read_bytes())


def test_secrets_are_files_and_those_in_capitals_variables_too(cluster: Standing) -> None:
    cluster.declare(READS_SECRETS, workers=1, secrets=dict.fromkeys(SECRETS, ""))
    cluster.stand(secrets=SECRETS)
    cluster.finish()
    assert cluster.output("worker-0").decode().splitlines() == [
        f"API_KEY {len(SECRETS['API_KEY'])} 0o600 True",
        f"service.json {len(SECRETS['service.json'])} 0o600 False",
    ]
    assert {name: (cluster.folder / f"seen-{name}").read_text() for name in SECRETS} == SECRETS


def test_a_secret_that_is_given_no_more_goes_and_none_is_kept_when_the_cluster_is_cleared(cluster: Standing) -> None:
    cluster.declare(READS_SECRETS, workers=1, secrets=dict.fromkeys(SECRETS, ""))
    cluster.stand(secrets=SECRETS)
    cluster.stand(secrets={"API_KEY": f"another {CANARY}"})
    assert [path.name for path in cluster.places.secrets.iterdir()] == ["API_KEY"]
    assert (cluster.places.secrets / "API_KEY").read_text() == f"another {CANARY}"
    cluster.until_running("worker-0")
    kept = cluster.kept(cluster.clear())
    assert kept.is_dir()
    assert holding(kept, CANARY) == []


def test_tasks_see_nothing_of_pulumis_or_a_clouds(cluster: Standing, monkeypatch: pytest.MonkeyPatch) -> None:
    hidden = ("PULUMI_ACCESS_TOKEN", "PULUMI_CONFIG_PASSPHRASE", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "MY_OWN")
    for name in (*hidden, "TF_CPP_MIN_LOG_LEVEL", "LC_ALL"):
        monkeypatch.setenv(name, CANARY)
    cluster.up(SHOWS_ENVIRONMENT, workers=1, env={"WISHED": "{hostname}"})
    cluster.until_state("succeeded")
    shown = dict(line.split("=", 1) for line in cluster.output("worker-0").decode().splitlines() if "=" in line)
    assert {name for name, value in shown.items() if CANARY in value} == {"TF_CPP_MIN_LOG_LEVEL", "LC_ALL"}
    assert not [name for name in shown if name.startswith(("PULUMI_", "AWS_", "SUPERVISOR_"))]
    assert shown["WISHED"] == "worker-0"
    for process in marked(cluster.places.home):
        assert not [name for name in hidden if name in environment(process)]


def environment(process: psutil.Process) -> dict[str, str]:
    """The environment of a process; empty when it has ended."""
    try:
        return process.environ()
    except psutil.Error:
        return {}


def test_the_token_is_in_no_argument_and_no_environment_and_nobody_else_can_look_into_the_folders(
    cluster: Standing,
) -> None:
    cluster.run(READS_SECRETS, workers=1)
    assert holding(cluster.places.home, "a-token-of-the-tests") == ["token"]
    for process in marked(cluster.places.home):
        assert "a-token-of-the-tests" not in str(process.cmdline()) + str(process.environ())
    for folder in (cluster.places.home, cluster.places.secrets):
        assert folder.stat().st_mode & 0o077 == 0, folder
    assert cluster.places.token.stat().st_mode & 0o077 == 0
