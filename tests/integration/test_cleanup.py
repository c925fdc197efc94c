"""Nothing is left, however it came to be left."""

import os
import signal

import pytest

from tests.integration.conftest import Project, plugins_end
from tests.verbs import Terminal, Verbs
from tests.waiting import until
from tfdeploy.agent.record.record import Record
from tfdeploy.backends.local.supervisor import MARK, marked

SLEEPER = "import time\ntime.sleep(600)"
JOB = 'command=["python", "train.py"], code="code", ps=1, workers=1, wait="0"'

# One of the hands stops for ever in its first call, so that the engine can be killed in the midst of that create.
HANG = """\
import sys, time, pathlib
from tfdeploy.backends.local.task_runner import LocalTaskRunner
from tfdeploy import resources
def hanging(before, what):
    def call(self, props):
        result = before(self, props)
        pathlib.Path({folder!r}, "reached").touch()
        time.sleep(3600)
        return result
    return call
owner, method = {target}
setattr(owner, method, hanging(getattr(owner, method), method))
"""

CREATES = {
    "Cleanup": '(resources.CleanupProvider, "create")',
    "Task": '(LocalTaskRunner, "create_task")',
    "Run": '(LocalTaskRunner, "submit_run")',
}


@pytest.mark.parametrize("kind", CREATES)
def test_pulumi_killed_during_each_create_leaves_nothing_after_cancel_and_destroy(project: Project, kind: str) -> None:
    project.write(JOB, SLEEPER)
    hang = HANG.format(folder=str(project.folder), target=CREATES[kind])
    # Only the process that runs the providers is made to hang: `python -m pulumi.dynamic`.
    guard = "import sys\nif 'pulumi.dynamic' in ' '.join(sys.orig_argv):\n"
    env = project.customize_python(guard + "".join(f"    {line}\n" for line in hang.splitlines()))
    process = project.start("up", "--yes", "--skip-preview", "--stack", project.stack, env=env)
    until((project.folder / "reached").exists, "the create was reached")
    project.kill(process)
    assert project.call("cancel", "--yes", "--stack", project.stack).exit_code == 0
    project.destroy()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGHUP])
def test_pulumi_dies_while_it_waits_and_the_next_update_continues(project: Project, number: signal.Signals) -> None:
    project.write(JOB.replace('wait="0"', 'wait="10m"'), SLEEPER)
    project.use_plain_python()
    command = ["pulumi", "up", "--yes", "--skip-preview", "--stack", project.stack]
    update = Terminal(command, project.program, project.env)
    project.until_running("worker-0")
    program = project.child("worker-0")
    with plugins_end(update.pid):
        if number != signal.SIGHUP:
            os.kill(update.pid, number)
        assert update.hang_up() == -number
    assert project.call("cancel", "--yes", "--stack", project.stack).exit_code == 0
    project.write(JOB, SLEEPER)
    project.up()
    assert project.child("worker-0") == program
    project.destroy()


def test_refresh_sees_what_died_and_up_heals_it_and_destroy_can_be_typed_in_a_shell_inside_a_task(
    project: Project,
) -> None:
    """Even in a shell that has the cluster's mark, as every process of the cluster does."""
    project.write(JOB, SLEEPER)
    project.up()
    project.until_running("ps-0", "worker-0")
    project.supervisord().send_signal(signal.SIGKILL)
    until(lambda: not project.supervisor().running(), "supervisord gone")
    seen = project.up()
    assert seen.steps() == {"unchanged": 7}
    assert "up --refresh" in seen.output
    outputs = project.outputs()
    assert outputs["state"] == "unknown"
    assert all(row["status"].startswith("unreachable since") for row in outputs["tasks"])
    project.up("--refresh")
    project.until_running("ps-0", "worker-0")

    login = {key: value for key, value in project.env.items() if key.startswith(("PULUMI_", "VAULT_"))}
    env = {**login, MARK: str(project.places().home)}
    shell = ["env", *(f"{key}={value}" for key, value in env.items()), "sh"]
    terminal = Verbs(project.program, project.env).terminal("exec", "worker-0", "--", *shell)
    terminal.type(f"cd {project.program}; pulumi destroy --yes --skip-preview --stack {project.stack}; echo ended $?\n")
    terminal.until_said("ended 0")
    terminal.type("exit 5\n")
    assert terminal.end() == 5, "the shell itself was killed"
    project.assert_nothing_left()


CANARY = "canary-5f3a9c"


def test_secrets_are_in_the_task_and_nowhere_else(project: Project) -> None:
    names = ("API_TOKEN", "from_output", "FROM_CONFIG")
    script = f"import os, time\nprint([len(os.environ[name]) for name in {names}], flush=True)\ntime.sleep(600)"
    secret = f"secrets={{'API_TOKEN': pulumi.Output.secret({CANARY!r})}}, env={{'from_output': pulumi.Output.secret({CANARY!r})}}"
    project.write(f"{JOB}, {secret}", script)
    project.set("tfdeploy:env.FROM_CONFIG", CANARY, "--secret", "--path")
    shown = project.up().output
    project.until_running("worker-0")
    until(lambda: project.log("worker-0") == f"{[len(CANARY)] * 3}\n", "the task has them")
    state = project.call("stack", "export", "--stack", project.stack).output
    argv = [" ".join(process.cmdline()) for process in marked(project.places().home)]
    places = project.places()
    files = [path for path in places.home.rglob("*") if path.is_file() and places.secrets not in path.parents]
    assert len(argv) >= 5
    token = places.token.read_text()
    assert token
    assert token not in state
    assert token not in "".join(argv)
    for place, text in {"state": state, "shown": shown, "argv": "\n".join(argv)}.items():
        assert CANARY not in text, place
    assert [path for path in files if CANARY.encode() in path.read_bytes()] == []
    assert (places.secrets / "API_TOKEN").stat().st_mode & 0o077 == 0
    before = Record(places.record).current()
    project.set("tfdeploy:env.FROM_CONFIG", f"{CANARY}-2", "--secret", "--path")
    project.up()
    after = Record(places.record).current()
    assert before is not None
    assert after is not None
    assert after.spec.id != before.spec.id
    assert after.spec.content_id == before.spec.content_id
    project.destroy()
