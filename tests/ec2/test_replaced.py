"""A run whose machines are replaced by others of another type continues on them: without shared storage, from its newest checkpoint.
If its machine is lost, it continues from the checkpoint that was uploaded last.
"""

import json
import re
import shutil
from dataclasses import replace

import pytest

from tests.ec2.project import Ec2Project
from tests.integration.conftest import Project
from tests.integration.moving import ARGUMENTS, TRAINS, Moving, assert_continuous, continued_at
from tests.waiting import until
from tfdeploy.agent.model.run_state import BUDGET, MOVED, STOPPED
from tfdeploy.agent.record.artifact_manifest import stored_artifacts
from tfdeploy.agent.record.record_files import RecordList
from tfdeploy.backends.docker.engine.controller_client import ControllerClient
from tfdeploy.backends.ec2.machine import ssh
from tfdeploy.backends.ec2.record_bucket import MANIFEST
from tfdeploy.backends.record_copy import RecordCopy
from tfdeploy.units import dollars

pytestmark = pytest.mark.full

MACHINE = "test-worker-m0"


class ReplacedProject(Moving, Ec2Project):
    """A project without shared storage."""

    def write(self, arguments: str, *rest: str) -> None:
        own = {"ssh_public_key": f"{self.key}.pub", "ssh_cidrs": ["127.0.0.0/8"], "retain_record": False}
        own |= {"idle_timeout": "never", "max_lifetime": "never"}
        container = {"image": self.image, "retain_volumes": False}
        fixed = f"backend='ec2', ec2={own!r}, container={container!r}"
        Project.write(self, f"{fixed}, {arguments}", *rest)

    def ask(self, instance_type: str, efs: str = "", more: str = "") -> None:
        """Ask for a machine of this type, with this file system and more arguments."""
        shared = f", ec2={{'efs': {efs!r}}}" if efs else ""
        jobs = {"worker": {"ec2": {"instance_type": instance_type}}}
        self.write(f"{ARGUMENTS}, jobs={jobs!r}{shared}{more}", TRAINS)

    def steps(self) -> list[int]:
        """The steps in the worker's output, once the copy of the record is up to date."""
        self.look()
        return self.steps_at("ec2")

    def trains(self) -> None:
        """Wait for ten more steps than now."""
        step = max(self.steps(), default=0) + 10
        until(lambda: max(self.steps(), default=0) > step, f"step {step}", seen=lambda: str(self.sees()))

    def type(self) -> str:
        """The type of its machine."""
        return self.machine(MACHINE).type

    def starts(self) -> int:
        """How often the program was started."""
        return len(continued_at(self.lines_at("ec2")))

    def stored_step(self) -> int:
        """The step of the checkpoint in the record; 0 for none."""
        self.look()
        checkpoint = self.record_at("ec2").artifacts_folder(self.run_at("ec2").spec.id) / "checkpoint"
        found = re.search("ckpt-([0-9]+)", checkpoint.read_text()) if checkpoint.exists() else None
        return int(found[1]) if found else 0

    def upload_record(self, step: int) -> None:
        """Have the machine upload the record to S3 now, with a checkpoint of a later step."""

        def listed_step() -> int:
            manifest = RecordList.from_dict(json.loads(self.stored()[MANIFEST])).text(f"runs/{run}/artifacts.json")
            return max((int(text) for text in re.findall("ckpt-([0-9]+)", manifest)), default=0)

        run = self.run_at("ec2").spec.id
        self.box.run(self.machine(MACHINE).id, "systemctl", "restart", "tfdeploy-watchdog")
        until(lambda: listed_step() > step, "the record is in S3")

    def result(self) -> str:
        """The state of the run's result; empty while it has none."""
        self.look()
        result = self.run_at("ec2").result
        return result.state if result else ""

    def make_dear(self, usd: float) -> float:
        """Have the machines cost so much within a moment; what they cost a second before and after that."""
        before, spec = self.spent(), self.run_at("ec2").spec
        controller = ControllerClient(ssh.engine(self.cluster), self.cluster)
        controller.put_run(replace(spec, cost_per_hour=3600 * usd).to_dict(), spec.code, b"")
        until(lambda: self.spent() > before + usd, "the machines have cost as much")
        controller.put_run(spec.to_dict(), spec.code, b"")
        return spec.cost_per_hour / 3600

    def spent(self) -> float:
        """What all machines have cost."""
        return float((self.look().cost or {})["spent"] or 0.0)


PROJECT = ReplacedProject


def test_another_type_keeps_the_run_and_its_record(project: ReplacedProject) -> None:
    project.ask("m7i.large")
    project.up()
    project.trains()
    record, run = project.record_at("ec2").record_id(), project.run_at("ec2").spec.id
    project.ask("c7i.large")
    preview = project.call("preview", "--stack", project.stack).output
    assert f"{MACHINE}: will be replaced (m7i.large -> c7i.large); tasks that restart: worker-0" in preview
    assert "the run is stopped, its record and newest checkpoint are copied to this computer before" in preview
    project.up()
    assert project.type() == "c7i.large"
    project.trains()
    assert_continuous(project.lines_at("ec2"))
    assert project.starts() == 2
    assert (project.record_at("ec2").record_id(), project.run_at("ec2").spec.id) == (record, run)
    assert [row["run"] for row in project.listed("runs")] == [run]
    assert "record restored" in project.tfdeploy("events", "--cluster", "test")
    assert project.up().steps().keys() == {"unchanged"}


def test_a_type_without_capacity_loses_nothing_and_the_run_returns(project: ReplacedProject) -> None:
    with project.box.bad_day() as day:
        day.every = 0
        day.short_of.add("m7i.xlarge")
        project.ask("m7i.xlarge")
        project.up(fails=True)
        day.short_of.clear()
    result = project.run_at("ec2").result
    assert result is not None
    assert (result.state, result.cause) == (STOPPED, MOVED), "its record is on this computer"
    project.ask("c7i.large")
    preview = project.call("preview", "--stack", project.stack).output
    assert "the run, which an earlier update has stopped, continues from its newest checkpoint" in preview
    project.up()
    project.trains()
    assert_continuous(project.lines_at("ec2"))
    assert project.starts() == 3


def test_a_lost_machine_costs_what_was_trained_since_the_last_uploaded_checkpoint(project: ReplacedProject) -> None:
    """It is terminated between two checkpoints, with the controller on it: its record and checkpoint come from S3."""
    project.ask("c7i.large", more=", checkpoint_upload_interval='1s'")
    project.up()
    before, machine = project.stored_step(), project.machine(MACHINE).id
    until(lambda: project.stored_step() > before, "a newer checkpoint is stored while the run trains")
    project.upload_record(before)
    project.box.kill(machine)
    run, starts = project.run_at("ec2").spec.id, project.starts()
    shutil.rmtree(RecordCopy(project.cluster).folder)  # as on another computer
    assert project.sees_machines()[MACHINE] == "gone"
    stored = project.stored_step()
    assert stored > before
    project.up()
    until(lambda: project.steps() and project.starts() > starts, "it continues")
    assert continued_at(project.lines_at("ec2"))[-1] == stored
    assert (project.run_at("ec2").spec.id, project.machine(MACHINE).id != machine) == (run, True)
    assert project.up().steps().keys() == {"unchanged"}


def test_a_run_that_was_stopped_continues_on_shared_storage(project: ReplacedProject) -> None:
    project.tfdeploy("stop", "--yes", "--cluster", "test")
    until(lambda: project.result() == "stopped", "it is stopped")
    project.ask("m7i.large", project.efs)
    project.up()
    project.trains()
    folder = project.run_at("ec2").spec.train_dir
    assert folder.startswith("/mnt/tfdeploy/")
    project.ask("c7i.large", project.efs)
    project.up()
    project.trains()
    lines = project.lines_at("ec2")
    begins = [index for index, line in enumerate(lines) if line.startswith("continues at step")]
    assert_continuous(lines[begins[-3] :], last=continued_at(lines)[-3])
    assert project.run_at("ec2").spec.train_dir == folder, "the new machine sees it too"


def test_a_finished_run_stays_finished_with_its_record(project: ReplacedProject) -> None:
    project.tfdeploy("exec", "--cluster", "test", "worker-0", "--", "sh", "-c", "touch $TFDEPLOY_TRAIN_DIR/end")
    until(lambda: project.result() == "succeeded", "it is finished")
    lines = project.lines_at("ec2")
    project.ask("m7i.large", project.efs)
    project.up()
    assert (project.type(), project.result(), project.lines_at("ec2")) == ("m7i.large", "succeeded", lines)


def test_a_budget_that_machines_before_have_used_up_stops_the_run_and_ends_the_machines(
    project: ReplacedProject,
) -> None:
    limits = {"instance_type": "m7i.large", "efs": project.efs, "idle_timeout": "10s", "max_lifetime": "2h"}
    project.write(f"{ARGUMENTS}, run_id='paid', ec2={limits!r}", TRAINS)
    project.up()
    project.trains()
    machine = project.machine(MACHINE).id
    per_second = project.make_dear(usd=9.0)
    seconds = 60 + 10 + 10 + 60  # of training, `stop_grace_period`, `idle_timeout`, and for the end
    budget = project.spent() + per_second * seconds
    project.write(f"{ARGUMENTS}, run_id='paid', ec2={ {**limits, 'budget': budget}!r}", TRAINS)
    project.up()
    until(lambda: project.result() == "stopped", "the budget is used up")
    until(lambda: "instances" not in project.left(), "its machine has terminated itself")
    assert "tfdeploy: ends: idle for 10 s" in project.box.console(machine)
    project.look()
    result = project.run_at("ec2").result
    assert result is not None
    assert result.cause == BUDGET
    kept = stored_artifacts(project.record_at("ec2").run_folder(project.run_at("ec2").spec.id))[0]
    assert [artifact.is_complete for artifact in kept] == [True]
    assert budget - 130 * per_second < project.spent() < budget + 60 * per_second
    assert project.up().steps().keys() <= {"unchanged", "deleted"}, "the run stays stopped, and no machine is created"
    project.write(f"{ARGUMENTS}, run_id='more', ec2={ {**limits, 'budget': budget}!r}", TRAINS)
    refused = project.call("preview", "--stack", project.stack)
    assert refused.exit_code != 0
    assert f"the machines of this cluster have cost {dollars(project.spent())} already" in refused.output
    project.destroy()
