"""What the package index and lawyers read: the licence, its notices, and the bounds of the dependencies."""

import json
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
