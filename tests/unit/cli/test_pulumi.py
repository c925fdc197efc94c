"""What is read from Pulumi's files, and what becomes of its errors."""

import os
from pathlib import Path

import pytest

from tfdeploy.cli.pulumi import error_of, is_locked, project_name, secrets_provider, settings, stream_pulumi
from tfdeploy.errors import BackendError, CommandError, NotFound

STACK = """\
secretsprovider: "awskms://alias/a b"
encryptionsalt: v1:aaa
config:
  tfdeploy:backend: docker
  tfdeploy:workers: 2
  tfdeploy:command: python train.py --name "two words"   # a comment
  tfdeploy:comment: >-
    several
    lines
  tfdeploy:ec2:
    region: us-west-2
    budget: 1.5
  aws:region: "eu-central-1"
  tfdeploy:token:
    secure: v1:bbb
"""


def test_an_update_that_cannot_print_ends_before_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pulumi").write_text("#!/bin/sh\nseq 20000\ntouch ended\nexit 3\n")
    (tmp_path / "pulumi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert stream_pulumi(tmp_path, ["up"], lambda _: None) == (3, [str(number) for number in range(1, 20001)])
    (tmp_path / "ended").unlink()

    def closed(_: str) -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        stream_pulumi(tmp_path, ["up"], closed)
    assert (tmp_path / "ended").exists()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A project file, with the file of a stack beside it."""
    (tmp_path / "Pulumi.dev.yaml").write_text(STACK)
    path = tmp_path / "Pulumi.yaml"
    path.write_text("name: 'my project' # its name\nruntime: python\n")
    return path


def test_yaml_is_read_by_a_parser(file: Path) -> None:
    assert project_name(file) == "my project"
    assert secrets_provider(file, "dev") == "awskms://alias/a b"
    assert settings(file, "dev") == {
        "tfdeploy:backend": "docker",
        "tfdeploy:workers": "2",
        "tfdeploy:command": 'python train.py --name "two words"',
        "tfdeploy:comment": "several lines",
        "tfdeploy:ec2.region": "us-west-2",
        "tfdeploy:ec2.budget": "1.5",
        "aws:region": "eu-central-1",
    }


@pytest.mark.parametrize("text", ["", "just text", "- a\n- b", "config: [1]", "a: b: c", "config:\n", "\x00", "name:"])
def test_files_that_are_not_valid_have_no_values(text: str, tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.yaml"
    for path in (file, tmp_path / "Pulumi.dev.yaml"):
        path.write_text(text)
    assert (project_name(file), secrets_provider(file, "dev"), settings(file, "dev")) == ("", "", {})


def test_a_stack_without_a_file_has_no_values(file: Path) -> None:
    assert settings(file, "production") == settings(file, "") == settings(None, "dev") == {}
    assert project_name(file.with_name("none")) == ""


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("error: the stack is currently locked by 1 lock(s)", BackendError),
        ("error: no stack named 'dev' found", NotFound),
        ("error: something else", CommandError),
    ],
)
def test_errors_of_pulumi_have_kinds(text: str, kind: type[Exception]) -> None:
    assert type(error_of("dev", Path("/program"), 255, [text])) is kind


def test_the_lock_of_a_file_backend_is_a_file(tmp_path: Path) -> None:
    url = f"file://{tmp_path}?no_tmp_dir=true"
    assert is_locked("p", "dev", url) is False
    folder = tmp_path / ".pulumi/locks/organization/p/dev"
    folder.mkdir(parents=True)
    (folder / "a.json").touch()
    assert is_locked("p", "dev", url) is True
    assert is_locked("p", "dev", "https://api.pulumi.com") is None
