"""What is secret is where it must be, and nowhere else."""

import base64
import hashlib
import subprocess
from contextlib import suppress
from pathlib import Path

from tests.docker.project import DockerProject
from tests.waiting import until

CANARY, PLAIN = "canary-7d21e8", "canary-of-a-plain-text"
JOB = 'command=["python", "train.py"], code="code", ps=1, workers=1, wait="0"'
SECRETS = f"secrets={{'API_TOKEN': pulumi.Output.secret({CANARY!r}), 'license.txt': {PLAIN!r}}}"
ENV = f"env={{'from_output': pulumi.Output.secret({CANARY!r})}}"
READS = """\
import hashlib, os, pathlib, time
secrets = pathlib.Path(os.environ["TFDEPLOY_SECRETS"])
assert os.environ["API_TOKEN"] == (secrets / "API_TOKEN").read_text()
assert "license.txt" not in os.environ
assert os.environ["from_output"] == os.environ["API_TOKEN"]
for name in ("API_TOKEN", "license.txt"):
    print(hashlib.sha256((secrets / name).read_bytes()).hexdigest(), flush=True)
time.sleep(600)
"""


def command_lines() -> str:
    """All that runs on this machine, containers included, as `ps` shows it to everybody."""
    found = ""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found += path.read_bytes().decode(errors="replace")
    return found


def test_secrets_and_token_are_in_the_tasks_and_nowhere_else(project: DockerProject) -> None:
    project.write(f"{JOB}, {SECRETS}, {ENV}", READS)
    running = project.start("up", "--yes", "--skip-preview", "--stack", project.stack)
    argv = ""
    while running.poll() is None:
        argv += command_lines()
        with suppress(subprocess.TimeoutExpired):
            running.wait(0.05)
    assert running.stdout is not None
    shown = running.stdout.read()
    assert running.returncode == 0, shown
    digests = [hashlib.sha256(secret.encode()).hexdigest() for secret in (CANARY, PLAIN)]

    def read() -> bool:
        return [line.text for line in project.look(20).view.logs["worker-0"]] == digests

    until(read, "the task has read them")
    hostname, _, token = project.inside("worker-0", "cat", "/run/tfdeploy/token").partition(":")
    assert (hostname, len(token)) == ("worker-0", 64), "the token of this task, which is derived from the cluster's"

    left = project.left()
    places = {"argv": argv + command_lines(), "shown": shown}
    for kind in ("service", "config", "secret", "network", "volume", "container"):
        places[kind] = project.docker(kind, "inspect", *left[kind].split())
    services = left["service"].split()
    tasks = [line for name in services for line in project.docker("service", "ps", "--quiet", name).split()]
    places["task"] = project.docker("inspect", "--type", "task", *tasks)
    places["logs"] = "".join(project.docker("service", "logs", "--raw", name) for name in services)
    places["state"] = project.call("stack", "export", "--stack", project.stack).output
    project.up()
    places["outputs"] = project.call("stack", "output", "--json", "--show-secrets", "--stack", project.stack).output
    record = project.record().folder
    places["record"] = "".join(
        path.read_bytes().decode(errors="replace") for path in record.rglob("*") if path.is_file()
    )
    assert all(places[kind] for kind in places if kind != "logs")
    for place, text in places.items():
        for secret in (CANARY, PLAIN, token):
            assert secret not in text, place
            assert base64.b64encode(secret.encode()).decode().rstrip("=") not in text, place
    project.destroy()
