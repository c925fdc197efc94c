"""What a user relies on, the same on every backend: names, flags, TF_CONFIG, outputs, states, and finished is finished.

Each test has a run of its own on the machines that all of them share; the last one destroys them.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.ec2.project import Ec2Project
from tests.integration.conftest import WAITS, Project
from tests.toy_backend.project import ToyProject
from tests.verbs import Verbs
from tests.waiting import until
from tfdeploy.agent.model.task_dump import TaskDump
from tfdeploy.agent.record.output import Log
from tfdeploy.agent.record.output_lines import STDERR, STDOUT, printed

TOLD = """\
import json, os, pathlib, socket, sys, time
for address in filter(None, os.environ.get("TFDEPLOY_STORE_HOSTS", "").split(",")):
    socket.create_connection(address.rsplit(":", 1), 10).close()
counter = pathlib.Path(os.environ["COUNTER"]) / os.environ["TFDEPLOY_HOSTNAME"]
counter.write_text(str(int(counter.read_text() if counter.exists() else 0) + 1))
not_of_the_run = ("TFDEPLOY_MACHINE", "TFDEPLOY_CLUSTER", "TFDEPLOY_CHILD", "TFDEPLOY_TESTS_WITHOUT_DOCKER")
known = {name: os.environ[name] for name in os.environ if name.startswith("TFDEPLOY_") and name not in not_of_the_run}
known["TF_CONFIG"] = json.loads(os.environ["TF_CONFIG"])
known["FAIL_FAST"] = os.environ["GRPC_FAIL_FAST"]
known["CUDA"] = os.environ["CUDA_VISIBLE_DEVICES"]
known["own"] = f'{os.environ["OWN"]} at niceness {os.nice(0)}'
shared = pathlib.Path(os.environ["TFDEPLOY_TRAIN_DIR"])
(shared / os.environ["TFDEPLOY_HOSTNAME"]).write_text("a checkpoint")
while not (shared / "ps-0").exists():
    time.sleep(0.1)
print(json.dumps({"flags": sys.argv[1:], "known": known}))
print("accuracy: 0.5")
while os.environ["TFDEPLOY_JOB_NAME"] == "ps":
    time.sleep(1)
"""
JOB = (
    'command=["python", "train.py", "--steps=3"], code="code", ps=1, workers=2, metrics={"accuracy": r"accuracy: (\\\\S+)"}, '
    'env={"COUNTER": __import__("os").environ["COUNTER"], "OWN": "of {hostname}"}, context={"a": [1]}'
).replace("\\\\", "\\")
STORE = (
    "import http.server, os; port = int(os.environ['TFDEPLOY_ADDRESS'].rpartition(':')[2]); "
    "http.server.HTTPServer(('', port), http.server.SimpleHTTPRequestHandler).serve_forever()"
)
SERVED = f'{JOB}, jobs={{"worker": {{"nice": 5}}}}, services={{"store": {{"command": ["python", "-c", {STORE!r}]}}}}'
EATER = """\
import os, time
eaten = bytearray(400 * 1024 * 1024) if os.environ["TFDEPLOY_JOB_NAME"] == "worker" else b""
time.sleep(60)
"""
PRINTS = """\
import os
def put(pipe, data):
    while data:
        data = data[os.write(pipe, data) :]
for number in range(100):
    put(1 + number % 2, b"%d of %d\\r" % (number, 100) * (number % 3) + b"\\n" * (number % 5))
put(1, bytes(range(256)) * 300)
put(2, b"\\xff\\xc3\\n\\0" * 10_000)
put(1, b"x" * 5_000_000)
"""
"""A program whose output has all bytes, parts of lines of both streams by turns, a line of 5 MB, and no newline at the end."""

STDOUT_BYTES, STDERR_BYTES = (
    b"".join(b"%d of 100\r" % number * (number % 3) + b"\n" * (number % 5) for number in range(first, 100, 2)) + rest
    for first, rest in ((0, bytes(range(256)) * 300 + b"x" * 5_000_000), (1, b"\xff\xc3\n\0" * 10_000))
)
AGREES = """\
import faulthandler, os, signal
faulthandler.register(signal.SIGUSR2, open(os.environ["TFDEPLOY_STACKS"], "w"))
"""
"""The first lines of a program that writes its stacks for `tfdeploy dump`."""

MACHINES = {"test-swarm"}
"""What changes where machines come and go with the tasks."""

HOSTNAMES = ["ps-0", "worker-0", "worker-1"]
ADDRESS = re.compile(r"[A-Za-z0-9.-]+:[0-9]+")
MACHINE = ("machine", "provider", "public_ip", "region", "role", "size", "status")
COLUMNS = sorted(
    "hostname job index machine container command status exit_code created address public_ip".split()  # noqa: SIM905
)
FOLDERS = ("TFDEPLOY_TRAIN_DIR", "TFDEPLOY_SECRETS", "TFDEPLOY_STACKS", "TFDEPLOY_RUN", "TFDEPLOY_DATA_DIR")
CHANGING = re.compile(r"alive|log|supervisord\.log|controller\.log|exit\.json|\..*\.draft")
"""Files that a cluster itself writes while it runs, and when its last tasks end after `up` has returned."""


def told(outputs: dict[str, Any], hostname: str) -> dict[str, Any]:
    """What a task said of itself, with addresses replaced by the word ADDRESS."""
    found: dict[str, Any] = json.loads(ADDRESS.sub("ADDRESS", outputs["logs"][hostname][0]))
    for folder in FOLDERS:
        found["known"].pop(folder)
    return found


def files(folder: Path) -> dict[str, str]:
    """Path to the hash of its content, of all files that only Pulumi programs write; of a run, whose files the controller writes at
    any time, the path of its folder."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_dir() and path.parent.name == "runs":
            found[str(path.relative_to(folder))] = "a run"
        elif not CHANGING.fullmatch(path.name) and not {"__pycache__", "runs"} & set(path.parts) and path.is_file():
            found[str(path.relative_to(folder))] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def preview_that_writes_nothing(project: Project) -> str:
    """What a preview prints that leaves all files of the user byte for byte the same."""
    before = files(project.folder / "state"), files(project.program)
    done = project.call("preview", "--stack", project.stack)
    assert done.exit_code == 0, done.output
    after = files(project.folder / "state"), files(project.program)
    changed = {name for was, now in zip(before, after, strict=True) for name, _ in was.items() ^ now.items()}
    assert not changed
    return done.output


def test_a_preview_of_a_new_cluster_leaves_nothing_behind(project: Project) -> None:
    project.write(JOB, TOLD)
    assert "~ worker-0" not in preview_that_writes_nothing(project), "the cluster of another login is not this one"


def test_names_flags_environment_and_outputs(project: Project) -> None:
    project.write(SERVED, TOLD)
    project.up()
    outputs = project.outputs()

    assert [row["hostname"] for row in outputs["tasks"]] == [*HOSTNAMES, "store-0"]
    assert {row["hostname"]: row["status"] for row in outputs["tasks"]} == {
        "ps-0": "stopped (run finished)",
        "worker-0": "succeeded",
        "worker-1": "succeeded",
        "store-0": "stopped (run finished)",
    }
    assert outputs["state"] == "succeeded"
    assert (outputs["metrics"], outputs["endpoints"]) == ({"accuracy": 0.5}, {}), "nothing listens after the run"
    assert all(ADDRESS.fullmatch(row["address"]) for row in outputs["tasks"])
    assert all(sorted(row) == COLUMNS for row in outputs["tasks"])
    assert all(row["container"] and row["machine"] and row["created"].endswith("Z") for row in outputs["tasks"])
    assert {*outputs["machines"][0]} == {*MACHINE}
    assert outputs["machines"][0]["status"] == "connected"
    assert outputs["status"].endswith("Run succeeded: worker-0 succeeded.")

    for index in (0, 1):
        cluster = {"ps": ["ADDRESS"], "worker": ["ADDRESS", "ADDRESS"]}
        assert told(outputs, f"worker-{index}") == {
            "flags": [
                "--steps=3",
                "--job_name=worker",
                f"--task_index={index}",
                "--ps_hosts=ADDRESS",
                "--worker_hosts=ADDRESS,ADDRESS",
            ],
            "known": {
                "TFDEPLOY_HOSTNAME": f"worker-{index}",
                "TFDEPLOY_ADDRESS": "ADDRESS",
                "TFDEPLOY_JOB_NAME": "worker",
                "TFDEPLOY_TASK_INDEX": str(index),
                "TFDEPLOY_PS_HOSTS": "ADDRESS",
                "TFDEPLOY_WORKER_HOSTS": "ADDRESS,ADDRESS",
                "TFDEPLOY_STORE_HOSTS": "ADDRESS",
                "TFDEPLOY_CONTEXT": '{"a": [1]}',
                "TF_CONFIG": {
                    "cluster": cluster,
                    "task": {"type": "worker", "index": index},
                    "environment": "cloud",
                },
                "FAIL_FAST": "use_caller",
                "CUDA": "",
                "own": f"of worker-{index} at niceness 5",
            },
        }


def test_a_preview_of_changes_leaves_nothing_behind(project: Project) -> None:
    limited = SERVED.replace('"nice": 5', '"nice": 7, "memory": "1GiB"')
    project.write(limited.replace("workers=2", "workers=3"), TOLD)
    preview = preview_that_writes_nothing(project)
    assert "+ worker-2" in preview
    change = "~ worker-0, worker-1  memory none -> 1 GiB, nice 5 -> 7  (restarts, one task at a time)"
    assert change in preview or isinstance(project, ToyProject)


def test_finished_stays_finished(project: Project) -> None:
    job = f'{JOB}, run_id="once"'
    project.write(job, TOLD)
    assert '"ephemeral":true' not in project.up().events, "without a terminal each message would be a line"
    once = dict.fromkeys(HOSTNAMES, 1)
    assert project.counts() == once

    again = project.up("--refresh")
    assert list(again.steps()) == ["unchanged"], again.output
    limited = job + ', jobs={"worker": {"memory": "1GiB"}}'
    project.write(limited, TOLD)
    assert project.up().touched() == {"test-worker-0", "test-worker-1"}
    project.write(limited + ', container={"placement": ["hostname:UNLIKE:no-such-machine"]}', TOLD)
    project.up("--refresh")
    assert project.outputs()["state"] == "succeeded"
    assert project.counts() == once

    project.write(f'{JOB}, run_id="again"', TOLD)
    assert "test-run" in project.up().touched()
    assert project.counts() == dict.fromkeys(HOSTNAMES, 2)
    assert project.outputs()["state"] == "succeeded"


@pytest.mark.parametrize("finished", [False, True], ids=["open", "finished"])
def test_a_replacement_deletes_no_successor(project: Project, finished: bool) -> None:
    """Nor does a deletion that a failed update has left in the state."""
    gated = (
        'command=["python", "train.py"], code="code", workers=2, env={"COUNTER": __import__("os").environ["COUNTER"]}'
    )
    project.write(f'{gated}, run_id="replaced-{finished}"', WAITS)
    if finished:
        (project.folder / "counter/.gate").touch()
    project.up(env={"TFDEPLOY_WAIT": "10m" if finished else "0"})
    starts = {"worker-0": 1, "worker-1": 1}

    def assert_unharmed() -> None:
        if not finished:
            project.until_running(*starts)
        assert list(project.up(env={"TFDEPLOY_WAIT": "0"}).steps()) == ["unchanged"]
        assert project.counts() == starts
        assert project.outputs()["state"] == ("succeeded" if finished else "running")

    assert_unharmed()
    for name in lasting_resources(project, finished):
        refused = project.call("preview", "--stack", project.stack, "--replace", f"**::{name}")
        assert refused.exit_code != 0
        assert f"{name} is not replaced" in refused.output
        project.up("--replace", f"**::{name}", fails=True)
    assert_unharmed()
    project.up("--replace", "**::test-run", env={"TFDEPLOY_WAIT": "0"})
    assert_unharmed()
    leave_deletions(project)
    project.up(env={"TFDEPLOY_WAIT": "0"})
    assert_unharmed()
    project.up("--replace", "**::test-worker-0", env={"TFDEPLOY_WAIT": "0"})
    if not finished:
        until(lambda: project.counts()["worker-0"] == 2, "worker-0 starts again", seen=project.counts)
    starts["worker-0"] += not finished
    if not isinstance(project, ToyProject):  # there the other task gets its new address
        assert_unharmed()
    (project.folder / "counter/.gate").touch()
    project.up(env={"TFDEPLOY_WAIT": "10m"})
    assert project.outputs()["state"] == "succeeded"


def lasting_resources(project: Project, finished: bool) -> list[str]:
    """What is not replaced; the machine with the controller, as long as the run is open."""
    if not isinstance(project, Ec2Project):
        return ["test-id", "test-cleanup"]
    managers = [row["machine"] for row in project.outputs()["machines"] if row["role"] == "Master"]
    return ["test-id", "test-cleanup", "test-ssh-key", *([] if finished else managers)]


def leave_deletions(project: Project) -> None:
    """Leave deletions of predecessors in the state, as a failed update does."""
    state = json.loads(project.state().read_text())
    resources = state["checkpoint"]["latest"]["resources"]
    kinds = tuple(f"dynamic/tfdeploy:{kind}" for kind in ("Cleanup", "Task", "Run"))
    resources += [{**item, "delete": True} for item in resources if item["type"].endswith(kinds)]
    project.state().write_text(json.dumps(state))


def test_a_failed_task_says_how(project: Project) -> None:
    project.write(JOB, TOLD + 'sys.exit(3 if os.environ["TFDEPLOY_HOSTNAME"] == "worker-1" else time.sleep(60))\n')
    done = project.up(fails=True)
    assert "worker-1 failed (exit 3)" in done.output
    rows = {row["hostname"]: row for row in project.outputs()["tasks"]}
    assert rows["worker-1"]["status"] == "failed (exit 3)"
    assert rows["worker-1"]["exit_code"] == 3
    assert rows["worker-0"]["status"] == "stopped (run failed)"
    assert "This update has started no run." in project.up(fails=True).output
    assert project.counts()["worker-1"] == 1


def test_more_memory_than_allowed_is_out_of_memory(project: Project) -> None:
    project.write(JOB + ', jobs={"worker": {"memory": "128MiB"}}', EATER)
    project.up(fails=True)
    assert "out of memory" in project.statuses().values()
    assert "out of memory" in project.outputs()["status"]


def test_growing_and_shrinking_touch_only_what_must_be(project: Project) -> None:
    never = TOLD.replace('os.environ["TFDEPLOY_JOB_NAME"] == "ps"', "True").replace("sleep(1)", "sleep(600)")
    job, sleeper = f'{JOB}, wait="0"', AGREES + never
    project.write(job, sleeper)
    project.up()
    project.until_running(*HOSTNAMES)
    assert_dumps(project, len(sleeper.splitlines()))
    project.write(job.replace("workers=2", "workers=3"), sleeper)
    assert project.up().touched() - MACHINES == {"test-cleanup", "test-worker-2", "test-run"}
    project.until_running(*HOSTNAMES, "worker-2")
    project.write(job.replace("workers=2", "workers=1"), sleeper)
    assert project.up().touched() - MACHINES == {"test-cleanup", "test-worker-1", "test-worker-2", "test-run"}
    project.until_running("ps-0", "worker-0")


def test_elastic_workers_come_and_go_until_a_metric_ends_the_training(project: Project) -> None:
    job = f'{JOB}, elastic={{"max": 3}}, until={{"accuracy": ">= 0.9"}}, wait="0", run_id="elastic"'
    gated = "while not (counter.parent / '.gate').exists():\n    time.sleep(0.1)\nprint('accuracy: 0.9')\n"
    endless = TOLD.replace("while os.environ", f"{gated}while os.environ").replace(
        'os.environ["TFDEPLOY_JOB_NAME"] == "ps"', "True"
    )
    project.write(job, endless)
    project.up()
    project.until_running(*HOSTNAMES)
    project.write(job.replace("workers=2", "workers=3"), endless)
    project.up()
    project.until_running(*HOSTNAMES, "worker-2")
    project.until_counts(dict.fromkeys([*HOSTNAMES, "worker-2"], 1))  # no other task has started again
    project.write(job.replace("workers=2", "workers=1"), endless)
    project.up()
    project.until_running("ps-0", "worker-0")
    assert {*project.statuses()} == {"ps-0", "worker-0"}
    assert project.counts() == dict.fromkeys([*HOSTNAMES, "worker-2"], 1)
    (project.folder / "counter/.gate").touch()
    project.up(env={"TFDEPLOY_WAIT": "10m"})
    assert (project.outputs()["state"], project.outputs()["metrics"]) == ("succeeded", {"accuracy": 0.9})
    assert "Run succeeded: accuracy 0.9 reached >= 0.9" in project.outputs()["status"]


def assert_dumps(project: Project, line: int) -> None:
    """What the launchers send of their programs, which wait in this line, and still run afterwards."""
    verbs = Verbs(project.program, project.env)

    def sleeping() -> Mapping[str, TaskDump] | None:
        code, said, _ = verbs.call("dump", "--json")  # on a busy machine, a launcher may answer too late
        tasks = json.loads(said)["tasks"] if code == 0 else []
        dumps = {task["hostname"]: TaskDump.from_dict(task["dump"]) for task in tasks if task["dump"]}
        stacks = [dump.python[0].frames for dump in dumps.values() if dump.python]
        return dumps if stacks == [[f"train.py:{line} in <module>"]] * len(HOSTNAMES) else None

    dumps = until(sleeping, "all sleep", seen=lambda: verbs.call("dump"))
    assert sorted(dumps) == HOSTNAMES
    for dump in dumps.values():
        assert (dump.notes, dump.cpus < 0.5) == ([], True)
        assert dump.memory > 1 << 20
    assert set(project.counts().values()) == {1}


def outputs_in_bucket(project: Ec2Project) -> list[bytes]:
    """What S3 has of each run's output of worker-0, its objects joined in their order."""
    pieces: dict[str, dict[tuple[int, int], bytes]] = {}
    for name, content in project.stored().items():
        if found := re.search(r"runs/([^/]+)/logs/worker-0/(\d+)\.log(?:@(\d+))?$", name):
            pieces.setdefault(found[1], {})[int(found[2]), int(found[3] or 0)] = content
    return [b"".join(part for _, part in sorted(parts.items())) for parts in pieces.values()]


def test_destroy_leaves_nothing_but_a_record_with_every_byte(project: Project) -> None:
    project.write(f'{JOB}, run_id="bytes"', PRINTS)
    project.up()
    project.destroy()
    folders = [path for path in (project.folder / "state").rglob("logs/worker-0") if "retained" in path.parts]
    assert (STDOUT_BYTES, STDERR_BYTES) in [(log.printed(STDOUT), log.printed(STDERR)) for log in map(Log, folders)]
    if isinstance(project, Ec2Project):
        outputs = outputs_in_bucket(project)
        assert (STDOUT_BYTES, STDERR_BYTES) in [tuple(printed(it, pipe) for pipe in (STDOUT, STDERR)) for it in outputs]
