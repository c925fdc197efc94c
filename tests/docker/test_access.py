"""What a user gets at in a task of a Swarm: another container, commands in it, its address from here."""

import json
from concurrent.futures import ThreadPoolExecutor

from tests.docker.project import DockerProject
from tests.verbs import ECHO, Verbs, talk
from tests.waiting import until
from tfdeploy.agent.model.events import RESTART_REQUESTED, TASK_INTERRUPTED

LIVES = f"""\
import pathlib
{ECHO}
hostname, train = os.environ["TFDEPLOY_HOSTNAME"], os.environ["TFDEPLOY_TRAIN_DIR"]
counter = pathlib.Path(os.environ["COUNTER"], hostname)
counter.write_text(str(int(counter.read_text() if counter.exists() else 0) + 1))
told = []
for place in ("/tmp", train, "/own", "/both", "/mine"):
    if pathlib.Path(place).exists():
        with open(place + "/" + hostname, "a") as lives:
            lives.write("x")
        told.append(len(pathlib.Path(place, hostname).read_text()))
print("lives", *told, flush=True)
import threading
threading.Thread(target=serve, args=(8888,), daemon=True).start()
serve()
"""
"""Tells how often it has lived in its container, `train_dir`, and its volumes; then sends back what it gets."""


def arguments(project: DockerProject) -> str:
    """A parameter server with volumes: its own, one that the worker has too, and one that was there before."""
    ps = [f"{project.name}-{part}:/{part}" for part in ("own", "both", "mine")]
    jobs = {"ps": {"container": {"volumes": ps}}, "worker": {"container": {"volumes": ps[1:2]}}}
    counter = 'env={"COUNTER": __import__("os").environ["COUNTER"], "OWN": "of {hostname}"}'
    return f'command=["python", "train.py"], code="code", ps=1, workers=1, wait="0", {counter}, jobs={jobs}'


def told(project: DockerProject, hostname: str) -> list[list[int]]:
    """What a task has told of each of its lives."""
    lines = [line.text for line in project.look(100).view.logs[hostname] if line.text.startswith("lives")]
    return [list(map(int, line.split()[1:])) for line in lines]


def starts_again(project: DockerProject, verbs: Verbs) -> None:
    """Restarts and replaces, once the first life of both has told."""
    for hostname in ("ps-0", "worker-0"):
        until(lambda name=hostname: told(project, name), f"the first life of {hostname}")  # type: ignore[misc]
    before = project.job()
    code, _, said = verbs.call("restart", "ps-0", "--yes")
    assert code == 0, said
    stays = ", ".join(f"{project.name}-{part}" for part in ("own", "both", "mine"))
    assert f"Volumes {stays} will be retained. Files in train_dir ({before.spec.train_dir}) will be retained." in said
    until(lambda: told(project, "ps-0") == [[1, 1, 1, 1, 1], [1, 2, 2, 2, 2]], "the second life")
    project.until_event(RESTART_REQUESTED, "ps-0")
    project.until_event(TASK_INTERRUPTED, "ps-0")

    code, _, said = verbs.call("restart", "--without-data", "ps-0", "--yes")
    assert code == 0, said
    until(lambda: told(project, "ps-0")[2:] == [[1, 3, 1, 3, 3]], "the third life")
    after = project.job()
    assert after.address_book == before.address_book
    assert {name: task.failures for name, task in after.tasks.items()} == {"ps-0": 0, "worker-0": 0}
    assert project.counts() == {"ps-0": 3, "worker-0": 1}
    assert project.up().steps().keys() == {"unchanged"}


def enters(project: DockerProject, verbs: Verbs) -> None:
    """Commands with and without a terminal."""
    tells = 'pwd; echo "$OWN $TFDEPLOY_ADDRESS"; tr a-z A-Z; echo beside >&2; exit 7'
    code, said, beside = verbs.call("exec", "worker-0", "--", "sh", "-c", tells, stdin=b"input\x00\xff")
    work = f"/tmp/tfdeploy/work/{project.job().spec.id}"
    assert (code, beside) == (7, "beside\n")
    assert said == f"{work}\nof worker-0 worker-0:2222\nINPUT".encode() + b"\x00\xff"
    many = verbs.call("exec", "worker-0", "--", "cat", stdin=bytes(range(256)) * 20_000)
    assert many == (0, bytes(range(256)) * 20_000, "")
    code, _, beside = verbs.call("exec", "worker-0", "--", "no-such-program")
    assert (code, beside) == (127, "tfdeploy: cannot start 'no-such-program': No such file or directory\n")
    assert verbs.call("exec", "worker-1", "--", "true")[0] == 3
    terminal = verbs.terminal("exec", "worker-0", "--", "sh")
    terminal.type("until stty size | grep 41; do :; done; read line; echo got $line\n")
    terminal.until_said("41 97")
    terminal.resize(33, 66)
    terminal.type("keys\n")
    terminal.until_said("got keys\r\n")
    terminal.type("until stty size | grep 33; do :; done\n")
    terminal.until_said("33 66")
    terminal.type("trap 'exit 5' INT; echo $((40 + 2)) is set; while sleep 1; do :; done\n")
    terminal.until_said("42 is set")
    terminal.type("\x03")
    assert terminal.end() == 5


def copies(project: DockerProject, verbs: Verbs) -> None:
    """Files of a container, one of them of many parts, as the user of its program."""
    makes = (
        "mkdir out; head -c 5000000 /dev/urandom > out/big; chmod 600 out/big; ln -s /etc/passwd out/far; cat out/big"
    )
    _, content, _ = verbs.call("exec", "worker-0", "--", "sh", "-c", makes)
    assert len(content) == 5_000_000
    code, said, beside = verbs.call("cp", "worker-0:out", ".", "--json")
    assert code == 0, beside
    assert (verbs.folder / "out" / "big").read_bytes() == content
    assert json.loads(said)["skipped"] == {"far": "a link to /etc/passwd, outside of the folder"}
    assert verbs.call("cp", "worker-0:out/big", "-") == (0, content, "")
    assert verbs.call("cp", "worker-0:/tmp/worker-0", "-") == (0, b"x", "")
    train = project.job().spec.train_dir
    assert verbs.call("cp", "worker-0:train_dir/worker-0", "-") == (0, b"x", "")
    code, _, beside = verbs.call("cp", "worker-0:train_dir/none", ".")
    assert (code, f"worker-0:train_dir/none does not exist. {train} has: " in beside) == (3, True)


def leads_there(verbs: Verbs) -> None:
    """A way to two tasks, of which nothing listens on the machine."""
    with verbs.locked("port-forward", "ps-0", "worker-0") as addresses:
        assert list(addresses) == ["ps-0", "worker-0"]
        data = bytes(range(256)) * 8_000
        with ThreadPoolExecutor(3) as executor:
            found = list(executor.map(talk, [addresses["worker-0"]] * 3, [data, data[1:], b""]))
        assert found == [part + b"and that was all" for part in (data, data[1:], b"")]
        assert talk(addresses["ps-0"], b"hello") == b"helloand that was all"
    with verbs.locked("port-forward", "worker-0", ":8888") as addresses:
        assert talk(addresses["worker-0:8888"], b"hello") == b"helloand that was all"


def test_a_task_of_a_swarm_is_restarted_replaced_entered_and_reached(project: DockerProject) -> None:
    project.docker("volume", "create", f"{project.name}-mine")
    try:
        project.write(arguments(project), LIVES)
        project.up()
        project.until_running("ps-0", "worker-0")
        verbs = Verbs(project.program, project.env)
        starts_again(project, verbs)
        enters(project, verbs)
        copies(project, verbs)
        leads_there(verbs)
        used = json.loads(verbs.call("top", "--json")[1])
        assert [row["hostname"] for row in used if row["memory"] > 0] == ["ps-0", "worker-0"]
        code, _, said = verbs.call("exec", "--machine", "ps-0")
        assert (code, "does not know how to connect to it by ssh" in said) == (1, True)
        project.destroy()
        assert verbs.call("restart", "ps-0", "--yes")[0] == 3
    finally:
        project.clean()
        project.docker("volume", "rm", "--force", f"{project.name}-mine")
