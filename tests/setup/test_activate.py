"""`source tools/activate`, in bash and in zsh: what a user's shell has afterwards."""

import json
import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.debian import NotInstalled, provided
from tests.setup.clones import ROOT, clean_environment, run

VENV = ROOT / ".venv"
SHOW = f"{VENV}/bin/python -c 'import json, os; print(json.dumps(dict(os.environ)))'"

Activate = Callable[..., dict[str, str]]


@pytest.fixture(params=["bash", pytest.param("zsh", marks=pytest.mark.full)])
def shell(request: pytest.FixtureRequest) -> list[str]:
    """A shell that reads no start-up files."""
    if request.param == "bash":
        return ["bash", "--norc", "-c"]
    try:
        return [provided("zsh"), "-f", "-c"]
    except NotInstalled as reason:
        pytest.fail(str(reason), pytrace=False)


@pytest.fixture
def activate(shell: list[str], tmp_path: Path) -> Activate:
    """Runs commands in a shell, then gives its environment."""

    def call(text: str = f"source {ROOT}/tools/activate", **more: str) -> dict[str, str]:
        env = {**clean_environment(tmp_path / "home"), **more}
        done = run([*shell, f"set -eu; {text}; {SHOW}"], tmp_path, env)
        assert done.exit_code == 0, done.output
        found: dict[str, str] = json.loads(done.output.splitlines()[-1])
        return found

    return call


def differences(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str]:
    """The variables that were set."""
    return {name: value for name, value in after.items() if before.get(name) != value and name not in ("_", "SHLVL")}


def test_python_and_pulumi_are_on_path_and_stacks_are_kept_in_files(activate: Activate, tmp_path: Path) -> None:
    before = activate(":")
    after = activate()
    state = tmp_path / "home" / ".local/state/tfdeploy"
    pulumi = (VENV / "pulumi-bin").read_text().strip()
    path = after["PATH"].split(os.pathsep)
    assert path[:2] == [f"{VENV}/bin", pulumi] or (path[0] == f"{VENV}/bin" and pulumi in path)
    assert differences(before, after).keys() - {"PATH"} == {
        "VIRTUAL_ENV",
        "PULUMI_BACKEND_URL",
        "PULUMI_CONFIG_PASSPHRASE_FILE",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION",
        "PULUMI_HOME",
        "PULUMI_SKIP_UPDATE_CHECK",
    }
    assert after["VIRTUAL_ENV"] == str(VENV)
    assert after["PULUMI_HOME"] == str(tmp_path / "home" / ".pulumi")
    assert after["PULUMI_BACKEND_URL"] == f"file://{state}/pulumi"
    assert after["PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION"] == "true"
    passphrase = Path(after["PULUMI_CONFIG_PASSPHRASE_FILE"])
    assert passphrase == state / "passphrase"
    assert len(passphrase.read_text().strip()) >= 40
    assert stat.S_IMODE(passphrase.stat().st_mode) == 0o600
    assert stat.S_IMODE((state / "pulumi").stat().st_mode) == 0o700


def test_to_source_it_again_changes_nothing(activate: Activate) -> None:
    once = activate()
    passphrase = Path(once["PULUMI_CONFIG_PASSPHRASE_FILE"]).read_text()
    twice = activate(f"source {ROOT}/tools/activate; cd {ROOT}/tools; source ./activate")
    assert differences(once, twice).keys() <= {"PWD", "OLDPWD"}
    assert Path(twice["PULUMI_CONFIG_PASSPHRASE_FILE"]).read_text() == passphrase


@pytest.mark.parametrize(
    "more",
    [
        {"PULUMI_BACKEND_URL": "s3://ours"},
        {"PULUMI_CONFIG_PASSPHRASE": ""},
        {"PULUMI_CONFIG_PASSPHRASE_FILE": "/of/mine"},
        {"PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "false"},
        {"PULUMI_HOME": "/elsewhere"},
    ],
    ids=lambda more: next(iter(more)),
)
def test_what_the_user_has_set_stays(activate: Activate, more: dict[str, str]) -> None:
    after = activate(**more)
    assert {name: after[name] for name in more} == more
    if "PULUMI_BACKEND_URL" in more or "PULUMI_CONFIG_PASSPHRASE" in more:
        assert "PULUMI_CONFIG_PASSPHRASE_FILE" not in after


def test_a_login_elsewhere_stays(activate: Activate, tmp_path: Path) -> None:
    home = tmp_path / "home" / ".pulumi"
    home.mkdir(parents=True)
    (home / "credentials.json").write_text('{"current": "https://api.pulumi.com", "accessTokens": {}}')
    after = activate()
    assert "PULUMI_BACKEND_URL" not in after
    assert "PULUMI_CONFIG_PASSPHRASE_FILE" not in after
    assert after["PATH"].startswith(f"{VENV}/bin")
    assert not (tmp_path / "home" / ".local").exists()


def test_where_nothing_is_set_up_it_says_so_and_the_shell_goes_on(shell: list[str], tmp_path: Path) -> None:
    (tmp_path / "a clone" / "tools").mkdir(parents=True)
    script = tmp_path / "a clone" / "tools" / "activate"
    script.write_text((ROOT / "tools/activate").read_text())
    text = f"source '{script}' || echo \"$?: going on\"; command -v _tfdeploy_activate || true"
    done = run([*shell, text], tmp_path, clean_environment(tmp_path / "home"))
    expected = f"tfdeploy is not set up in {tmp_path}/a clone: run 'make setup' there first\n1: going on\n"
    assert done.output == expected

    (script.parents[1] / ".venv").mkdir()
    (script.parents[1] / ".venv" / "pulumi-bin").write_text("/gone\n")
    done = run([*shell, text], tmp_path, clean_environment(tmp_path / "home"))
    assert "pulumi is no longer in /gone: run 'make setup'" in done.output
    assert "1: going on" in done.output
