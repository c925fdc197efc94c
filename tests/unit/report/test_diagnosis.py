"""Why a cluster is as it is: causes first, each with its remedy."""

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.cases import plan, spec
from tests.unit.report.test_report import NOON, finished, noon, read, sight, waiting, world
from tests.unit.simulation import World, running
from tfdeploy.agent.model.run_spec import RunJob
from tfdeploy.agent.model.run_state import Ended, TaskState
from tfdeploy.agent.record.record import RecordView, StoredLine
from tfdeploy.backends.base import GONE, EngineTask, ObservedMachines, ObservedState
from tfdeploy.backends.docker.swarm.confirmed_end import lost_remedy
from tfdeploy.report.diagnosis import Facts, Trouble, explain, trouble_of
from tfdeploy.report.expected_state import expected_state
from tfdeploy.report.program_problems import Finding, warnings
from tfdeploy.report.remedies import exit_remedy
from tfdeploy.report.report import report
from tfdeploy.report.summary import summary

ALL = {"ps-0": True, "worker-0": True, "worker-1": True}
HEAL = "pulumi up --refresh"
NO_FILE = "No such file or directory"
NO_IMAGE = "No such image: registry.example.com/team/train:1"


def why(look: ObservedState, hostname: str = "", **more: Any) -> list[Finding]:
    return explain(Facts(read(look), look, HEAL, **more), hostname)


def with_engine(look: ObservedState, **tasks: EngineTask) -> ObservedState:
    return replace(look, engine={**(look.engine or {}), **{name.replace("_", "-"): one for name, one in tasks.items()}})


def rejected(reason: str = NO_IMAGE, word: str = "rejected") -> EngineTask:
    return EngineTask(False, "", word, reason)


def restarting() -> World:
    made = world()
    made.exit("worker-1", 3)
    made.exit("worker-1", 3)
    return made


def silent(engine: dict[str, bool] | None, *problems: str) -> ObservedState:
    return replace(sight(world(), NOON - 60, engine), problems=problems)


def nothing(*problems: str) -> ObservedState:
    return replace(sight(None, 0.0, {}), problems=problems)


def stopped() -> World:
    made = world()
    made.stop()
    return made


def out_of_budget() -> World:
    made = world()
    made.pay(budget=5.0, before=5.0)
    return made


def finishing() -> World:
    made = world()
    made.exit("worker-0")
    return made


def evaluating(seconds: float = 0.0, code: int | None = None) -> World:
    """The run has succeeded so long ago; then its evaluator ends with this code, or still runs."""
    made = noon(evaluator=True)
    made.come()
    made.job.spec.jobs["evaluator"] = RunJob()
    made.exit("worker-0")
    made.exit("worker-1")
    made.wait(seconds)
    if code is not None:
        made.exit("evaluator-0", code)
    return made


def overdue() -> World:
    made = noon(start_timeout="5m")
    made.come("worker-0")
    made.wait(100_000)
    return made


def without_worker() -> World:
    made = running(NOON, ps=1, workers=2, elastic={"max": 4}, restart={"maximum": 0})
    made.exit("worker-1", 3)
    return made


NO_PS = with_engine(sight(waiting(), engine=ALL), ps_0=rejected())
NO_NODE = "no suitable node (scheduling constraints not satisfied on 1 node)"
LOST = replace(sight(world(), engine={**ALL, "worker-1": False}), machines=ObservedMachines({"box": "gone"}))
AWAY = ObservedMachines({"box": "unreachable (heartbeat failure)"}, remedies={"box": lost_remedy("box")})
EXPIRED_LOGIN = "AWS: the login of profile ml has expired. Run `aws sso login --profile ml`."
EXPIRED = replace(silent(None, EXPIRED_LOGIN), machines=ObservedMachines(others="unknown", problems=(EXPIRED_LOGIN,)))
NOT_STORED = replace(sight(world(), engine=ALL), not_stored="The record cannot be stored in s3://records/mnist (403).")
SILENT = replace(sight(world(), engine=ALL), machines=AWAY)
FAILED_BOOT = ObservedMachines(failures={"mnist-ps-0": "it ended itself\nboot: no network\nboot: end"})
BOOT = replace(sight(waiting(), engine={}), machines=FAILED_BOOT)


def test_packages_that_are_installed_are_no_problem() -> None:
    (found,) = why(replace(sight(None), installing="installing tensorflow==2.15.*, 40s"))
    assert found.text == "The update is installing tensorflow==2.15.*, 40s. The tasks start after that."
    assert not found.wrong


def test_what_is_missing_comes_before_what_follows_from_it() -> None:
    lacking = replace(silent(ALL), missing=["the Service mnist", "the Secret mnist-token"])
    first = why(lacking)[0]
    assert first.text == "The Service mnist, the Secret mnist-token are gone or cannot be used."
    assert first.remedy == "`pulumi up --refresh` creates them again."
    assert "does not respond" not in " ".join(finding.text for finding in why(lacking))


def test_a_machine_that_does_not_respond_is_named_once_with_what_waits_for_it() -> None:
    found = [one for one in why(SILENT) if "box" in one.text]
    assert [one.about for one in found] == ["box"]
    assert "ps-0, worker-0, worker-1 wait for it: their programs may still run there" in found[0].text
    assert found[0].text in read(SILENT).status
    assert f"{found[0].text} {found[0].remedy}" in summary(read(SILENT))


def test_a_machine_is_not_waited_for_after_the_run() -> None:
    assert warnings(replace(SILENT, view=replace(SILENT.view, run_state=finished().job))) == []


def test_nobody_waits_for_tensorboard() -> None:
    asked: dict[str, Any] = {"ps": 1, "workers": 1, "tensorboard": True}
    made = World(NOON, **asked)
    made.come("worker-0")
    look = with_engine(sight(made, engine={"ps-0": True, "worker-0": True}), tensorboard_0=rejected())
    found = explain(Facts(report(expected_state(plan(**asked), spec(**asked)), look), look, "heal"))
    assert found[0].text == f"tensorboard-0 cannot start (rejected): {NO_IMAGE}."
    assert found[1].text == "Starting: ps-0 (scheduled). Waiting for that: worker-0."
    made.come("ps-0")
    made.exit("worker-0", 3)
    look = sight(made, engine={})
    found = explain(Facts(report(expected_state(plan(**asked), spec(**asked)), look), look, "heal"))
    assert [one.about for one in found] == ["", "worker-0"]


def test_a_task_is_wrong_where_something_is_and_it_does_not_run() -> None:
    assert not why(sight(waiting(), engine=ALL), "worker-0")[-1].wrong, "it merely waits"
    found = why(SILENT, "worker-0")
    assert (found[0].wrong, found[-1].about, found[-1].wrong) == (True, "worker-0", False), "it runs"


@pytest.mark.parametrize(
    ("timeout", "seconds", "is_late"), [(600.0, 600.0, True), (600.0, 10.0, False), (0.0, 0.0, False)]
)
def test_an_evaluator_ran_too_long_at_the_end_of_its_time_alone(timeout: float, seconds: float, is_late: bool) -> None:
    made = evaluating(seconds)
    made.stop()
    made.job.spec = replace(made.job.spec, evaluator_timeout=timeout)
    assert made.job.tasks["evaluator-0"].state == "stopped"
    assert any("`evaluator_timeout`" in one.text for one in why(sight(made))) == is_late


def failed_task(exit_code: int = 1, signal: str = "", out_of_memory: bool = False, state: str = "failed") -> TaskState:
    return TaskState("ps-0", "ps", 0, state=state, end=Ended(exit_code, signal, out_of_memory))


ENDS: list[tuple[dict[str, Any], str, str]] = [
    ({}, "FATAL Flags parsing error: Unknown command line flag 'ps_hosts'", 'flags="never"'),
    ({}, "Error: No such option: --job_name", 'flags="never"'),
    ({}, f"NotFoundError: {{{{node save}}}} logdir/model.ckpt-0_temp/part-0; {NO_FILE}", "model.ckpt-0_temp/part-0 is"),
    ({}, f"FileNotFoundError: [Errno 2] {NO_FILE}: 'model.ckpt.index'", "model.ckpt.index is a relative path"),
    ({}, f"NotFoundError: /shared/logdir/model.ckpt-0; {NO_FILE}", "`tfdeploy logs ps-0` shows its output"),
    ({}, "tfdeploy: cannot start './a.sh': its first line names '/bin/sh\\r', which", "Windows line ends"),
    ({}, "tfdeploy: cannot start './a.sh': its first line names '/bin/zsh', which", "first line of ./a.sh"),
    ({"exit_code": 127}, "tfdeploy: cannot start './a.sh': Permission denied", "`chmod +x ./a.sh`"),
    ({}, 'InvalidArgumentError: Job "" was not defined in cluster', "did not get --job_name"),
    ({}, 'Job "boss" was not defined in cluster', "the names are chief, ps and worker"),
    ({}, 'Job "master" was not defined in cluster', "set `chief=True` and `tf_config_master=True`"),
    ({"exit_code": 137}, "", 'was killed by SIGKILL. It counts as an exit code: `restart={"on": ["signal", "137"]}`'),
    ({"exit_code": 137}, "", "`dmesg` shows it"),
    ({"exit_code": 139}, "", "128 + 11: a program that the command ran was killed by SIGSEGV"),
    ({"exit_code": 166}, "", "killed by signal 38"),
    ({"exit_code": 193}, "", "`tfdeploy logs ps-0` shows its output"),
    ({"exit_code": 137}, "ModuleNotFoundError: No module named 'scipy'", "provides scipy"),
    ({"exit_code": 1}, "ModuleNotFoundError: No module named 'pkg_resources'", "Add `setuptools<81` to"),
]
"""How a task ended, the last line of its program, and a part of the remedy; others are in the snapshot."""


@pytest.mark.parametrize(("task", "line", "word"), ENDS)
def test_ends_have_remedies(task: dict[str, Any], line: str, word: str) -> None:
    assert word in exit_remedy(failed_task(**task), [line])


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("INFO:tensorflow:Saving checkpoints for 0 into logdir/model.ckpt.", "logdir/model.ckpt"),
        ("INFO:tensorflow:Saving checkpoint to path ./logdir/model.ckpt", "./logdir/model.ckpt"),
        ("INFO:tensorflow:Saving checkpoints for 0 into /shared/model.ckpt.", ""),
        ("step 5", ""),
    ],
)
def test_checkpoints_in_the_copy_of_the_code_are_named(line: str, path: str) -> None:
    found = why(sight(world(), engine=ALL, logs={"worker-0": [StoredLine(1.0, 2, line), StoredLine(2.0, 1, "step 6")]}))
    named = [finding for finding in found if finding.about == "worker-0"]
    assert [finding.text for finding in named] == (
        [f"worker-0 stores checkpoints in {path}, a relative path."] if path else []
    )
    assert all("{train_dir}" in finding.remedy for finding in named)


def unobservable(engine: Any = ALL, silent: float | None = 0.0, **more: Any) -> ObservedState:
    return replace(sight(world(), silent_since=silent, engine=engine), **more)


NOTHING = "Nothing of the cluster exists any more"
NO_MACHINES = ObservedMachines(others=GONE)
CASES: dict[str, tuple[ObservedState, str, bool]] = {
    "all is well": (unobservable(silent=None), "", False),
    "supervisord is gone": (unobservable(engine=None), "The cluster's supervisord is gone", True),
    "the controller is dead": (unobservable(), "The controller does not respond", False),
    "the engine is gone": (unobservable(engine=None, problems=["refused"]), "The engine does not respond", False),
    "the manager's machine is gone": (
        unobservable(engine=None, problems=["no route"], machines=ObservedMachines({"box": GONE, "other": "unknown"})),
        f"box is gone: no route. `{HEAL}` creates it again, and restores the record.",
        False,
    ),
    "all services were removed": (unobservable(engine={}), NOTHING, True),
    "the machines are gone": (unobservable(engine={}, machines=NO_MACHINES), NOTHING, True),
    "folder and record are removed": (unobservable(engine={}, view=RecordView(0.0, None)), NOTHING, True),
    "one task is gone": (unobservable(engine={"worker-0": True}, silent=None), "", False),
}


def test_what_a_machine_that_is_away_holds_has_no_remedy_but_that_of_the_machine() -> None:
    """Neither a task nor the controller starts elsewhere by another update."""
    made = world()
    made.job.tasks["worker-1"].seen -= 1000.0
    look = replace(sight(made, engine=ALL), machines=AWAY)
    found = {finding.about: finding.remedy for finding in why(look)}
    assert found == {"box": AWAY.remedies["box"], "worker-1": "", "": ""}
    (_, remedy) = trouble_of(unobservable(machines=AWAY), HEAL)
    assert remedy.startswith("If it runs on box: ")


@pytest.mark.parametrize("case", CASES)
def test_what_is_wrong_is_said_when_it_lasts(case: str) -> None:
    seen, text, is_final = CASES[case]
    trouble = Trouble()
    for now in (100.0, 104.9):
        trouble.note(seen, HEAL, now)
        assert (trouble.text, trouble.is_final) == ("", False), "it may be over in a moment"
    trouble.note(seen, HEAL, 105.0)
    assert trouble.text.startswith(text)
    assert bool(trouble.text) == bool(text)
    assert trouble.is_final == is_final


def test_a_controller_that_is_started_again_is_no_trouble() -> None:
    trouble, gone = Trouble(), CASES["supervisord is gone"][0]
    for now, seen in enumerate([gone] * 5 + [unobservable(silent=None)] + [gone] * 5):
        trouble.note(seen, HEAL, float(now))
        assert not trouble.text
