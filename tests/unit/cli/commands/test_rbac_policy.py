"""The Role that is printed is for the namespace of the stack, and has what the backend does."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from tfdeploy.backends.kubernetes.permissions import CHECKS, CLUSTER_CHECKS, RULES, role
from tfdeploy.cli.commands import rbac_policy
from tfdeploy.cli.typer_app import app


@pytest.fixture(autouse=True)
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a program with the stack `dev`. The backend's own packages are not needed."""
    monkeypatch.setattr(rbac_policy, "load", lambda _: None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Pulumi.yaml").write_text("name: project\nruntime: python\n")
    return tmp_path


def printed(*options: str) -> list[Any]:
    result = CliRunner().invoke(app, ["rbac-policy", *options], catch_exceptions=False)
    return list(yaml.safe_load_all(result.stdout))


def test_the_role_is_for_a_namespace(program: Path) -> None:
    assert printed() == [role("default", RULES)]
    assert printed("--namespace", "training") == [role("training", RULES)]
    (program / "Pulumi.dev.yaml").write_text("config:\n  tfdeploy:kubernetes: {namespace: team-a}\n")
    assert printed("--stack", "dev") == [role("team-a", RULES)]


def test_what_checks_read_may_be_added() -> None:
    assert printed("--all") == [role("default", (*RULES, *CHECKS)), role("", CLUSTER_CHECKS)]
