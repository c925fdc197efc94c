"""The events of whole runs, as sentences: every kind of event happens in one of them."""

from typing import Any

from tests.unit.simulation import World
from tests.unit.snapshots import section
from tfdeploy.agent.control import reconcile
from tfdeploy.agent.control.end_policy import MAX_LOSSES
from tfdeploy.agent.model import events as kinds
from tfdeploy.agent.model.events import Event
from tfdeploy.agent.model.restart_delay import MAX_BACKOFF
from tfdeploy.agent.record.metric_values import LoggedValue
from tfdeploy.report.events import REASONS, describe, with_waits

_SLOW = "its pattern takes more than 1 s: (a*)*b"


def events() -> str:
    runs = {
        "a run that fails": failing(),
        "restarts by request, and a stop": requested(),
        "the end of the time limit": limited(),
        "a metric that is good enough": good_enough(),
        "a budget that is used up": spent(),
        "a move to another backend": moved(),
        "other tasks": changed(),
        "other workers of an elastic run": resized(),
        "faults": faulty(),
        "artifacts": uploading(),
    }
    return "\n".join(section(title, _lines(run)) for title, run in runs.items())


def _lines(run: World) -> list[str]:
    first = run.events[0].at
    lines = []
    for event in with_waits(run.events):
        what, why = describe(event)
        lines.append(f"{event.at - first:6.1f} s  {event.task:<14} {what:<24} {why}")
    return lines


def failing() -> World:
    """A task waits for another, fails, is restarted at once, later once more, and fails again."""
    run = World(ps=1, workers=1, restart={"maximum": 2, "backoff": "1s", "on": ["any"]})
    run.come("worker-0")
    run.wait(1)
    run.come("ps-0")
    for seconds in (1, 10, 10):
        run.wait(seconds)
        run.exit("worker-0", 3)
    return run


def moved() -> World:
    """The run is stopped to be moved, and its record is given to the controller at the new place."""
    run = World(workers=1)
    run.come()
    run.note(reconcile.stop_run(run.job, run.now, to_move=True))
    run.note([Event(kinds.RECORD_RESTORED, delay=372.0)])
    return run


def limited() -> World:
    """The run is stopped after two hours."""
    run = World(workers=1)
    run.come()
    run.stop(time_limit=7200.0)
    return run


def good_enough() -> World:
    """The conditions of `until` hold."""
    metrics = {"accuracy": r"accuracy: (\S+)", "loss": r"loss: (\S+)"}
    run = World(ps=1, workers=1, metrics=metrics, until={"accuracy": ">= 0.95", "loss": "< 2"})
    run.come()
    run.wait(60)
    run.measure(accuracy=LoggedValue("worker-0", 1, "0.953", 4200), loss=LoggedValue("worker-0", 1, "1e-3"))
    return run


def spent() -> World:
    """The machines have cost the budget."""
    run = World(workers=1)
    run.pay(budget=5.0, cost_per_hour=3.0, before=2.0)
    run.come()
    run.wait(3600)
    return run


def requested() -> World:
    """Tasks are restarted and replaced by request, one is lost; the run is stopped."""
    run = World(ps=1, workers=2, tensorboard=True, success="all-workers")
    run.come()
    run.again("worker-0")
    run.again("ps-0", "replaced")
    run.lose("worker-1")
    run.come("worker-1")
    run.wait(60)
    run.roll("worker-0")
    run.wait(60)
    run.exit("worker-0")
    run.stop()
    return run


def faulty() -> World:
    """Full disks, damaged records, a slow pattern; launchers that are lost in a row."""
    run = World(workers=1)
    run.come()
    run.note(
        [
            Event(kinds.LAUNCHER_PROBLEM, task="worker-0", reason="cannot store its output: No space left on device"),
            Event(kinds.OUTPUT_DROPPED, task="worker-0", count=4_096),
            Event(kinds.OUTPUT_APART, task="worker-0"),
            Event(kinds.OUTPUT_LIMIT, task="worker-0"),
            Event(kinds.RECORD_DELAYED, delay=12.4, reason="No space left on device", count=3),
            Event(kinds.RECORD_NOT_STORED, reason="PUT mnist-id/record/current.json: 404 NoSuchBucket"),
            Event(kinds.RECORD_STORED),
            Event(kinds.RECORD_DAMAGED, reason="events.jsonl", count=2),
            Event(kinds.PATTERN_SLOW, task="worker-0", state="accuracy", reason=_SLOW),
            Event(kinds.PATTERN_DISABLED, state="accuracy", reason=_SLOW),
            Event(kinds.UNTIL_DISABLED, state="accuracy", reason=_SLOW),
            Event(kinds.UNTIL_NO_NUMBER, task="worker-0", state="accuracy", reason="nan"),
        ]
    )
    for _ in range(MAX_LOSSES):
        run.lose("worker-0")
        run.come("worker-0")
        run.wait(MAX_BACKOFF - 1)
    return run


def resized() -> World:
    """A worker is added to an elastic run, fails for good, and is started again by request."""
    args: dict[str, Any] = {"ps": 1, "workers": 1, "elastic": {"max": 2}, "restart": {"maximum": 0}}
    run = World(**args)
    run.come()
    run.wait(60)
    run.give(**{**args, "workers": 2})
    run.come("worker-1")
    run.wait(60)
    run.exit("worker-1", 1)
    run.again("worker-1")
    run.wait(60)
    run.exit("worker-0")
    return run


def uploading() -> World:
    """What is uploaded, what is not, and why."""
    run = World(workers=1)
    run.come()
    run.exit("worker-0")
    at: dict[str, Any] = {"task": "worker-0", "machine": "gpu-1"}
    names = ["export/1", "best.keras", "ckpt-7", "logs/**"]
    run.note(
        [
            Event(kinds.ARTIFACTS_BEGUN, **at, artifacts=names, count=3 << 20),
            *[
                Event(kinds.ARTIFACT_LEFT_OUT, **at, artifacts=["large.keras"], reason=reason, count=3 << 30)
                for reason in sorted(REASONS)
            ],
            Event(kinds.ARTIFACTS_LOST, **at, delay=31.0),
            Event(kinds.ARTIFACTS_LOST, **at),
            Event(kinds.ARTIFACTS_LOST, **at, reason="No space left on device"),
            Event(kinds.ARTIFACTS_STORED, **at, artifacts=names[:2], count=3 << 20),
            Event(kinds.ARTIFACTS_REMOVED, artifacts=["0123456789ab"]),
        ]
    )
    return run


def changed() -> World:
    """Another number of tasks, an address that changes, and a run that succeeds."""
    args: dict[str, Any] = {"ps": 1, "workers": 1}
    run = World(**args)
    run.come()
    run.give(**{**args, "workers": 2})
    run.come("worker-1")
    run.wait(60)
    run.come("ps-0", port=4000)
    run.wait(60)
    run.give(**args)
    run.wait(60)
    run.exit("worker-0")
    return run
