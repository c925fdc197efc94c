"""Commands where a task runs, ways to its address, and what is said where there is no way."""

import json
import socket
from collections.abc import Iterator

import pytest

from tests.components.conftest import WAITS, Standing
from tests.components.registered import verbs_of
from tests.verbs import ECHO, talk
from tfdeploy.agent.system.ports import PortReservations

HELD_BYTES = 50_000_000
SERVES = f"from steps import begin\n{ECHO}\nserve(listens=begin)"


def test_a_command_has_the_tasks_folder_environment_streams_and_exit_code(cluster: Standing) -> None:
    cluster.declare(WAITS, workers=1, env={"OWN": "of {hostname}"})
    cluster.stand(secrets={"TOKEN": "hush"})
    cluster.until_running("worker-0")
    verbs = verbs_of(cluster)
    tells = 'pwd; echo "$OWN $TFDEPLOY_ADDRESS $TOKEN"; tr a-z A-Z; echo beside >&2; exit 7'
    code, said, beside = verbs.call("exec", "worker-0", "--", "sh", "-c", tells, stdin=b"input\x00\xff")
    job = cluster.job()
    folder = cluster.places.task("worker-0") / "work" / job.spec.id
    line = f"of worker-0 {job.tasks['worker-0'].address} hush\n"
    assert (code, said, beside) == (7, f"{folder}\n{line}INPUT".encode() + b"\x00\xff", "beside\n")
    _, said, _ = verbs.call("exec", "worker-0", "--", "env")
    assert b"TFDEPLOY_HOSTNAME=worker-0\n" in said
    assert not any(name in said for name in (b"TFDEPLOY_CLUSTER", b"TFDEPLOY_CHILD")), (
        "a destroy would end this command"
    )
    assert verbs.call("exec", "worker-0", "--", "sh", "-c", "kill -9 $$")[0] == 137
    code, _, beside = verbs.call("exec", "worker-0", "--", "no-such-program")
    assert (code, beside) == (127, "tfdeploy: cannot start 'no-such-program': No such file or directory\n")
    assert verbs.call("exec", "ps-0", "--", "true")[0] == 3

    code, _, beside = verbs.call("exec", "-it", "worker-0", "--", "true")
    assert (code, "stdin is not a terminal" in beside) == (2, True)
    assert verbs.call("exec", "-i", "worker-0", "cat", stdin=b"input")[:2] == (0, b"input")

    terminal = verbs.terminal("exec", "-it", "worker-0", "sh")
    terminal.type("stty size; read line; echo got $line; exit 5\n")
    terminal.until_said("41 97")
    terminal.type("keys\n")
    assert terminal.end() == 5
    assert "got keys" in terminal.said

    cluster.finish()
    code, said, beside = verbs.call("exec", "worker-0", "--", "true")
    assert (code, said) == (1, b"")
    assert "worker-0 has " in beside
    assert "succeeded" in beside
    assert "`tfdeploy logs worker-0`" in beside


def test_any_port_of_a_task_is_forwarded_and_its_use_is_measured(
    cluster: Standing, free_ports: tuple[int, int]
) -> None:
    free_port, other = free_ports
    second = f"threading.Thread(target=serve, args=({free_port}, begin), daemon=True).start()"
    held = f"import threading\nheld = bytearray(b'x') * ({HELD_BYTES})\n"
    cluster.declare(f"{held}{SERVES.replace('=begin', '=lambda: ' + second)}", workers=1)
    verbs = verbs_of(cluster)
    code, _, beside = verbs.call("exec", "--machine", "localhost")
    assert (code, "on this computer" in beside, "`tfdeploy exec HOSTNAME -- sh`" in beside) == (1, True, True)
    cluster.stand()
    cluster.until_running("worker-0")
    code, said, beside = verbs.call("top", "--json")
    assert code == 0, beside
    (row,) = json.loads(said)
    assert (row["hostname"], row["cpus"] >= 0) == ("worker-0", True)
    assert HELD_BYTES < row["memory"] < 20 * HELD_BYTES
    code, said, beside = verbs.call("port-forward", "worker-0", str(free_port))
    assert (code, said) == (0, f"worker-0:{free_port}: 127.0.0.1:{free_port}\n".encode())
    assert beside == "worker-0 is on this computer: nothing is forwarded.\n"
    with socket.create_server(("127.0.0.1", other)):
        code, _, beside = verbs.call("port-forward", "worker-0", f"{other}:{free_port}")
        assert (code, f"port {other} of this computer is not available" in beside) == (1, True)
    with verbs.locked("port-forward", "worker-0", f"{other}:{free_port}") as addresses:
        assert addresses == {f"worker-0:{free_port}": f"127.0.0.1:{other}"}
        assert talk(addresses[f"worker-0:{free_port}"], b"hello") == b"helloand that was all"


@pytest.fixture
def free_ports() -> Iterator[tuple[int, int]]:
    """Two ports that no task and no outgoing connection takes before the test does."""
    reserved = PortReservations()
    yield reserved.choose(), reserved.choose()
    reserved.hold(set())
