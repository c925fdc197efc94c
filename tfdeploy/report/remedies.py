"""What to do about a task that cannot start, or about a program that failed: by the words of the engine or the program. Pure."""

import re
from collections.abc import Sequence

from ..agent.flags import FLAGS
from ..agent.run_state import TaskState
from .api_remedies import API_REMEDIES

_PORT = "Another program uses that port: `ss -ltnp` shows it. Choose another by `jobs={{{job!r}: {{'port': …}}}}`."
_IMAGE = (
    "Name an image that the machines can pull, by `container={{'image': …}}` or "
    "`jobs={{{job!r}: {{'container': {{'image': …}}}}}}`; try `docker pull IMAGE`."
)
_PLACE = (
    "No machine fits: change `container={{'placement': …}}`, or the `cpus`, `memory` or `gpus` of {job!r}. "
    "`docker node ls` lists the machines."
)
_ENGINE_REMEDIES = (
    (
        (
            r"no such image|pull access denied|manifest .*(?:unknown|not found)|repository .*not (?:found|exist)|invalid reference"
            r"|failed to resolve|requested access to the resource is denied|image .*not found"
        ),
        _IMAGE,
    ),
    (r"no suitable node", _PLACE),
    (r"address already in use|port is already allocated|port \d+.* (?:is (?:taken|in use)|already)", _PORT),
)
OWN_COPY = (
    "it is in the task's own copy of the code, which the other tasks and the next attempt do not see. Store checkpoints in "
    "`{{train_dir}}`, by a placeholder in `command`, or in `$TFDEPLOY_TRAIN_DIR`."
)
_RELATIVE_CHECKPOINT = r"(?<![\w./:{-])[\w.-]+(?:/[\w./-]*(?:ckpt|checkpoint|tempstate|_temp)|\.ckpt)[\w./-]*"
_SAVED = re.compile(
    r"(?:Saving checkpoints for \d+ into|Saving checkpoint to path|Restoring parameters from) (?P<name>(?!/|\w+://)\S*[^\s.])"
)
"""What `MonitoredTrainingSession` and `Supervisor` log of a checkpoint with a relative path."""

_FLAGS = "|".join(FLAGS)
_PROGRAM_REMEDIES = (
    (
        rf"unrecognized arguments:.*--(?:{_FLAGS})\b|Unknown command line flag '(?:{_FLAGS})'|No such option:? '?--(?:{_FLAGS})\b",
        (
            "The program does not know the four flags that tfdeploy appends: have it accept them (`parse_known_args`), or pass "
            'them by its own names with placeholders in `command`. If it reads `TF_CONFIG`, set `flags="never"`.'
        ),
    ),
    (
        r"ModuleNotFoundError: No module named '(?P<name>[A-Za-z0-9_]+)",
        "Add the package that provides {name} to `requirements`, or the module to `code`, and run `pulumi up`.",
    ),
    (r"address already in use|port \d+.* (?:is (?:taken|in use)|already)", _PORT),
    (
        r"cannot start '(?P<name>[^']*)': its first line names '[^']*\\r'|env: [^\n]*\\r|\$'\\r': command not found",
        (
            "The script has Windows line ends: `sed -i 's/\\r$//' SCRIPT` converts it. With `* text=auto eol=lf` in .gitattributes Git "
            "does not bring them back."
        ),
    ),
    (
        r"cannot start '(?P<name>[^']*)': its first line names",
        "Correct the first line of {name}, or install the program that it names where the tasks run.",
    ),
    (r"cannot start '(?P<name>[^']*)': Permission denied", "Run `chmod +x {name}`, and `pulumi up`."),
    (
        r"cannot start '(?P<name>[^']*)': Exec format error",
        "{name} is for another processor, or its first line does not name the program that runs it, such as `#!/bin/sh`.",
    ),
    (
        r"Job \"\" was not defined in cluster|No such job in cluster: ''|job_name.{0,40} (?:is empty|not specified)",
        (
            "The program did not get --job_name: a shell such as `sh -c` is between it and the four flags. Use placeholders such as "
            '--job_name={{job_name}} in `command`, or "$@" in the text of the shell.'
        ),
    ),
    (
        r"Job \"(?P<name>[^\"]+)\" was not defined in cluster|No such job in cluster: '(?P<other>[^']+)'",
        "The program names a job that its cluster does not have: the names are chief, ps and worker.",
    ),
    (
        r"cannot start '(?P<name>[^']*)'",
        "There is no program {name}: correct the first word of `command`, or add the program to `code` or to the image.",
    ),
    (
        (
            r"(?m)^(?=.*(?:NotFound|NOT_FOUND|No such file or directory|Failed to find any matching files))"
            rf".*?(?P<name>{_RELATIVE_CHECKPOINT})"
        ),
        "{name} is a relative path: " + OWN_COPY,
    ),
    (
        r"MemoryError|OOM when allocating|ResourceExhausted",
        "Use smaller batches, or raise the limit by `jobs={{{job!r}: {{'memory': …}}}}`.",
    ),
)
_NOT_FOUND, _NOT_EXECUTABLE, _SIGNALLED = 127, 126, 128
_MOST_SIGNALS = 64
_SIGNALS = dict(
    zip(
        (1, 2, 3, 4, 6, 7, 8, 9, 11, 13, 15),
        (
            "SIGHUP",
            "SIGINT",
            "SIGQUIT",
            "SIGILL",
            "SIGABRT",
            "SIGBUS",
            "SIGFPE",
            "SIGKILL",
            "SIGSEGV",
            "SIGPIPE",
            "SIGTERM",
        ),
        strict=True,
    )
)
"""The numbers of Linux, where the tasks run."""

_MEMORY = " Often the memory was used up: `dmesg` shows it; use smaller batches or fewer tasks."


def engine_remedy(reason: str, job: str) -> str:
    """What to do when an engine cannot start a task of this job; empty for unknown reasons."""
    return _remedy(_ENGINE_REMEDIES, reason, job)


def exit_remedy(task: TaskState, lines: Sequence[str]) -> str:
    """What to do about a task that failed, by how it ended and its last lines."""
    if task.out_of_memory:
        return f"Raise the limit by `jobs={{{task.job!r}: {{'memory': …}}}}`, or use smaller batches."
    remedy = _remedy((*API_REMEDIES, *_PROGRAM_REMEDIES), "\n".join(lines), task.job)
    if remedy:
        return remedy
    if killed := signal_behind(task):
        return _signalled(task.exit_code or 0, killed)
    if task.exit_code in (_NOT_FOUND, _NOT_EXECUTABLE):
        return "This exit code means that the program could not be started: correct `command`."
    if task.signal == "SIGKILL":
        return "Only the kernel or a user sends SIGKILL: `dmesg` shows whether the machine ran out of memory."
    return f"`tfdeploy logs {task.hostname}` shows its output."


def signal_behind(task: TaskState) -> str:
    """The signal by which a program behind a wrapper was killed: shells and `env` report it as an exit code of 128 + its number."""
    number = (task.exit_code or 0) - _SIGNALLED
    if task.signal or not 0 < number <= _MOST_SIGNALS:
        return ""
    return _SIGNALS.get(number) or f"signal {number}"


def _signalled(code: int, killed: str) -> str:
    """What an exit code means behind which a signal is."""
    counts = f'It counts as an exit code: `restart={{"on": ["signal", "{code}"]}}` restarts the task after it.'
    memory = _MEMORY if killed == "SIGKILL" else ""
    number = code - _SIGNALLED
    return f"{code} is 128 + {number}: a program that the command ran was killed by {killed}. {counts}{memory}"


def _remedy(remedies: Sequence[tuple[str, str]], text: str, job: str) -> str:
    for pattern, remedy in remedies:
        if match := re.search(pattern, text, re.IGNORECASE):
            return remedy.format(job=job or "worker", **match.groupdict())
    return ""


def relative_checkpoint(lines: Sequence[str]) -> str:
    """The relative path of the checkpoint that a program has stored, by its last lines; empty if there is none."""
    for line in reversed(lines):
        if match := _SAVED.search(line):
            return match["name"]
    return ""
