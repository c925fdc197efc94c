"""Launchers on machines, whose reports make and end uploads."""

import hashlib
import json
from dataclasses import replace
from typing import Any

from tfdeploy.agent.control import reconcile
from tfdeploy.agent.control.controller import Controller
from tfdeploy.agent.model.run_spec import RunJob, RunSpec, TaskSpec
from tfdeploy.agent.model.run_state import Ended, LauncherReport, RunState
from tfdeploy.agent.model.sync import EXITED, RUNNING, Order

NOW = 1000.0
SHA256 = hashlib.sha256(b"x").hexdigest()
"""The hash of the content of the files that `upload` sends."""


def upload(controller: Controller, at_end: bool, *items: dict[str, Any], left_out: tuple[object, ...] = ()) -> None:
    """The calls of an upload of these artifacts by worker-0; each file has one byte."""
    for item in items:
        (drafts,) = controller.uploads.begin("run", "worker-0", {"artifacts": [item], "at_end": at_end})["drafts"]
        for draft, _ in drafts.values():
            controller.uploads.put("run", "worker-0", draft, 0, b"x")
        hashed = [{**file, "sha256": SHA256} for file in item["files"]]
        controller.uploads.store("run", "worker-0", {**item, "files": hashed})
    names = [item["name"] for item in items]
    controller.uploads.end("run", "worker-0", {"names": names, "left_out": left_out, "at_end": at_end})


def spec(*hostnames: str, train_dir: str = "/train", **changed: object) -> RunSpec:
    tasks = [TaskSpec(name, name.rpartition("-")[0], int(name[-1])) for name in hostnames]
    made = RunSpec("run", tasks, {task.job: RunJob() for task in tasks}, success="worker-0", train_dir=train_dir)
    return replace(made, **changed)  # type: ignore[arg-type]


class Cluster:
    """Launchers on machines, which report one after another."""

    def __init__(self, made: RunSpec, can_upload: bool = True, **machines: str) -> None:
        self.run = RunState(made, NOW)
        self.now = NOW
        self.reports = {
            task.hostname: LauncherReport(
                task.hostname,
                f"{task.hostname}#1",
                machine=machines.get(task.hostname.replace("-", "_"), "a"),
                host="h",
                port=1,
                run_id="run",
                ready=True,
                can_upload=can_upload,
            )
            for task in made.tasks
        }
        for name in self.reports:
            self.report(name)
        for name in self.reports:
            self.report(name, attempt=1, phase=RUNNING, started=NOW)

    def report(self, hostname: str, **changed: object) -> Order:
        """The order for a report, as the launcher reads it."""
        self.now += 1
        self.reports[hostname] = replace(self.reports[hostname], **changed)  # type: ignore[arg-type]
        reconcile.apply_report(self.run, self.reports[hostname], self.now)
        reconcile.advance(self.run, self.now)
        order = reconcile.make_order(self.run, self.reports[hostname], self.now)
        reconcile.note_order(self.run, self.reports[hostname], order)
        self.run = RunState.from_dict(json.loads(json.dumps(self.run.to_dict())))
        return Order.from_dict(json.loads(json.dumps(order.to_dict())))

    def end(self, hostname: str, code: int = 0) -> Order:
        return self.report(hostname, phase=EXITED, exit=Ended(code, at=self.now))
