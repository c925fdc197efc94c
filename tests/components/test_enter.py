"""Commands where a task runs, ways to its address, and what is said where there is no way."""

import socket

import pytest

from tests.components.conftest import WAITS, Standing
from tests.components.registered import verbs_of
from tests.verbs import ECHO, talk

SERVES = f"from steps import begin\nbegin()\n{ECHO}\nserve()"


def test_a_command_has_the_tasks_folder_environment_streams_and_exit_code(cluster: Standing) -> None:
    cluster.declare(WAITS, workers=1, env={"OWN": "of {hostname}"})
    cluster.stand(secrets={"TOKEN": "hush"})
    cluster.until_running("worker-0")
    verbs = verbs_of(cluster)
    tells = 'pwd; echo "$OWN $TFDEPLOY_ADDRESS $TOKEN"; tr a-z A-Z; echo beside >&2; exit 7'
    code, said, beside = verbs.call("exec", "worker-0", "--", "sh", "-c", tells, stdin=b"input\x00\xff")
    job = cluster.job()
    folder = cluster.places.task("worker-0") / "work" / job.run["id"]
    line = f"of worker-0 {job.tasks['worker-0'].address} hush\n"
    assert (code, said, beside) == (7, f"{folder}\n{line}INPUT".encode() + b"\x00\xff", "beside\n")
    assert verbs.call("exec", "worker-0", "--", "sh", "-c", "kill -9 $$")[0] == 137
    code, _, beside = verbs.call("exec", "worker-0", "--", "no-such-program")
    assert (code, beside) == (127, "tfdeploy: cannot start 'no-such-program': No such file or directory\n")
    assert verbs.call("exec", "ps-0", "--", "true")[0] == 3

    terminal = verbs.terminal("exec", "worker-0", "--", "sh")
    terminal.type("stty size; read line; echo got $line; exit 5\n")
    terminal.until_said("41 97")
    terminal.type("keys\n")
    assert terminal.end() == 5
    assert "got keys" in terminal.said

    cluster.open()
    cluster.until_state("succeeded")
    code, said, beside = verbs.call("exec", "worker-0", "--", "true")
    assert (code, said) == (1, b"")
    assert "worker-0 has no process now: it is succeeded." in beside


def test_a_tunnel_leads_to_the_task(cluster: Standing, free_port: int) -> None:
    cluster.up(SERVES, workers=1)
    cluster.until_running("worker-0")
    verbs = verbs_of(cluster)
    _, port = cluster.job().tasks["worker-0"].address.split(":")
    assert verbs.call("tunnel", "worker-0")[:2] == (0, f"worker-0: 127.0.0.1:{port}\n".encode())
    code, _, beside = verbs.call("tunnel")
    assert (code, "test has no TensorBoard. Name a task: worker-0." in beside) == (2, True)

    with verbs.held("tunnel", "worker-0", f"--port={free_port}") as said:
        assert said == {"worker-0": f"127.0.0.1:{free_port}"}
        data = bytes(range(256)) * 20_000
        assert talk(said["worker-0"], data) == data + b"and that was all"


@pytest.fixture
def free_port() -> int:
    """A port that nobody has."""
    with socket.create_server(("127.0.0.1", 0)) as trial:
        return int(trial.getsockname()[1])


def test_there_is_no_other_machine(cluster: Standing) -> None:
    cluster.declare(WAITS, workers=1)
    code, _, beside = verbs_of(cluster).call("ssh", "localhost")
    assert code == 1
    assert "the cluster stands on this computer. `tfdeploy exec HOSTNAME -- sh` leads to a task." in beside
