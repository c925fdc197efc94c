"""What is missing is told, with what would do."""

from pathlib import Path
from typing import Any

from tests.cli.calling import tfdeploy
from tests.integration.conftest import Project


def checks(project: Project, code: int, **env: Any) -> dict[str, Any]:
    """What each check says, by what it is of."""
    done = tfdeploy(project, "doctor", "--json", **env)
    assert done.code == code, done.out + done.err
    return {f"{one['backend']} {one['what']}".strip(): one for one in done.data["checks"]}


def test_a_computer_that_has_all_is_well(project: Project) -> None:
    (project.folder / "state/tfdeploy").mkdir(parents=True, mode=0o700)
    told = checks(project, 0, DOCKER_HOST="unix:///none.sock")
    needed = ("python", "pulumi", "pulumi-language-python", "login", "passphrase", "program", "stack")
    assert {name: told[name]["state"] for name in needed} == dict.fromkeys(needed, "ok")
    assert told["stack"]["detail"] == project.stack
    assert told["local tensorflow"]["state"] == "ok"
    assert "docker docker engine" in told, told
    assert told["docker docker engine"]["state"] == "-", "nobody needs it here"


def test_what_is_missing_fails_and_says_what_would_do(project: Project, tmp_path: Path) -> None:
    only = tmp_path / "bin"
    only.mkdir()
    for name in ("tfdeploy", "python"):
        (only / name).symlink_to(Path(project.env["VIRTUAL_ENV"]) / "bin" / name)
    told = checks(project, 1, PATH=str(only))
    assert (told["pulumi"]["state"], "https://www.pulumi.com/docs/install/" in told["pulumi"]["remedy"]) == (
        "fail",
        True,
    )
    assert told["pulumi-language-python"]["state"] == "fail"
    text = tfdeploy(project, "doctor", PATH=str(only))
    assert text.code == 1
    assert all(". " in line for line in text.out.splitlines() if line.startswith("fail"))
    assert "Traceback" not in text.out + text.err


def test_a_backend_that_the_stack_is_for_must_answer(project: Project) -> None:
    (project.program / "Pulumi.test.yaml").write_text("config:\n  tfdeploy:backend: docker\n")
    told = checks(project, 1, DOCKER_HOST="unix:///none.sock")
    assert told["docker docker engine"]["state"] == "fail"
    assert "DOCKER_HOST" in told["docker docker engine"]["remedy"]
