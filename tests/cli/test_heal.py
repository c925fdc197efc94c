"""What died comes back; an edit is refused."""

from contextlib import suppress

import psutil

from tests.cli.calling import ARGUMENTS, TRAIN, open_gate, tfdeploy
from tests.integration.conftest import Project
from tests.waiting import until
from tfdeploy.backends.local.supervisor import marked


def kill(project: Project) -> None:
    """A power cut: all processes of the cluster are gone at once."""
    for process in (project.supervisord(), *marked(project.places().home)):
        with suppress(psutil.NoSuchProcess):
            process.kill()
    until(lambda: not marked(project.places().home), "all are gone")


def test_a_killed_supervisord_comes_back_and_an_edit_is_refused(training: Project) -> None:
    nothing = tfdeploy(training, "restart", "--lost")
    assert (nothing.code, nothing.out) == (0, "training/test: nothing is lost.\n"), nothing.err
    kill(training)
    gone = tfdeploy(training, "explain")
    assert (gone.code, gone.out.startswith("The cluster's supervisord is gone")) == (1, True), gone.out
    training.write(ARGUMENTS.replace("workers=2", "workers=3"), TRAIN)
    refused = tfdeploy(training, "restart", "--lost")
    assert refused.code == 2
    assert "test-worker-2 would be created for the first time" in refused.err
    assert "Run `pulumi up` to apply these edits too" in refused.err
    assert not training.supervisor().running()

    training.write(ARGUMENTS, TRAIN)
    dry = tfdeploy(training, "restart", "--lost", "--dry-run", "--json").data
    assert sorted(dry["restored"]) == ["test-ps-0", "test-run", "test-worker-0", "test-worker-1"]
    assert not training.supervisor().running()
    healed = tfdeploy(training, "restart", "--lost")
    assert healed.code == 0, healed.out + healed.err
    assert "training/test: restored 4 resources" in healed.out
    training.until_running("ps-0", "worker-0", "worker-1")
    lock = training.folder / "backend/.pulumi/locks/organization/training/test/lock.json"
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.write_text("{}")
    locked = tfdeploy(training, "restart", "--lost")
    lock.unlink()
    assert (locked.code, "use `pulumi cancel`" in locked.err) == (1, True)


def test_a_job_that_is_over_needs_nothing(training: Project) -> None:
    open_gate(training)
    assert tfdeploy(training, "wait", "--timeout", "5m").code == 0
    kill(training)
    over = tfdeploy(training, "restart", "--lost")
    assert (over.code, over.out) == (0, "training/test: the run has ended, so nothing is restored.\n")
    assert not training.supervisor().running()
