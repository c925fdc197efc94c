"""A cluster that never was: MNIST on one ps and two workers, 2000 steps, worker-1 killed once and started again."""

import math
import random
from dataclasses import replace

from tests.unit.rows import machine_row, task_row
from tfdeploy.agent.model import events
from tfdeploy.agent.model.events import Event
from tfdeploy.agent.model.run_state import TASKS_SUCCEEDED, Ended, RunResult
from tfdeploy.outputs import CostSummary, MachineRow, TaskRow
from tfdeploy.report.html.document import Content
from tfdeploy.report.report import Report
from tfdeploy.units import moment

BEGIN = 1_795_262_400.0
STEPS = 2000
KILLED, BACK = 41.0, 49.5
COMMAND = (
    "python -m train --data_dir /home/ada/.cache/tfdeploy/mnist --train_dir {train_dir} --ps_hosts {ps_hosts} "
    "--worker_hosts {worker_hosts} --job_name {job_name} --task_index {task_index} --steps 2000"
)
_FINISHED = RunResult("succeeded", TASKS_SUCCEEDED, 98.2, ["worker-0", "worker-1"])
_SIGKILL = Ended(137, "SIGKILL")
EVENTS = (
    Event(events.RUN_SUBMITTED, 0.0),
    Event(events.LAUNCHER_REGISTERED, 0.8, "ps-0"),
    Event(events.LAUNCHER_REGISTERED, 1.1, "worker-0"),
    Event(events.LAUNCHER_REGISTERED, 6.4, "worker-1"),
    Event(events.BARRIER_PASSED, 7.0, tasks=["ps-0", "worker-0", "worker-1"]),
    Event(events.TASK_STARTED, 9.1, "ps-0", 1),
    Event(events.TASK_STARTED, 9.3, "worker-0", 1),
    Event(events.TASK_STARTED, 9.6, "worker-1", 1),
    Event(events.TASK_RESTARTING, 39.8, "worker-1", 2, exit=_SIGKILL, failures=1, max_failures=3),
    Event(events.TASK_STARTED, 40.0, "worker-1", 2),
    Event(events.TASK_RESTARTING, KILLED, "worker-1", 3, exit=_SIGKILL, delay=8.0, failures=2, max_failures=3),
    Event(events.TASK_STARTED, BACK, "worker-1", 3),
    Event(events.TASK_SUCCEEDED, 96.0, "worker-1"),
    Event(events.TASK_SUCCEEDED, 98.2, "worker-0"),
    Event(events.RUN_ENDED, 98.2, result=_FINISHED),
    Event(events.TASK_STOPPED, 98.9, "ps-0", reason="run finished"),
)


def content(until: float = 100.0, hostile: str = "") -> Content:
    """The cluster as it was so many seconds after its begin; `hostile` is printed by worker-1 and named as the reason."""
    happened = [replace(event, at=BEGIN + event.at) for event in EVENTS if event.at <= until]
    over = until >= 98.2
    lines = {
        name: [line for line in printed(name) if line[0] <= BEGIN + until] for name in ("ps-0", "worker-0", "worker-1")
    }
    if hostile:
        lines["worker-1"].append((BEGIN + until, hostile))
    last = lines["worker-0"][-1][1] if lines["worker-0"] else ""
    return Content(
        name="mnist",
        backend="local",
        project="digits",
        stack="dev",
        report=Report(
            state="succeeded" if over else "running",
            reason=hostile or ("worker-0, worker-1 succeeded" if over else ""),
            tasks=[task(name, status(name, until), place) for place, name in enumerate(lines)],
            machines=[machine()],
            logs={},
            metrics={"accuracy": float(last.split()[-1]) if over else None},
            endpoints={"ps-0": "127.0.0.1:41873", "worker-0": "127.0.0.1:39211", "worker-1": "127.0.0.1:44127"},
            observed_at=moment(BEGIN + until),
            status="",
            run="20261121-120000-7f3a",
            decided=over,
            finished=over,
            cost={},
            timed={},
            sentences=f"Run {'succeeded' if over else 'running'}.",
        ),
        events=happened,
        lines=lines,
        options={"command": COMMAND, "ps": "1", "workers": "2", "restart": "maximum 3, after any", "timeout": "10m"},
        versions={"tfdeploy": "0.1.0", "Python": "3.11.7", "TensorFlow": "2.20.0", "Pulumi": "3.259.0"},
    )


def paid(made: Content) -> Content:
    """The same on machines that cost something."""
    machines: list[MachineRow] = [
        {**machine(f"mnist-{name}", "aws", "m6i.large"), "region": "eu-central-1", "role": role}
        for name, role in (("master", "Master"), ("worker-0", "Worker"), ("worker-1", "Worker"))
    ]
    cost: CostSummary = {
        "summary": "$0.36/h now, $0.06 so far",
        "maximum": 25.92,
        "idle_timeout": 900.0,
        "max_lifetime": 259_200.0,
        "billed_after": ["the record in S3"],
        "prices_date": "2026-11-01",
    }
    return replace(made, backend="ec2", report=replace(made.report, machines=machines, cost=cost))


def machine(name: str = "box", provider: str = "local", size: str = "8 CPUs, 16 GiB") -> MachineRow:
    return machine_row(machine=name, provider=provider, size=size)


def task(name: str, state: str, place: int) -> TaskRow:
    job, _, index = name.partition("-")
    address = f"127.0.0.1:{41873 + place}"
    identity = {"hostname": name, "job": job, "index": int(index), "container": str(48210 + place), "address": address}
    return task_row(**identity, command=COMMAND, status=state)


def status(name: str, until: float) -> str:
    if until >= 98.9:
        return "stopped (run finished)" if name == "ps-0" else "succeeded"
    if name == "worker-1" and KILLED <= until < BACK:
        return "restarting in 8 s (2 of 3)"
    return "running" if until >= 9.6 else "waiting for worker-1"


def printed(name: str) -> list[tuple[float, str]]:
    """What a task printed, from the begin to the end."""
    if name == "ps-0":
        return [(BEGIN + 9.8, "ps-0 serves on grpc://127.0.0.1:41873")]
    index = int(name[-1])
    chance = random.Random(index)
    lines = [(BEGIN + 11.0, "variable hid_w on /job:ps/task:0"), (BEGIN + 12.0, f"worker-{index} started at step 0")]
    for step in range(10 + 5 * index, STEPS + 1, 10):
        at = 12.5 + 83.0 * step / STEPS
        if index == 1 and KILLED <= at < BACK:
            continue
        loss = (
            2.3 * math.exp(-step / 330) + 0.06 + 0.05 * chance.random() + 0.25 * chance.random() * math.exp(-step / 900)
        )
        lines.append((BEGIN + at, f"step {step} loss {loss:.4f}"))
        if step % 100 < 10:
            accuracy = 0.972 - 0.87 * math.exp(-step / 260) - 0.008 * chance.random()
            lines.append((BEGIN + at, f"step {step} validation accuracy {accuracy:.4f}"))
    if index == 1:
        lines.append((BEGIN + BACK + 1, "\x1b[33mworker-1 resumed at step 870\x1b[0m"))
        return sorted([*lines, (BEGIN + 95.9, "worker-1 did 912 steps, up to step 2000")])
    return [*lines, (BEGIN + 96.2, "final loss 0.0812"), (BEGIN + 97.9, "MNIST accuracy: 0.9683")]
