"""Names in stored states, registries and records: they are frozen since 0.1.0, because what an earlier version stored must be found."""

import base64
import json
import pickletools
import re
from collections.abc import Iterator
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from pulumi.dynamic import Resource
from pulumi.dynamic.dynamic import serialize_provider

from tests.releases.stored import StoredRelease, releases
from tfdeploy import code_archives, receipts, registry
from tfdeploy.agent.events import RECORD_DAMAGED, Event
from tfdeploy.agent.record.artifact_manifest import ArtifactList
from tfdeploy.agent.record.record import Record
from tfdeploy.agent.run_spec import RunSpec
from tfdeploy.agent.run_state import FormerTask, RunState
from tfdeploy.agent.settings import TaskSettings
from tfdeploy.backends.state_values import plain_values
from tfdeploy.cluster import TYPE
from tfdeploy.identity import find_stored
from tfdeploy.paths import state_folder
from tfdeploy.spec.backends import BACKENDS

RELEASES = releases(*BACKENDS)
DYNAMIC = "pulumi-python:dynamic/tfdeploy:"

PROVIDERS = {
    "Cleanup": "tfdeploy.resources CleanupProvider",
    "Task": "tfdeploy.resources TaskProvider",
    "Run": "tfdeploy.resources RunProvider",
    "Image": "tfdeploy.backends.docker.requirements_image RequirementsImageProvider",
    "RecordBucket": "tfdeploy.backends.ec2.record_bucket RecordBucketProvider",
    "SshKey": "tfdeploy.backends.ec2.ssh_key SshKeyProvider",
    "Swarm": "tfdeploy.backends.ec2.swarm SwarmProvider",
    "PodObjects": "tfdeploy.backends.kubernetes.resources PodObjectsProvider",
}
"""Type of each dynamic resource to the module and the class of its provider, both of which states have."""


def pickled_class(provider: str) -> str:
    """The module and the name of the class in a property `__provider`."""
    operations = pickletools.genops(base64.b64decode(provider))
    return " ".join([str(argument) for _, argument, _ in operations if isinstance(argument, str)][:2])


def test_the_component_has_the_type_of_0_1_0() -> None:
    assert TYPE == "tfdeploy:index:TensorFlowCluster"


def test_dynamic_resources_have_the_types_and_providers_that_states_have() -> None:
    for named in PROVIDERS.values():
        import_module(named.partition(" ")[0])
    modules = {sub.__name__: sub.__module__ for sub in Resource.__subclasses__()}
    types = {
        sub._resource_type_name: sub for sub in Resource.__subclasses__() if sub.__module__.startswith("tfdeploy.")
    }
    assert {f"dynamic/tfdeploy:{name}" for name in PROVIDERS} == set(types), modules
    for named in PROVIDERS.values():
        module, name = named.split()
        assert pickled_class(serialize_provider(getattr(import_module(module), name)())) == named


@pytest.fixture(params=RELEASES, ids=lambda release: f"{release.version}-{release.backend}")
def release(request: pytest.FixtureRequest) -> StoredRelease:
    """What one version stored of a cluster of one backend."""
    found: StoredRelease = request.param
    return found


def test_every_version_has_a_file_for_each_backend() -> None:
    files = {(release.version, release.backend) for release in RELEASES}
    versions = {version for version, _ in files}
    assert versions >= {"0.1.0", "0.2.0"}
    wanted = {(version, backend) for version in versions for backend in BACKENDS}
    assert files == wanted - {("0.1.0", "kubernetes")}, "which came with 0.2.0"


def test_the_stored_resources_have_types_and_providers_that_exist(release: StoredRelease) -> None:
    ours = [item for item in release.resources if "tfdeploy" in item["type"]]
    assert {item["type"] for item in ours if item["custom"] is False} == {TYPE}
    for item in ours:
        if item["type"] != TYPE:
            assert pickled_class(_open(item["inputs"]["__provider"])) == PROVIDERS[item["type"].removeprefix(DYNAMIC)]


def test_a_stored_cluster_is_found_with_its_place(release: StoredRelease) -> None:
    outputs = {item["urn"]: {"outputs": item.get("outputs", {})} for item in release.resources}
    found = find_stored(outputs, "test", TYPE)
    assert found is not None
    assert [place.cluster["backend"] for place in found.places] == [release.backend]
    (entry,) = release.texts("registry/*.json").values()
    assert json.loads(entry)["cluster"] == found.places[0].cluster


def test_stored_inputs_are_no_change(release: StoredRelease) -> None:
    for item in release.resources:
        if item["type"].startswith(DYNAMIC):
            module, name = PROVIDERS[item["type"].removeprefix(DYNAMIC)].split()
            provider = getattr(import_module(module), name)()
            news = plain_values(_open(item["inputs"]))
            change = provider.diff(item["id"], {**news, **plain_values(_open(item["outputs"]))}, news)
            assert not change.changes, item["urn"]
            assert not change.replaces, item["urn"]


def _open(value: Any) -> Any:
    """A value of a state with its secrets in clear."""
    if isinstance(value, dict):
        return json.loads(value["plaintext"]) if "plaintext" in value else {key: _open(v) for key, v in value.items()}
    return [_open(item) for item in value] if isinstance(value, list) else value


def as_json(value: Any) -> Any:
    """What is stored of a value."""
    return json.loads(json.dumps(value))


def lost(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """The path of each value of a stored document that another one does not have. Members may have been added."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name, value in before.items():
            yield from lost(value, after.get(name), f"{path}/{name}")
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for place, value in enumerate(before):
            yield from lost(value, after[place], f"{path}/{place}")
    elif before != after:
        yield path


FILES: dict[str, Any] = {
    "registry/*.json": lambda data: vars_of(registry._entry(data)),
    "receipts/*/*.json": lambda data: vars_of(receipts.from_dict(data)),
    "runs/*/run_state.json": lambda data: RunState.from_dict(data).to_dict(),
    "runs/*/run_state.copy": lambda data: RunState.from_dict(data).to_dict(),
    "runs/*/artifacts.json": lambda data: ArtifactList.from_dict(data).to_dict(),
    "tasks/*/task.json": lambda data: TaskSettings.from_dict(data).to_dict(),
}
"""Pattern of stored files to what is written again of what was read: a name that is not known any more is missing in it."""


def vars_of(value: Any) -> Any:
    """A dataclass as it is stored."""
    return asdict(value)


@pytest.mark.parametrize("pattern", FILES)
def test_every_member_of_a_stored_file_is_read(release: StoredRelease, pattern: str) -> None:
    texts = release.texts(pattern)
    assert texts or (release.backend, pattern) in ABSENT
    for text in texts.values():
        data = json.loads(text)
        assert {path.rpartition("/")[2] for path in lost(data, as_json(FILES[pattern](data)))} <= FORMER


FORMER = {"previous_train_dir", "quiet_timeout", "evaluator_quiet_timeout", "is_quiet", "lease"}
"""What only a submission had, as a record is restored before its run is submitted now; and what was withdrawn."""

ABSENT = {(backend, "tasks/*/task.json") for backend in ("docker", "ec2", "kubernetes")}
"""What has another place: tasks in containers have their settings in the container."""


def test_every_stored_event_is_read(release: StoredRelease) -> None:
    lines = [line for text in release.texts("runs/*/events.jsonl").values() for line in text.splitlines()]
    assert lines
    for line in lines:
        assert [*lost(json.loads(line), as_json(Event.from_dict(json.loads(line)).to_dict()))] == []


def test_removed_tasks_are_stored_as_in_0_1_0() -> None:
    removed = {
        "removed": {"worker-1": "launcher"},
        "removed_attempts": {"worker-1": 2},
        "removed_generations": {"worker-1": 3},
        "last_seen": {"worker-1": 1.5, "worker-2": 2.5},
    }
    stored = {**RunState(RunSpec("a", [], {}), 1.0).to_dict(), **removed}
    run = RunState.from_dict(stored)
    assert run.former == {"worker-1": FormerTask("launcher", 2, 3, 1.5), "worker-2": FormerTask(seen=2.5)}
    assert [*lost(stored, run.to_dict())] == []


RECORD = {
    "format",
    "record_id",
    "current",
    "runs/RUN/run_state.json",
    "runs/RUN/run_state.copy",
    "runs/RUN/events.jsonl",
    "runs/RUN/artifacts.json",
    "runs/RUN/logs/TASK/index.0.log",
    "runs/RUN/logs/TASK/stdout.0.log",
    "runs/RUN/artifacts/model/saved_model.pb",
}
"""Files of a record, as 0.1.0 names them."""


def record_files(release: StoredRelease) -> Iterator[str]:
    """The files of a record, without the names of runs and tasks."""
    for path in release.data["state"]:
        _, is_record, name = path.partition("/record/")
        if is_record:
            yield re.sub(r"(?<=^runs/)[^/]+", "RUN", re.sub(r"(?<=/logs/)[^/]+", "TASK", name))


def test_a_stored_record_has_the_files_of_0_1_0(release: StoredRelease) -> None:
    assert {*record_files(release)} >= RECORD


def test_a_stored_state_folder_is_read(release: StoredRelease, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    release.write_state(state_folder())
    (entry,) = registry.entries()
    found = receipts.read_all(entry.cluster)
    assert all(receipt.spec is not None and code_archives.size(receipt.spec.code)[0] for receipt in found.values())
    (current,) = state_folder().glob("*/test-*/record/current")
    record = Record(current.parent)
    assert set(record.runs()) == set(found)
    assert set(record.results().values()) == {"succeeded"}
    for run in record.runs():
        assert [line.text for line in record.log(run, "worker-0").tail(9)][-1] == "accuracy: 0.75"
        assert record.events(run)[-1].at > 0
        assert record.events(run, 1)[0].kind != RECORD_DAMAGED
        assert (record.artifacts_folder(run) / "model" / "saved_model.pb").read_text() == "a model"


def test_nothing_of_the_computer_that_stored_it_is_in_a_file(release: StoredRelease) -> None:
    text = json.dumps(release.data)
    assert re.findall(r"/(?:home|root|tmp|work|Users)/[\w./-]+|BEGIN [A-Z ]*PRIVATE KEY", text) == []
