"""The program that is printed runs, and has what the TFJob has."""

from pathlib import Path
from typing import Any

import pulumi
import pytest
import yaml

import tfdeploy
from tests.pages import ROOT, blocks
from tests.unit.cases import check_golden
from tests.unit.cli.calling import call
from tfdeploy.errors import SpecError

PAGE = ROOT / "docs/how-to/from-tfjob.md"
FILE = Path(__file__).parents[1] / "tfjob/dist_mnist.yaml"


def printed(file: Path) -> Any:
    return call(["import-tfjob", str(file)])


def test_a_program_reads_as_reviewed() -> None:
    result = printed(FILE)
    check_golden("tfjob_program", result.stdout.rstrip())
    assert result.stderr.splitlines() == [
        "27 fields of the TFJob: see the comments of the program.",
        "Before `pulumi up`: pulumi config set tfdeploy:backend kubernetes",
        "And: pulumi config set --secret token",
        "And: pulumi config set --secret API_KEY",
    ]


def test_the_page_shows_what_is_printed(tmp_path: Path) -> None:
    (manifest,), (program,) = ([block.text for block in blocks(PAGE, language)] for language in ("yaml", "python"))
    (tmp_path / "job.yaml").write_text(manifest)
    assert program in printed(tmp_path / "job.yaml").stdout


def test_the_program_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []

    class Recorded:
        state = "running"

        def __init__(self, name: str, **args: Any) -> None:
            made.append((name, args))

    exports: dict[str, Any] = {}
    monkeypatch.setattr(tfdeploy, "TensorFlowCluster", Recorded, raising=False)
    monkeypatch.setattr(pulumi, "export", exports.__setitem__)
    monkeypatch.setattr(pulumi.Config, "require_secret", lambda _, name: f"secret {name}")
    exec(compile(printed(FILE).stdout, "__main__.py", "exec"), {})
    ((name, args),) = made
    assert (name, args["workers"], args["secrets"]["API_KEY"]) == ("dist-mnist", 2, "secret API_KEY")
    assert exports == {"dist-mnist": "running"}


def test_several_jobs_of_a_file_or_of_a_list(tmp_path: Path) -> None:
    manifest = next(iter(yaml.safe_load_all(FILE.read_text())))
    second = {**manifest, "metadata": {"name": "class"}}
    (tmp_path / "jobs.yaml").write_text(yaml.safe_dump({"kind": "List", "items": [manifest, second]}))
    program = printed(tmp_path / "jobs.yaml").stdout
    assert 'dist_mnist = TensorFlowCluster(\n    "dist-mnist"' in program
    assert 'class_ = TensorFlowCluster(\n    "class"' in program


def test_arguments_that_are_refused_are_noted(tmp_path: Path) -> None:
    text = FILE.read_text().replace("name: dist-mnist", f"name: {'long' * 15}")
    (tmp_path / "job.yaml").write_text(text)
    assert "`pulumi up` refuses this" in printed(tmp_path / "job.yaml").stdout


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        (None, "No such file"),
        ("a: [", "not YAML"),
        ("- 1", "not a manifest"),
        ("kind: Job\napiVersion: batch/v1", "there is no TFJob"),
        ("kind: TFJob\napiVersion: kubeflow.org/v1beta2", "'kubeflow.org/v1beta2'"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str | None, wrong: str) -> None:
    file = tmp_path / "job.yaml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(SpecError) as error:
        printed(file)
    assert wrong in str(error.value)
