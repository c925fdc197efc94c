"""What a preview sees of a command: shells, scripts, and whether the four flags arrive."""

from collections.abc import Sequence
from typing import Any

import pytest

from tests.unit.cases import plan
from tfdeploy.plan.command_check import Script, cannot_start, lost_flags, script_of, syntax_error, unwrapped

SCRIPTS = {
    "run.sh": ("#!/bin/sh\npython train.py\n", True),
    "all.sh": ('#!/usr/bin/env bash\npython train.py "$@"\n', True),
    "env.sh": ("#!/bin/sh\npython train.py --job_name=$TFDEPLOY_JOB_NAME\n", True),
    "train.py": ("#!/usr/bin/env python3\nprint(1)\n", True),
}


def warned(*command: str, **args: Any) -> str:
    wanted: dict[str, Any] = {"ps": 1, "workers": 1, **args}
    run = plan(command=list(command), **wanted).run
    return lost_flags(run, script_of(run.command, lambda name: SCRIPTS.get(name.removeprefix("./"))))


LOST = [
    ["sh", "-c", "python train.py"],
    ["sh", "-c", "echo $TF_CONFIG; python train.py"],
    ["bash", "-euo", "pipefail", "-c", "python train.py"],
    ["bash", "--login", "-c", "python train.py"],
    ["env", "A=1", "-u", "B", "sh", "-c", "python train.py"],
    ["timeout", "-k", "5", "10m", "sh", "-c", "python train.py"],
    ["xvfb-run", "-a", "sh", "-c", "python train.py"],
    ["nohup", "nice", "stdbuf", "-oL", "dash", "-c", "python train.py"],
    ["busybox", "sh", "-c", "python train.py"],
    ["su", "ada", "-c", "python train.py"],
    ["script", "-qec", "python train.py", "/dev/null"],
    ["./run.sh"],
    ["bash", "-x", "./run.sh"],
]
FIRST_LOST = [["sh", "-c", 'python train.py "$@"'], ["bash", "-lc", "echo lost: $0 $@"]]
ARRIVE = [
    ["python", "train.py"],
    ["python", "-c", "import sys; print(sys.argv)"],
    ["sh", "-c", 'python train.py "$@"', "sh"],
    ["sh", "-c", 'python train.py "$0" "$@"'],
    ["sh", "-c", "python train.py $1 $2 $3 $4", "sh"],
    ["sh", "-c", "python train.py --job_name={job_name}"],
    ["sh", "-c", "case $TFDEPLOY_JOB_NAME in ps) python ps.py;; *) python train.py;; esac"],
    ["sh", "-c", 'python train.py --config="$TF_CONFIG"'],
    ["./all.sh"],
    ["bash", "all.sh"],
    ["./env.sh"],
    ["./train.py"],
    ["bash", "unknown.sh"],
    ["run.sh"],  # a program of the PATH
]


@pytest.mark.parametrize("command", LOST)
def test_flags_that_a_shell_swallows_are_warned_of(command: Sequence[str]) -> None:
    warning = warned(*command)
    assert "so the program does not get them" in warning
    assert '"$@"' in warning
    assert "--job_name={job_name}" in warning
    assert 'flags="never"' in warning


@pytest.mark.parametrize("command", FIRST_LOST)
def test_a_first_flag_that_becomes_the_name_of_the_shell_is_warned_of(command: Sequence[str]) -> None:
    assert warned(*command) == (
        f"command: the first of the four flags becomes $0 of the shell, and the program does not get it. `{command[0]} -c` needs one "
        f'more word behind its text, such as "{command[0]}"'
    )


@pytest.mark.parametrize("command", ARRIVE)
def test_flags_that_arrive_are_not_warned_of(command: Sequence[str]) -> None:
    assert warned(*command) == ""


@pytest.mark.parametrize("args", [{"ps": 0}, {"chief": 1}, {"flags": "never"}])
def test_where_no_flags_are_appended_none_are_lost(args: dict[str, Any]) -> None:
    assert warned(*LOST[0], **args) == ""
    assert warned(*LOST[0], **{**args, "flags": "always"})


def test_a_command_is_seen_behind_the_programs_that_run_it() -> None:
    assert unwrapped(["env", "-u", "A", "B=1", "taskset", "3", "python", "-u", "a.py"]) == ["python", "-u", "a.py"]
    assert unwrapped(["timeout", "--", "5", "nice", "-5", "a"]) == ["a"]
    assert unwrapped(["env"]) == []


STARTS = [
    ("#!/bin/sh\nx", True, False, ""),
    ("#!/bin/sh\r\nx\r\n", True, False, "Windows line ends"),
    ("#!/usr/bin/env python3\r\n", True, False, "Windows line ends"),
    ("x\r\n", False, True, "Windows line ends"),
    ("#!/bin/sh\nx", False, False, "is not executable. Run `chmod +x run.sh`"),
    ("#!/bin/sh\nx", False, True, ""),
    ("\ufeff#!/bin/sh\nx", True, False, "begins with a byte order mark"),
    ("echo hello\n", True, False, "does not name the program that runs it"),
    ("", True, False, "does not name the program that runs it"),
    ("\x7fELF\0\0", True, False, ""),
    ("#!/bin/missing -x\n", True, False, "names '/bin/missing', which does not exist on this machine"),
    ("#!/usr/bin/env -S A=1 missing -x\n", True, False, "names 'missing', which does not exist on this machine"),
]


@pytest.mark.parametrize(("text", "executable", "by_shell", "wrong"), STARTS)
def test_a_script_that_cannot_be_started_is_refused(text: str, executable: bool, by_shell: bool, wrong: str) -> None:
    script = Script("run.sh", text, executable, by_shell)
    said = ". ".join(cannot_start(script, lambda program: program in ("/bin/sh", "sh"))).strip(". ")
    assert wrong in said
    assert bool(said) == bool(wrong)


def test_a_program_of_another_machine_is_not_known() -> None:
    assert cannot_start(Script("run.sh", "#!/bin/missing\n", True, False), None) == ("", "")


@pytest.mark.parametrize(
    ("command", "text", "line"),
    [
        (["python", "train.py"], "a = (1,\nb = 2\n", 1),
        (["env", "A=1", "python3", "train.py"], "print 1", 1),
        (["python", "train.py"], "print(1)", 0),
        (["python", "train.py"], "a = '\\d'\x00", 0),
        (["python", "-m", "train"], "(", 0),
        (["sh", "train.py"], "(", 0),
    ],
)
def test_a_program_that_python_cannot_parse_is_warned_of(command: Sequence[str], text: str, line: int) -> None:
    warning = syntax_error(command, lambda _: text)
    assert warning.startswith(f"command: train.py, line {line}: Python 3.") == bool(line), warning
