"""A set-up installs what its extras need, and nothing more; the lock is one for all, and uv asks the index that pip would."""

import re
import sys
import tomllib
from importlib.metadata import requires
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.setup.clones import ROOT
from tools.provision import engine
from tools.provision import packages as packages_of_set_up
from tools.provision.__main__ import main
from tools.provision.lockfile import part, roots

LOCK = (ROOT / "requirements.lock").read_text()
PYPROJECT = (ROOT / "pyproject.toml").read_text()
EXTRAS = ("local", "docker", "ec2", "kubernetes", "dev")
CLOUDS = {"boto3", "docker", "moto", "mypy", "pulumi-aws", "pulumi-docker", "pytest"}


def packages(*extras: str) -> set[str]:
    """The packages that a set-up for these extras installs."""
    return set(re.findall(r"^([a-z0-9.-]+)==", part(LOCK, roots(PYPROJECT, extras)), re.MULTILINE))


def needed(*extras: str) -> set[str]:
    """The same by what the installed packages say of themselves."""
    listed = tomllib.loads(PYPROJECT)["project"]["optional-dependencies"]
    waiting = [Requirement(text) for extra in extras for text in listed[extra]]
    waiting = [need for need in waiting if _holds(need, "")]
    known: dict[str, Requirement] = {}
    while waiting:
        need = waiting.pop()
        if str(need) not in known:
            known[str(need)] = need
            found = map(Requirement, requires(need.name) or [])
            waiting += [one for one in found if any(_holds(one, extra) for extra in ("", *need.extras))]
    return {canonicalize_name(need.name) for need in known.values()}


def _holds(need: Requirement, extra: str) -> bool:
    return need.marker is None or need.marker.evaluate({"extra": extra})


def test_local_needs_no_package_of_a_cloud_or_of_the_tests() -> None:
    assert packages("local") & CLOUDS == set()
    assert packages("docker") & CLOUDS == {"docker", "pulumi-docker"}
    assert packages("ec2") & CLOUDS == {"boto3", "docker", "pulumi-aws", "pulumi-docker"}


def test_what_make_check_needs_is_installed_without_tensorflow_and_without_pulumis_engine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    installed: list[Any] = []
    monkeypatch.setattr(packages_of_set_up, "install", lambda root, venv, extras: installed.append(extras))
    monkeypatch.setattr(engine, "ensure", lambda root: pytest.fail("the engine was asked for"))
    monkeypatch.setattr(sys, "argv", ["provision", "check"])
    assert main() == 0
    assert not {"tensorflow", "tensorflow-cpu", "pulumi-aws"} & packages(*installed[0])


def test_all_extras_together_need_the_whole_lock() -> None:
    assert packages(*EXTRAS) == set(re.findall(r"^([a-z0-9.-]+)==", LOCK, re.MULTILINE))


@pytest.mark.parametrize("extra", EXTRAS)
def test_what_the_packages_themselves_require_is_among_them(extra: str) -> None:
    assert needed(extra) - packages(extra) == set()
    assert {"pip", "pulumi", "hatchling"} <= packages(extra)


def test_each_entry_keeps_its_marker_and_its_hashes() -> None:
    for entry in re.split(r"^(?=[a-z0-9])", part(LOCK, roots(PYPROJECT, ["local"])), flags=re.MULTILINE)[1:]:
        assert entry in LOCK
        assert "--hash=sha256:" in entry


def test_a_package_that_the_lock_does_not_have_is_an_error() -> None:
    with pytest.raises(KeyError, match="pulumi"):
        part("absl-py==2.5.1 \\\n    --hash=sha256:0\n    # via keras\n", ["pulumi"])


def test_uv_asks_the_index_that_pip_is_configured_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pip.conf").write_text(
        "[global]\nindex-url = https://a.example/simple\nextra-index-url =\n  https://b.example\n  https://c.example\n"
    )
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    for name in ("PIP_CERT", "PIP_INDEX_URL", "SSL_CERT_FILE", *packages_of_set_up.UV_SETTINGS.values()):
        monkeypatch.delenv(name, raising=False)
    expected = {"UV_DEFAULT_INDEX": "https://a.example/simple", "UV_INDEX": "https://b.example https://c.example"}
    found = packages_of_set_up.uv_settings()
    assert {name: found[name].strip() for name in expected} == expected
    monkeypatch.setenv("PIP_INDEX_URL", "https://nearer.example")
    monkeypatch.setenv("PIP_CERT", "/etc/ours.pem")
    monkeypatch.setenv("UV_INDEX", "https://mine.example")
    found = packages_of_set_up.uv_settings()
    assert (found["UV_DEFAULT_INDEX"], found["SSL_CERT_FILE"]) == ("https://nearer.example", "/etc/ours.pem")
    assert "UV_INDEX" not in found
