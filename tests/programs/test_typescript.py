"""A program in TypeScript fits the SDK that is made for it."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.debian import NotInstalled, provided
from tests.integration.conftest import ROOT
from tools.provision.languages import NODEJS_SDK
from tools.reference import SCHEMA

pytestmark = pytest.mark.full


def test_both_languages_train_the_same() -> None:
    texts = [
        Path(ROOT, "programs", name, "train", "train.py").read_text() for name in ("mnist_yaml", "mnist_typescript")
    ]
    assert texts[0] == texts[1]


@pytest.fixture(scope="module")
def typescript(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program in TypeScript in a copy, with the SDK that is made from the schema, and what both need from npm."""
    try:
        provided("npm")
    except NotInstalled as reason:
        pytest.fail(str(reason), pytrace=False)
    folder = tmp_path_factory.mktemp("typescript") / "program"
    shutil.copytree(
        ROOT / "programs" / "mnist_typescript", folder, ignore=shutil.ignore_patterns("node_modules", "sdks")
    )
    sdk = folder / "sdks" / "tfdeploy"
    if shutil.which("pulumi-language-nodejs"):
        made = tmp_path_factory.mktemp("sdk")
        run(folder, "pulumi", "package", "gen-sdk", str(SCHEMA), "--language", "nodejs", "--out", str(made))
        shutil.copytree(made / "nodejs", sdk)
    else:
        run(folder, NODEJS_SDK, str(SCHEMA), str(sdk))
    # Not its own scripts: they would build it before what it needs is there.
    run(folder, "npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock")
    run(folder, "npx", "--no-install", "tsc", "--project", "sdks/tfdeploy")
    return folder


def run(folder: Path, *command: str) -> None:
    """Run it in the folder; fails the test with what it said."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"


def checked(folder: Path) -> str:
    """What the type checker says of the program."""
    done = subprocess.run(
        ["npx", "--no-install", "tsc", "--noEmit"], cwd=folder, capture_output=True, text=True, check=False
    )
    return done.stdout


def test_mnist_in_typescript_fits_the_sdk_that_is_of_the_schema_in_the_repository(typescript: Path) -> None:
    about = json.loads((typescript / "sdks" / "tfdeploy" / "package.json").read_text())
    assert about["pulumi"]["name"] == "tfdeploy"
    assert about["version"] == json.loads(SCHEMA.read_text())["version"]
    assert checked(typescript) == ""


def test_a_wrong_program_in_typescript_is_found(typescript: Path) -> None:
    program = typescript / "index.ts"
    text = wrong = program.read_text()
    for right, slip in (('code: "train"', "code: 5"), ("mnist.metrics", "mnist.scores")):
        assert right in wrong
        wrong = wrong.replace(right, slip)
    program.write_text(wrong)
    try:
        complaints = checked(typescript)
    finally:
        program.write_text(text)
    assert "Type 'number' is not assignable to type 'Input<string" in complaints
    assert "Property 'scores' does not exist on type 'TensorFlowCluster'" in complaints
