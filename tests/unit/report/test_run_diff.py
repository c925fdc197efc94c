"""Two runs side by side."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from tests.unit.report.test_run_history import finished, stored
from tfdeploy.report.run_diff import RunDiff
from tfdeploy.report.run_history import StoredRun


def test_the_text_has_results_and_changes() -> None:
    first, second = stored(finished(1_000.0), speed=10.0), stored(finished(5_000.0, env={"LR": "0.1"}, workers=3))
    difference = RunDiff(first, second)
    assert difference.text(9_000.0).splitlines() == [
        "           OLDER                  NEWER",
        f"run        {first.spec.id}           {second.spec.id}",
        "started    1970-01-01 00:16:40Z   1970-01-01 01:23:20Z",
        "took       1m30s                  1m30s",
        "where      local                  local",
        "result     succeeded              succeeded",
        "accuracy   0.95                   0.95",
        "steps/s    10",
        "tasks      ps: 1, worker: 2       ps: 1, worker: 3",
        "",
        "Changed:",
        "  env LR",
        "  2 -> 3 worker",
        "",
        "TASKS    OLDER   NEWER",
        "worker   2       3",
    ]
    data = difference.to_dict()
    assert (data["older"]["steps_per_second"], data["newer"]["steps_per_second"]) == (10.0, None)
    assert "steps/s" not in RunDiff(second, second).text(9_000.0)


def learning(rate: str, worker: Mapping[str, Any] = MappingProxyType({}), **args: Any) -> StoredRun:
    """A run whose learning rate is on its command line, and variables with values that nobody may see."""
    command = ["python", "train.py", f"--learning_rate={rate}"]
    jobs = {"worker": {"env": {"KEY": f"hidden-{rate}"}, **worker}}
    return stored(finished(1_000.0, command=command, env={"KEY": f"hidden-{rate}"}, jobs=jobs, **args))


def test_values_are_side_by_side_and_those_of_the_environment_are_not_shown() -> None:
    found = RunDiff(learning("0.1"), learning("0.2", {"restart": {"maximum": 7}}, worker_timeout="5m"))
    text = found.text(9_000.0)
    assert text.partition("Changed:\n")[2].splitlines() == [
        "  command",
        "  env KEY",
        "  worker env KEY",
        "  worker_timeout",
        "  worker restart",
        "",
        "ARGUMENTS        OLDER                                              NEWER",
        "command          python train.py --learning_rate=0.1                python train.py --learning_rate=0.2",
        'worker restart   {"maximum": 3, "backoff": 2.0, "on": ["signal"]}   {"maximum": 7, "backoff": 2.0, "on": ["signal"]}',
        "worker_timeout   60                                                 300",
    ]
    data = found.to_dict()
    assert data["arguments"][0] == {
        "name": "command",
        "older": "python train.py --learning_rate=0.1",
        "newer": "python train.py --learning_rate=0.2",
    }
    assert data["tasks"] == []
    assert "hidden" not in text + str(data)


def test_a_value_cannot_control_the_terminal() -> None:
    assert "\x1b" not in RunDiff(learning("0.1"), learning("\x1b[2J")).text(9_000.0)
