"""What a receipt says, as text."""

from dataclasses import replace

from tests.unit.report.test_run_history import finished, stored
from tfdeploy.agent.record.artifacts import CHECKPOINT, FILES, StoredArtifact
from tfdeploy.agent.run_spec import RunJob
from tfdeploy.receipts import Receipt
from tfdeploy.report.run_history import receipt_facts


def test_what_is_not_known_is_left_out() -> None:
    run = stored(finished(1_000.0))
    assert receipt_facts(replace(run.spec, code=""), run.outcome, None) == {
        "command": "python train.py",
        "tasks": "ps: 1, worker: 2",
    }


def test_commands_machines_code_speed_and_cost() -> None:
    run = stored(finished(1_000.0))
    jobs = {**run.spec.jobs, "worker": RunJob(command=["python", "work.py"])}
    receipt = Receipt({}, {}, {"c7i.large": 1, "g6.xlarge": 2}, code_files=2, code_bytes=2048)
    went = replace(run.outcome, cost=0.0832, steps_per_second=41.253)
    assert receipt_facts(replace(run.spec, code="0123abcd", jobs=jobs), went, receipt) == {
        "command": "python train.py",
        "command of worker": "python work.py",
        "tasks": "ps: 1, worker: 2",
        "machines": "c7i.large: 1, g6.xlarge: 2",
        "code": "0123abcd (2 files, 2 KiB)",
        "steps/s": "41.25",
        "cost": "$0.0832",
    }


def test_the_checkpoint_that_is_stored_has_its_step() -> None:
    run = stored(finished(1_000.0))
    names = ("model.ckpt-4200", "best", "export")
    artifacts = [StoredArtifact(FILES if name == "export" else CHECKPOINT, name, 8) for name in names]
    facts = receipt_facts(run.spec, run.outcome, None, artifacts)
    assert facts["checkpoint"] == "model.ckpt-4200 (step 4,200), best"
