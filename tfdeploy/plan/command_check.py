"""What a preview sees of a command: the shell or the script that it runs, and whether the four flags arrive. Pure."""

import ast
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..agent.model import task_command
from ..agent.model.run_spec import RunSpec

_SHELLS = ("sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "rbash")
_OF_ONE_TEXT = ("su", "runuser", "script", "sg", "flock")
"""Other programs with an option `-c TEXT` that a shell runs."""

_WRAPPERS = (
    *("busybox", "catchsegv", "chrt", "dumb-init", "env", "exec", "ionice", "nice", "nohup", "numactl"),
    *("setsid", "stdbuf", "sudo", "taskset", "time", "timeout", "tini", "unbuffer", "xvfb-run"),
)
"""Programs that run the command behind their own arguments."""

_OF_WRAPPER = re.compile(r"-.*|[A-Za-z_]\w*=.*|(0x)?\d[\w.,-]*", re.DOTALL)
"""An argument of theirs: an option, a variable, or a number."""

_WITH_NAME = ("env -u", "env -C", "sudo -u", "sudo -g")
"""Their options that have a name in the next word."""

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_SHORT_OPTIONS = re.compile(r"-[a-zA-Z]*c[a-zA-Z]*")
_ALL_ARGUMENTS = re.compile(r"\$(?:[@*]|\{[@*])|%\*")
_SOME_ARGUMENTS = re.compile(r"\$(?:[1-9]|\{[1-9])|\b(?:shift|getopts)\b|\$argv\b")
_WITH_FIRST = re.compile(r'"\$0" +"\$@"')
_PYTHON = re.compile(r"python[\d.]*")
_FROM_ENVIRONMENT = re.compile(r"TFDEPLOY_|\bTF_CONFIG=|[-_]\w+[= ]\S*\$\{?TF_CONFIG")
"""The text gives the program what it needs from the environment: a variable that is set, or the value of an option."""


@dataclass(frozen=True)
class Script:
    """A file of the code that a command runs as a program or by a shell."""

    name: str
    text: str
    executable: bool
    by_shell: bool
    """Whether the command names a shell that reads it."""


@dataclass(frozen=True)
class _Inline:
    """A text that a shell runs, and the words behind it: $0, $1, …"""

    shell: str
    text: str
    words: Sequence[str]


def unwrapped(command: Sequence[str]) -> Sequence[str]:
    """A command without programs such as `env` and `nice` that only run another one."""
    words = list(command)
    while words and (wrapper := _base(words[0])) in _WRAPPERS:
        del words[0]
        while words and _OF_WRAPPER.fullmatch(words[0]):
            has_name = f"{wrapper} {words[0]}" in _WITH_NAME
            del words[: 2 if has_name else 1]
    return words


def script_of(command: Sequence[str], read: Callable[[str], tuple[str, bool] | None]) -> Script | None:
    """The file of the code that the command runs, if it is one that is not Python's. `read` returns the text of a file of the code, and
    whether it is executable."""
    words = unwrapped(command)
    if not words:
        return None
    by_shell = _base(words[0]) in _SHELLS
    name = next((word for word in words[1:] if word[:1] not in ("-", "+")), "") if by_shell else words[0]
    if (by_shell and _inline(words)) or (not by_shell and "/" not in name):
        return None
    content = read(name)
    return Script(name, content[0], content[1], by_shell) if content else None


def syntax_error(command: Sequence[str], read: Callable[[str], str]) -> str:
    """A warning where a Python program of the code cannot be parsed by the Python that runs this; else empty."""
    words = unwrapped(command)
    if not words or not _PYTHON.fullmatch(_base(words[0])):
        return ""
    name = next((word for word in words[1:] if not word.startswith("-")), "")
    text = read(name) if name.endswith(".py") else ""
    if "\0" in text:
        return ""
    try:
        with warnings.catch_warnings(action="ignore"):
            ast.parse(text)
    except SyntaxError as error:
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        return f"command: {name}, line {error.lineno}: Python {version} cannot parse it ({error.msg})"
    except (RecursionError, MemoryError):
        return ""
    return ""


def lost_flags(run: RunSpec, script: Script | None) -> str:
    """A warning where the four flags do not arrive at the program, because a shell is between it and them; else empty."""
    if not task_command.appends_flags(run):
        return ""
    inline = _inline(unwrapped(run.command))
    text = inline.text if inline else script.text if script and (script.by_shell or _is_of_shell(script.text)) else None
    if text is None or _FROM_ENVIRONMENT.search(text):
        return ""
    uses_all, uses_some = _ALL_ARGUMENTS.search(text), _SOME_ARGUMENTS.search(text)
    if inline and (uses_all or uses_some) and not inline.words and not _WITH_FIRST.search(text):
        example = f'`{inline.shell} -c` needs one more word behind its text, such as "{inline.shell}"'
        return (
            f"command: the first of the four flags becomes $0 of the shell, and the program does not get it. {example}"
        )
    if uses_all or uses_some:
        return ""
    what = f"the text of `{inline.shell} -c`" if inline else f"the script {script.name if script else ''}"
    behind = f' and the word "{inline.shell}" behind the text' if inline and not inline.words else ""
    return (
        f"command: the four flags (--job_name, --task_index, --ps_hosts, --worker_hosts) are arguments of the shell, and {what} does "
        f'not use them, so the program does not get them. Add "$@" to the command in it{behind}, or use placeholders such as '
        '--job_name={job_name}; if the program reads TF_CONFIG, set flags="never"'
    )


def cannot_start(script: Script, program_exists: Callable[[str], bool] | None) -> tuple[str, str]:
    """What is wrong with a script that cannot be started, and what to do; empty texts where it can. `program_exists` is None where the
    programs beside the script are not known."""
    first = script.text.partition("\n")[0]
    edit = f"`sed -i 's/\\r$//' {script.name}` converts it."
    if first.endswith("\r") and (script.by_shell or first.startswith("#!")):
        return f"{script.name!r} has Windows line ends, which are part of each command for Unix", edit
    if script.by_shell:
        return "", ""
    if not script.executable:
        return f"{script.name!r} is not executable", f"Run `chmod +x {script.name}`."
    if script.text.startswith("\ufeff"):
        return f"{script.name!r} begins with a byte order mark, so its first line names no program", "Save it without."
    if not first.startswith("#!"):
        is_binary = "\0" in script.text[:512] or "\ufffd" in script.text[:512]
        remedy = 'Begin it with a line such as "#!/bin/sh", or name the program in `command`, such as ["sh", …].'
        return (
            ("", "")
            if is_binary
            else (f"the first line of {script.name!r} does not name the program that runs it", remedy)
        )
    interpreter = _interpreter(first)
    if program_exists and not program_exists(interpreter):
        wrong = f"the first line of {script.name!r} names {interpreter!r}, which does not exist on this machine"
        return wrong, "Correct that line, or install it."
    return "", ""


def _interpreter(first: str) -> str:
    """The program that a first line names; behind `env`, its name."""
    words = first[2:].split()
    if words and _base(words[0]) == "env":
        words = [word for word in words[1:] if not word.startswith("-") and not _ASSIGNMENT.fullmatch(word)] or words
    return words[0] if words else ""


def _is_of_shell(text: str) -> bool:
    first = text.partition("\n")[0].rstrip("\r")
    return first.startswith("#!") and _base(_interpreter(first)) in _SHELLS


def _inline(words: Sequence[str]) -> _Inline | None:
    """The text that a shell runs, of `sh -c`, `bash -lc`, `bash -o pipefail -c` or `su USER -c`."""
    if not words or (name := _base(words[0])) not in (*_SHELLS, *_OF_ONE_TEXT):
        return None
    for index, word in enumerate(words[1:], 1):
        if _SHORT_OPTIONS.fullmatch(word) or word == "--command":
            rest = words[index + 1 :]
            return _Inline(name, rest[0] if rest else "", rest[1:])
        is_operand = word[:1] not in ("-", "+") and words[index - 1][-1:] not in ("o", "O", "e")
        if name in _SHELLS and is_operand and not words[index - 1].startswith("--"):
            return None
    return None


def _base(word: str) -> str:
    return word.rpartition("/")[2]
