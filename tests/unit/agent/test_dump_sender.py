"""What a launcher observes of a running program, and that it does no harm to it."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.waiting import until
from tfdeploy.agent.launch import dump_sender, python_stacks
from tfdeploy.agent.launch.dump_sender import take_dump
from tfdeploy.agent.launch.python_stacks import threads_of_faulthandler, threads_of_spy
from tfdeploy.agent.model.task_dump import PythonThread

NO_STACK = "no Python stack: py-spy is not installed in the task, and the program has not registered faulthandler"
Start = Callable[[str], int]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interval that is long enough for what the programs here do; without the py-spy of this computer."""
    monkeypatch.setattr(dump_sender, "INTERVAL_SECONDS", 0.2)
    monkeypatch.setattr(dump_sender, "PAUSE_SECONDS", 0.01)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts Python with a program, in the folder of a run's code and its own process group; it has begun when it calls `begin`."""
    processes: list[subprocess.Popen[bytes]] = []
    code = tmp_path / "work" / "run"

    def run(text: str) -> int:
        begun = tmp_path / f"begun-{len(processes)}"
        code.mkdir(parents=True, exist_ok=True)
        path = code / f"train{len(processes)}.py"
        path.write_text(f"def begin(): open({str(begun)!r}, 'w').close()\n{text}")
        processes.append(subprocess.Popen([sys.executable, str(path)], cwd=code, start_new_session=True))
        until(begun.exists, "the program has begun")
        return processes[-1].pid

    yield run
    for process in processes:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "import signal; signal.signal(signal.SIGUSR2, lambda *_: open('end', 'w'))\n",
        "f = open('../../stacks.txt', 'w')\n",
    ],
)
def test_no_signal_is_sent_to_a_program_that_has_not_agreed(start: Start, tmp_path: Path, text: str) -> None:
    pid = start(f"{text}import time\nbegin()\nwhile True:\n    time.sleep(0.01)\n")
    dump = take_dump("worker-0", pid, tmp_path)
    assert (dump.python, dump.notes) == ([], [NO_STACK])
    os.kill(pid, 0)
    assert Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    assert not (tmp_path / "work" / "run" / "end").exists()


def spy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    command = tmp_path / "bin" / "py-spy"
    command.parent.mkdir()
    command.write_text(f"#!/bin/sh\n{script}\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}:/usr/bin:/bin")


SPIED = [
    {"thread_name": "feeder", "frames": [{"filename": "/x/queue.py", "line": 8, "name": "get"}]},
    {"thread_name": "MainThread", "frames": [{"filename": "/code/train.py", "line": 3, "name": "step"}]},
]


def test_py_spy_does_not_pause_the_program(start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pid = start("import time\nbegin()\ntime.sleep(600)\n")
    (tmp_path / "spied.json").write_text(json.dumps(SPIED))
    spy(tmp_path, monkeypatch, f'echo "$@" >> {tmp_path}/words; cat {tmp_path}/spied.json')
    dump = take_dump("worker-0", pid, tmp_path)
    assert [thread.name for thread in dump.python] == ["MainThread", "feeder"]
    assert dump.python[0].frames == ["/code/train.py:3 in step"]
    assert (tmp_path / "words").read_text() == f"dump --nonblocking --json --pid {pid}\n"


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("echo 'Permission denied (os error 13)' >&2; exit 1", "Permission denied (os error 13)"),
        ("echo []x", "Extra data"),
    ],
)
def test_a_py_spy_that_fails_is_reported(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, problem: str
) -> None:
    pid = start("import time\nbegin()\ntime.sleep(600)\n")
    spy(tmp_path, monkeypatch, script)
    (note,) = take_dump("worker-0", pid, tmp_path).notes
    assert note.startswith(f"no Python stack: py-spy failed: {problem}")


FAULTHANDLER = """Thread 0x00007f6422c0e6c0 [feeder] (most recent call first):
  File "/usr/lib/python3.13/queue.py", line 171 in get
  File "/folder/work/run/data/load.py", line 4 in f

Current thread 0x00007f6424250b80 (most recent call first):
  File "/folder/work/run/train.py", line 9 in step
  File "<string>", line ??? in <module>
  ...
"""


def test_the_main_thread_is_the_last_one_that_faulthandler_writes() -> None:
    assert threads_of_faulthandler(FAULTHANDLER, "/folder/work/run") == [
        PythonThread("", ["train.py:9 in step", "<string>:??? in <module>"]),
        PythonThread("feeder", ["/usr/lib/python3.13/queue.py:171 in get", "data/load.py:4 in f"]),
    ]


def test_stacks_have_limits() -> None:
    frame = {"filename": "/x" * 900, "line": 1, "name": "f" * 900}
    threads = threads_of_spy(json.dumps([{"thread_name": "t", "frames": [frame] * 500}] * 90).encode(), "/code")
    assert len(threads) == python_stacks.MAX_THREADS
    assert {len(thread.frames) for thread in threads} == {python_stacks.MAX_FRAMES}
    assert max(len(text) for text in threads[0].frames) < 350
