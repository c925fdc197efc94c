"""The image of each job, and the images that are built."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.unit.cases import spec
from tests.unit.props import cluster
from tfdeploy.backends.docker import containers
from tfdeploy.backends.image_content import DEFAULT_IMAGE
from tfdeploy.spec.cluster import ClusterSpec

CONTENT = "0123456789abcdef0123456789abcdef"

REPOSITORY = re.compile(r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*")
"""A part of an image's name: https://github.com/distribution/reference, `path-component`."""

MANY: dict[str, Any] = {"chief": 1, "ps": 1, "workers": 2}


def run(requested: ClusterSpec, tag: str = "") -> dict[str, str]:
    return {job.name: containers.job_image(cluster(), requested, job, tag) for job in requested.jobs}


def built(requested: ClusterSpec, tag: str = "") -> dict[str, list[str]]:
    return {job: [build.name for build in chain] for job, chain in containers.builds(cluster(), requested, tag).items()}


def test_the_default_has_gpus_where_they_are_asked_for() -> None:
    assert run(spec(ps=1, workers=1, jobs={"worker": {"gpus": 1}})) == {
        "ps": "tensorflow/tensorflow:2.20.0",
        "worker": "tensorflow/tensorflow:2.20.0-gpu",
    }


def test_a_jobs_image_stands_over_the_clusters() -> None:
    requested = spec(
        ps=1, workers=1, container={"image": "mine:1"}, jobs={"worker": {"container": {"image": "mine:gpu"}, "gpus": 1}}
    )
    assert run(requested) == {"ps": "mine:1", "worker": "mine:gpu"}
    assert built(requested) == {}


def test_what_is_built_is_named_by_its_content_and_pushed_to_the_registry() -> None:
    requested = spec(
        container={"build": "image", "registry": "registry.example.com/team/"},
        **MANY,
        jobs={"ps": {"container": {"image": "mine:1"}}},
    )
    name = "registry.example.com/team/mnist-k3v9x2abcd:0123456789abcdef"
    assert run(requested, CONTENT) == {"chief": name, "ps": "mine:1", "worker": name}
    assert built(requested, CONTENT) == {"chief": [name], "worker": [name]}


def test_requirements_are_a_layer_of_their_own_over_whatever_there_is() -> None:
    plain, with_build = (spec(workers=1, requirements=["six"], container=own) for own in ({}, {"build": "image"}))
    (over_default,) = containers.builds(cluster(), plain, "")["worker"]
    below, over_build = containers.builds(cluster(), with_build, CONTENT)["worker"]
    assert over_default.dockerfile.splitlines()[0] == "FROM tensorflow/tensorflow:2.20.0"
    assert over_build.dockerfile.splitlines()[0] == f"FROM {below.name}"
    assert run(plain) == {"worker": over_default.name}
    assert run(with_build, CONTENT) == {"worker": over_build.name}
    assert over_default.name != over_build.name


def test_the_layer_changes_with_base_and_requirements_and_with_nothing_else() -> None:
    first = run(spec(requirements=["six"], **MANY))
    assert len(set(first.values())) == 1
    assert run(spec(requirements=["six"], **MANY, env={"A": "1"}, code="other")) == first
    for other in ({"requirements": ["six==1.17.0"]}, {"container": {"image": "mine:1"}}):
        assert not {*first.values()} & {*run(spec(**{"requirements": ["six"], **MANY, **other})).values()}
    assert len(set(run(spec(requirements=["six"], **MANY, jobs={"worker": {"gpus": 1}})).values())) == 2


@pytest.mark.parametrize(
    "lines", [["pandas==2.2.3", "six>=1"], ["six; python_version >= '3.8'"], ['six; extra == "a b"', "numpy[$HOME]"]]
)
def test_a_shell_hands_each_requirement_to_pip_as_it_was_written(lines: list[str]) -> None:
    (build,) = containers.builds(cluster(), spec(workers=1, requirements=lines), "")["worker"]
    command = build.dockerfile.partition("RUN ")[2].replace("\\\n", "")
    assert shlex.split(command)[-len(lines) :] == lines


@given(
    st.from_regex(r"\A[A-Za-z0-9_.-]{1,100}\Z"),
    st.from_regex(r"\A[A-Za-z0-9_.-]{1,100}\Z"),
    st.from_regex(r"\A[A-Za-z]([A-Za-z0-9-]{0,38}[A-Za-z0-9])?\Z"),
)
@example("a-", "b", "mnist")
@example("A_", "_b", "M")
def test_a_registry_takes_every_name(project: str, stack: str, name: str) -> None:
    requested = spec(name, container={"build": "image"}, workers=1)
    image = containers.builds(cluster(project, stack, name), requested, CONTENT)["worker"][0].name
    assert REPOSITORY.fullmatch(image.partition(":")[0])


PAGES_AND_RECIPES = (
    "docs/how-to/gpus.md",
    "docs/tutorial/docker.md",
    "images/README.md",
    "images/cpu/requirements.txt",
    "images/gpu/requirements.txt",
    "programs/marathon_mnist/train/Dockerfile",
)


@pytest.mark.parametrize("name", PAGES_AND_RECIPES)
def test_pages_and_recipes_name_the_tensorflow_of_the_default_image(name: str) -> None:
    root = Path(__file__).parents[4]
    text = (root / name).read_text()
    named = re.findall(r"tensorflow(?:-cpu|/tensorflow|\[and-cuda\])?(?::|==)(2\.\d+\.\d+)", text)
    assert named
    assert set(named) - {"2.16.2"} == {DEFAULT_IMAGE.rpartition(":")[2]}, "2.16.2 is that of images/hdfs"


def test_another_tensorflow_on_this_computer_than_in_the_default_images_is_named() -> None:
    with_gpu = spec(workers=1, ps=1, jobs={"worker": {"gpus": 1}})
    default = "tensorflow/tensorflow:2.20.0"
    assert containers.version_notices(with_gpu, "2.21.0") == [
        f"TensorFlow 2.20.0 is in {default} and {default}-gpu, but this computer has 2.21.0. container.image sets another image"
    ]
    assert containers.version_notices(with_gpu, "2.20.0") == []
    assert containers.version_notices(with_gpu, "") == []
    assert containers.version_notices(spec(workers=1, container={"image": "mine:1"}), "2.21.0") == []
    assert containers.installed_version().startswith("2.")
