"""`tfdeploy runs` and `tfdeploy diff`: what records of existing and destroyed clusters have."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.clusters import ID, cluster_ref
from tests.unit.cases import stored_run
from tests.unit.cli.calling import invoke, program, registered, said
from tests.unit.printing import write
from tests.unit.report.test_run_history import BASE, finished
from tfdeploy import registry
from tfdeploy.agent.record.output_lines import STDOUT
from tfdeploy.agent.record.output_search import Found
from tfdeploy.agent.record.record import Record
from tfdeploy.cli.commands import runs
from tfdeploy.errors import BackendError, NotFound

METRICS = {"accuracy": r"accuracy (\S+)"}


@pytest.fixture(autouse=True)
def state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return program(tmp_path, monkeypatch) / "tfdeploy"


def entry(cluster_id: str, name: str, state_folder: Path, ended: float = 0.0) -> registry.Entry:
    home = str(state_folder / f"clusters/{name}-{cluster_id}")
    cluster = cluster_ref("local", home, name=name, cluster_id=cluster_id)
    return registered(cluster, {**BASE, "metrics": METRICS}, begun=1.0, ended=ended, login="file:///mine")


def add(folder: Path, at: float, accuracy: str, **args: Any) -> str:
    """A finished run that printed this accuracy; its id."""
    record, state = Record(folder), finished(at, **{"metrics": METRICS, **args})
    record.save(state)
    write(record.log(state.spec.id, "worker-0"), [(STDOUT, f"accuracy {accuracy}\n".encode())], begin=at)
    return state.spec.id


def call(*options: str, verb: str = "runs") -> tuple[str, str]:
    return said(verb, *options)


def test_the_runs_of_a_cluster_and_of_the_destroyed_ones_before_it(state_folder: Path) -> None:
    earlier = entry("aaaaaaaaaa", "mnist", state_folder, ended=3_000.0)
    first = add(state_folder / "retained/mnist-aaaaaaaaaa/19700101T005000Z/record", 1_000.0, "0.91")
    now = entry(ID, "mnist", state_folder)
    second = add(Path(now.cluster["home"]) / "record", 5_000.0, "0.95", env={"LR": "0.1"})
    table, _ = call("--stack", "dev", "--cluster", ID)
    lines = [line.split() for line in table.splitlines()]
    assert lines[0] == ["RUN", "STARTED", "TOOK", "WHERE", "CHANGED", "RESULT", "ACCURACY"]
    assert (lines[1][0], lines[1][-4:]) == (second, ["env", "LR", "succeeded", "0.95"])
    assert (lines[2][0], lines[2][-4:]) == (first, ["first", "run", "succeeded", "0.91"])
    assert earlier.stack_key == now.stack_key


def test_an_earlier_run_that_is_the_current_one_again_is_named(state_folder: Path) -> None:
    record = Path(entry(ID, "mnist", state_folder).cluster["home"]) / "record"
    first = add(record, 1_000.0, "0.91")
    add(record, 5_000.0, "0.95", env={"LR": "0.1"})
    assert call()[1] == ""
    (record / "current").write_text(first)
    assert call()[1] == f"p/dev/mnist: the current run is {first}.\n"
    assert [row["current"] for row in json.loads(call("--json")[0])] == [False, True]


def test_a_record_of_another_version_is_named_and_the_rest_is_shown(state_folder: Path) -> None:
    cluster = entry(ID, "mnist", state_folder)
    add(Path(cluster.cluster["home"]) / "record", 5_000.0, "0.95")
    other = state_folder / f"retained/mnist-{ID}/19700101T005000Z/record"
    add(other, 1_000.0, "0.91")
    (other / "format").write_text("99")
    table, messages = call("--all")
    assert table.count("succeeded") == 1
    assert f"{other}: this version of tfdeploy cannot read the record." in messages


def test_final_metrics_stay_where_a_copy_has_less_output_than_was_searched(state_folder: Path) -> None:
    entry(ID, "mnist", state_folder, ended=9_000.0)
    folder = state_folder / f"retained/mnist-{ID}/19700101T005000Z/record"
    run_id = add(folder, 1_000.0, "0.95")
    state = stored_run(Record(folder))
    assert Record(folder).search(state).metrics == {"accuracy": "0.95"}
    Record(folder).log(run_id, "worker-0").path(0).write_bytes(b"")
    assert json.loads(call("--json")[0])[0]["metrics"] == {"accuracy": 0.95}
    assert call("--json", "--cluster", ID, verb="status")[0].count("0.95") >= 1


def test_metrics_that_were_not_read_in_time_are_not_shown(state_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add(Path(entry(ID, "mnist", state_folder).cluster["home"]) / "record", 1_000.0, "0.95")
    found = Found(metrics={"accuracy": "0.5"})
    monkeypatch.setattr(Record, "search", lambda *_, **__: found)
    assert json.loads(call("--json")[0])[0]["metrics"] == {"accuracy": None}


def test_diff_compares_the_last_two_runs_or_the_given_ones(state_folder: Path) -> None:
    record = Path(entry(ID, "mnist", state_folder).cluster["home"]) / "record"
    ids = [add(record, 1_000.0 * place, f"0.{place}", env={"LR": str(place)}) for place in (1, 2, 3)]

    def compared(*names: str) -> tuple[str, str]:
        data = json.loads(call("--json", *names, verb="diff")[0])
        assert data["changed"] == ["env LR"]
        return data["older"]["run"], data["newer"]["run"]

    assert compared() == (ids[1], ids[2])
    assert compared(ids[0]) == (ids[0], ids[2])
    assert compared(ids[0][:6], ids[1][:6]) == (ids[0], ids[1])
    done = invoke(["diff", "zzz"])
    assert isinstance(done.exception, NotFound)
    assert str(done.exception) == f"p/dev/mnist has no run 'zzz'. Its runs are: {ids[0]}, {ids[1]}."


def test_the_copy_on_this_computer_is_read_where_a_cluster_cannot_be_observed(
    state_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = entry(ID, "mnist", state_folder)
    run_id = add(Path(written.cluster["home"]) / "record", 1_000.0, "0.91")

    def fail(*_: object, **__: object) -> None:
        raise BackendError("no answer within 30 s")

    monkeypatch.setattr(runs, "take_snapshot", fail)
    listed, messages = call("--json")
    assert [(row["run"], row["metrics"]) for row in json.loads(listed)] == [(run_id, {"accuracy": 0.91})]
    assert messages == "p/dev/mnist: no answer within 30 s. Its runs are shown as this computer observed them last.\n"


def test_diff_has_the_speed_and_a_page_with_both_curves(state_folder: Path) -> None:
    record = Path(entry(ID, "mnist", state_folder).cluster["home"]) / "record"
    for place in (1, 2):
        run_id = add(record, 1_000.0 * place, "0.9", env={"LR": str(place)})
        steps = [(STDOUT, f"step {place * count} loss {1 / (1 + count)}\n".encode()) for count in range(9)]
        write(Record(record).log(run_id, "worker-0"), steps, begin=1_000.0 * place)
    table = [line.split() for line in call(verb="diff")[0].splitlines()]
    assert ["steps/s", "1", "2"] in table
    file = state_folder / "page.html"
    assert call("--html", str(file), verb="diff")[0] == f"{file}\n"
    assert all(words in file.read_text() for words in ("older: worker-0", "newer: worker-0", "Loss", "env LR"))
    done = invoke(["diff", "--html", str(state_folder / "missing" / "page.html")])
    assert isinstance(done.exception, BackendError)
    assert str(done.exception).endswith("No such file or directory. Use another file: --html FILE.")
