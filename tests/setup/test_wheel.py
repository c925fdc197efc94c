"""A wheel, built from the source distribution and installed with the `local` extra into an environment of its own, outside a clone."""

import json
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.pages import blocks
from tests.setup import programs
from tests.setup.clones import ROOT, Done, clean_environment, run
from tests.setup.plugin_server import plugin_server
from tools.provision.lockfile import part, roots

pytestmark = pytest.mark.full

BUILD = [sys.executable, "-m", "hatchling", "build", "-d"]


@dataclass(frozen=True)
class User:
    """A user with an environment in which the wheel is installed."""

    folder: Path
    env: Mapping[str, str]

    @property
    def venv(self) -> Path:
        return self.folder / "environment"

    def bash(self, text: str, cwd: Path | None = None, **more: str) -> Done:
        """Run commands in the activated environment."""
        script = f'source "{self.venv}/bin/activate" && {text}'
        return run(["bash", "-c", script], cwd or self.folder, {**self.env, **more})

    def python(self, text: str) -> str:
        """What a program prints on stdout; an error fails the test."""
        python = self.venv / "bin" / "python"
        done = subprocess.run(
            [python, "-c", text], cwd=self.folder, env=self.env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source distribution, as it is built from the clone."""
    folder = tmp_path_factory.mktemp("wheel")
    done = run([*BUILD, str(folder), "-t", "sdist"], ROOT, clean_environment(folder / "home"))
    assert done.exit_code == 0, done.output
    return next(folder.glob("*.tar.gz"))


@pytest.fixture(scope="module")
def wheel(sdist: Path) -> Path:
    """The wheel, as it is built from the source distribution."""
    folder = sdist.parent
    subprocess.run(["tar", "-xf", sdist, "-C", folder], check=True)
    source = folder / sdist.name.removesuffix(".tar.gz")
    done = run([*BUILD, str(folder), "-t", "wheel"], source, clean_environment(folder / "home"))
    assert done.exit_code == 0, done.output
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def user(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[User]:
    """The wheel with its `local` extra in a fresh environment, in the versions that the lock has."""
    folder = tmp_path_factory.mktemp("user")
    pulumi = (ROOT / ".venv" / "pulumi-bin").read_text().strip()
    env = clean_environment(folder / "home")
    env |= {
        "PATH": f"{pulumi}:{env['PATH']}",
        "PULUMI_BACKEND_URL": f"file://{folder}/home",
        "PULUMI_CONFIG_PASSPHRASE": "",
        "PULUMI_HOME": f"{folder}/home/.pulumi",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
    }
    found = User(folder, env)
    pins = folder / "constraints.txt"
    pins.write_text("\n".join(_pins()))
    try:
        made = run([sys.executable, "-m", "venv", str(found.venv)], folder, env)
        assert made.exit_code == 0, made.output
        # uv has them from the set-up. pip, which users have, adds the wheel, and finds that nothing else is missing.
        others = [sys.executable, "-m", "uv", "pip", "install", "--python", str(found.venv), "--requirement", str(pins)]
        done = run(others, folder, env)
        assert done.exit_code == 0, done.output
        done = found.bash(f"pip install --no-compile --constraint '{pins}' '{wheel}[local]'")
        assert re.search("^Successfully installed pulumi-tfdeploy-[0-9.]+$", done.output, re.MULTILINE), done.output
        yield found
    finally:
        subprocess.run(["rm", "-rf", found.venv], check=True)


def _pins() -> list[str]:
    """The lock without its hashes: pip wants a hash of the wheel too where it gets any."""
    lock = part((ROOT / "requirements.lock").read_text(), roots((ROOT / "pyproject.toml").read_text(), ["local"]))
    return [line.rstrip(" \\") for line in lock.splitlines() if re.match("[a-z0-9]", line)]


def test_the_wheel_has_every_file_of_the_package_and_no_other(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    listed = run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "tfdeploy"],
        ROOT,
        clean_environment(wheel.parent),
    )
    sources = {name for name in listed.output.split() if (ROOT / name).exists()}
    assert {"tfdeploy/py.typed", "tfdeploy/agent/main.py"} <= sources
    # Pulumi looks for this file in a package of the distribution's name.
    moved = {"tfdeploy/pulumi-plugin.json"}
    assert names == sources - moved | {"pulumi_tfdeploy/pulumi-plugin.json"}


def test_the_package_index_would_take_both(sdist: Path, wheel: Path) -> None:
    """The metadata is complete, README is rendered, and the licences are included."""
    check = [sys.executable, "-m", "twine", "--no-color", "check", "--strict", str(sdist), str(wheel)]
    done = run(check, wheel.parent, clean_environment(wheel.parent / "home"))
    assert done.exit_code == 0, done.output
    assert done.output.count("PASSED") == 2, done.output
    with zipfile.ZipFile(wheel) as archive:
        licences = {name.partition("/licenses/")[2] for name in archive.namelist() if "/licenses/" in name}
        (metadata,) = (archive.read(name).decode() for name in archive.namelist() if name.endswith("/METADATA"))
    assert licences == {"LICENSE", "NOTICE"}
    assert "License-Expression: Apache-2.0" in metadata.splitlines()
    with tarfile.open(sdist) as source:
        files = {name.partition("/")[2] for name in source.getnames()}
    assert {"LICENSE", "NOTICE", "README.md", "CHANGELOG.md", "tfdeploy/py.typed"} <= files


def test_its_data_files_and_sources_are_found(user: User) -> None:
    installed = user.python("import tfdeploy; print(tfdeploy.__file__)")
    assert installed.startswith(str(user.venv))
    assert (
        float(
            user.python(
                "from tfdeploy.backends.ec2 import costs; print(costs.instance_price('m7i.large', 'us-west-2'))"
            )
        )
        > 0
    )
    user.python("from tfdeploy.backends import zipapp; open('watchdog.pyz', 'wb').write(zipapp.watchdog())")
    # It is imported and not run: its commands change the machine.
    code = "import sys; sys.path.insert(0, 'watchdog.pyz'); from watchdog import main; print(main.prepare.__name__)"
    assert run([sys.executable, "-I", "-S", "-c", code], user.folder, {}).output == "prepare\n"
    assert user.bash("python -c 'import docker'").exit_code != 0  # the extra of another backend


def test_its_programs_answer(user: User) -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert user.bash("tfdeploy --version").output == f"tfdeploy {version}\n"
    doctor = json.loads(user.bash("tfdeploy doctor --json").output)
    checks = {(check["backend"], check["what"]): check for check in doctor["checks"]}
    assert checks["", "python"]["state"] == "ok"
    assert checks["local", "tensorflow"]["state"] == "ok"
    schema = user.bash('pulumi package get-schema "$(command -v pulumi-resource-tfdeploy)"')
    assert schema.exit_code == 0, schema.output
    assert list(json.loads(schema.output)["resources"]) == ["tfdeploy:index:TensorFlowCluster"]


def test_readmes_quick_start_works_as_it_is_typed(user: User, tmp_path: Path) -> None:
    """With real TensorFlow, without an account of Pulumi, and Pulumi looks for no plugin."""
    (typed,) = [block for block in blocks(ROOT / "README.md", "console") if block.heading == "Quick start"]
    (own,) = [block for block in blocks(ROOT / "README.md", "bash") if block.heading == "Quick start"]
    login = own.text.splitlines()[-1].partition("  #")[0].strip()
    assert login.startswith("pulumi login --local && export ")
    assert typed.commands[-1] == "pulumi destroy"
    program = programs.write(tmp_path / "digits", programs.TRAINING)
    # Pulumi's own variable for `--yes`, so that the commands are those of README. Only the login is in another folder.
    prepared = (
        f"unset PULUMI_BACKEND_URL PULUMI_CONFIG_PASSPHRASE; export PULUMI_SKIP_CONFIRMATIONS=true; cd '{program}'"
    )
    login = login.replace("--local", f"file://{user.folder}/home")
    try:
        with plugin_server() as server:
            done = user.bash("\n".join([prepared, login, "set -ex", *typed.commands]), program, **server.env)
        assert done.exit_code == 0, done.output
        assert server.asked == []
    finally:
        user.bash(f"{prepared}; {login} && pulumi destroy --yes --skip-preview --non-interactive --stack dev", program)
    _, first, second = re.split(r"^\+ pulumi up$", done.output, flags=re.MULTILINE)
    assert "weight: 3\n" in first
    assert re.findall(r"^chief-0 \| step \d+ loss \d", first, re.MULTILINE)
    assert "Run succeeded: chief-0 succeeded." in first
    assert "9 unchanged" in second
    assert (program / "digits.html").exists()
    assert not list((user.folder / "home").glob("**/clusters/digits-*")), "nothing is left"
