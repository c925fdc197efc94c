"""Which image each job's tasks run, and what is built for it."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.unit.cases import spec
from tests.unit.props import cluster
from tfdeploy.backends.docker import images
from tfdeploy.errors import SpecError
from tfdeploy.spec import ClusterSpec

CONTENT = "0123456789abcdef0123456789abcdef"

REPOSITORY = re.compile(r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*")
"""A part of an image's name: https://github.com/distribution/reference, `path-component`."""

MANY: dict[str, Any] = {"chief": 1, "ps": 1, "workers": 2}


def run(asked: ClusterSpec, tag: str = "") -> dict[str, str]:
    """Job to the image that its tasks run."""
    return {job.name: images.image(cluster(), asked, job, tag) for job in asked.jobs}


def built(asked: ClusterSpec, tag: str = "") -> dict[str, list[str]]:
    """Job to the images that are built for it."""
    return {job: [build.name for build in made] for job, made in images.builds(cluster(), asked, tag).items()}


def test_the_default_has_gpus_where_they_are_asked_for() -> None:
    assert run(spec(ps=1, workers=1, jobs={"worker": {"gpus": 1}})) == {
        "ps": "tensorflow/tensorflow:2.20.0",
        "worker": "tensorflow/tensorflow:2.20.0-gpu",
    }


def test_a_jobs_image_stands_over_the_clusters() -> None:
    asked = spec(ps=1, workers=1, image="mine:1", jobs={"worker": {"image": "mine:gpu", "gpus": 1}})
    assert run(asked) == {"ps": "mine:1", "worker": "mine:gpu"}
    assert built(asked) == {}


def test_what_is_built_is_named_by_its_content_and_pushed_to_the_registry() -> None:
    asked = spec(build="image", registry="registry.example.com/team/", **MANY, jobs={"ps": {"image": "mine:1"}})
    name = "registry.example.com/team/project_dev_mnist:0123456789abcdef"
    assert run(asked, CONTENT) == {"chief": name, "ps": "mine:1", "worker": name}
    assert built(asked, CONTENT) == {"chief": [name], "worker": [name]}


def test_without_a_registry_it_has_a_name_of_this_engine() -> None:
    assert built(spec(build="image", workers=1), CONTENT) == {"worker": ["project_dev_mnist:0123456789abcdef"]}


def test_requirements_are_a_layer_of_their_own_over_whatever_there_is() -> None:
    plain, made = spec(workers=1, requirements=["six"]), spec(workers=1, requirements=["six"], build="image")
    (over_default,) = images.builds(cluster(), plain, "")["worker"]
    below, over_build = images.builds(cluster(), made, CONTENT)["worker"]
    assert over_default.dockerfile.splitlines()[0] == "FROM tensorflow/tensorflow:2.20.0"
    assert over_build.dockerfile.splitlines()[0] == f"FROM {below.name}"
    assert run(plain) == {"worker": over_default.name}
    assert run(made, CONTENT) == {"worker": over_build.name}
    assert over_default.name != over_build.name


def test_the_layer_changes_with_base_and_requirements_and_with_nothing_else() -> None:
    first = run(spec(requirements=["six"], **MANY))
    assert len(set(first.values())) == 1
    assert run(spec(requirements=["six"], **MANY, env={"A": "1"}, code="other")) == first
    assert not set(first.values()) & set(run(spec(requirements=["six==1.17.0"], **MANY)).values())
    assert not set(first.values()) & set(run(spec(requirements=["six"], image="mine:1", **MANY)).values())
    assert len(set(run(spec(requirements=["six"], **MANY, jobs={"worker": {"gpus": 1}})).values())) == 2


@pytest.mark.parametrize(
    "lines", [["pandas==2.2.3", "six>=1"], ["six; python_version >= '3.8'"], ['six; extra == "a b"', "numpy[$HOME]"]]
)
def test_a_shell_hands_each_requirement_to_pip_as_it_was_written(lines: list[str]) -> None:
    (build,) = images.builds(cluster(), spec(workers=1, requirements=lines), "")["worker"]
    command = build.dockerfile.splitlines()[1].partition("RUN ")[2]
    assert shlex.split(command)[-len(lines) :] == lines


@given(
    st.from_regex(r"\A[A-Za-z0-9_.-]{1,100}\Z"),
    st.from_regex(r"\A[A-Za-z0-9_.-]{1,100}\Z"),
    st.from_regex(r"\A[A-Za-z]([A-Za-z0-9-]{0,38}[A-Za-z0-9])?\Z"),
)
@example("a-", "b", "mnist")
@example("A_", "_b", "M")
def test_a_registry_takes_every_name(project: str, stack: str, name: str) -> None:
    asked = spec(name, build="image", workers=1)
    made = images.builds(cluster(project, stack, name), asked, CONTENT)["worker"][0].name
    assert REPOSITORY.fullmatch(made.partition(":")[0])


def test_the_folder_to_build_is_the_users_or_holds_the_dockerfile_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    layer = images.Build("mnist:0123", "", "FROM base\n")
    folder = Path(images.write_context(layer))
    assert folder.is_relative_to(tmp_path)
    assert {path.name: path.read_text() for path in folder.iterdir()} == {"Dockerfile": "FROM base\n"}
    assert images.write_context(images.Build("mnist:0123", str(tmp_path / "image"))) == str(tmp_path / "image")


def test_content_is_that_of_the_folder(tmp_path: Path) -> None:
    assert images.content(spec(workers=1)) == ""
    (tmp_path / "Dockerfile").write_text("FROM base\n")
    before = images.content(spec(workers=1, build=str(tmp_path)))
    assert before == images.content(spec("other", workers=1, build=str(tmp_path)))
    (tmp_path / "Dockerfile").write_text("FROM other\n")
    assert before != images.content(spec(workers=1, build=str(tmp_path)))


def test_a_missing_folder_is_refused_by_its_argument(tmp_path: Path) -> None:
    with pytest.raises(SpecError) as refusal:
        images.content(spec(workers=1, build=str(tmp_path / "none")))
    assert refusal.value.where == "mnist: build"
