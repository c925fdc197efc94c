"""Words of engines and programs that tell what would help. Pure."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from .agent.states import OUT_OF_MEMORY

IMAGES = "A large image takes its time; `docker pull` on the machine shows how far it is."

_IMAGE = "Name an image that the engine can pull, by `image` or `jobs={{{job!r}: {{'image': …}}}}`; `docker pull IMAGE` tries it."
_PORT = (
    "Somebody else has that port: `ss -ltnp` shows who; choose another by `jobs={{{job!r}: {{'port': …}}}}`, or none."
)
_ENGINE = (
    (
        (
            r"no such image|pull access denied|manifest .*(?:unknown|not found)|repository .*not (?:found|exist)|invalid reference"
            r"|failed to resolve|requested access to the resource is denied|image .*not found"
        ),
        _IMAGE,
    ),
    (
        r"no suitable node",
        (
            "No machine has what it asks for: change `placement`, or ask for less by `jobs={{{job!r}: {{…}}}}` (`cpus`, `memory`, "
            "`gpus`); `docker node ls` shows the machines, `docker node inspect` their labels."
        ),
    ),
    (
        r"address already in use|port is already allocated|port \d+.* (?:is taken|in use|already)",
        _PORT,
    ),
    (
        r"executable file not found|exec format error|no such file or directory",
        "The image lacks that program or folder: choose another `image`, or correct `command` and `volumes`.",
    ),
    (
        r"could not select device driver|nvidia",
        "The machine's engine knows no GPUs: install NVIDIA's container toolkit.",
    ),
    (
        r"bind source path does not exist|invalid mount config",
        "That folder is not on the machine: make it, or correct `volumes`.",
    ),
)
_PROGRAM = (
    (
        r"ModuleNotFoundError: No module named '(?P<word>[A-Za-z0-9_]+)",
        "Add the package that has {word} to `requirements`, or the module itself to `code`, and run `pulumi up`.",
    ),
    (r"address already in use|port \d+.* (?:is taken|in use|already)", _PORT),
    (
        r"cannot start '(?P<word>[^']*)'",
        "There is no program {word}: correct the first word of `command`, or ship it with `code` or in the image.",
    ),
    (
        r"can't open file '(?P<word>[^']*)'",
        "The program {word} is not in `code`, whose files are the working folder: correct `command` or `code`.",
    ),
    (
        r"unrecognized arguments|no such option|Unknown command line flag|required: ",
        "The program does not take these arguments: correct `command`; `tfdeploy show` has it.",
    ),
    (
        r"MemoryError|OOM when allocating|ResourceExhausted",
        "It wanted more memory than there is: make batches smaller, or give more by `jobs={{{job!r}: {{'memory': …}}}}`.",
    ),
    (
        r"CUDA_ERROR|no CUDA-capable device",
        "Give it GPUs by `jobs={{{job!r}: {{'gpus': 1}}}}`, on a machine that has them.",
    ),
    (
        r"(?:PermissionError|Permission denied).*?(?P<word>'[^']*')",
        "It may not use {word}: change its rights, or `user`.",
    ),
    (
        r"FileNotFoundError.*?(?P<word>'[^']*')",
        "{word} is not there: correct `data_dir`, `volumes` or the program's arguments.",
    ),
)
_NOT_FOUND, _NOT_EXECUTABLE = 127, 126


def of_engine(reason: str, job: str) -> str:
    """What helps where an engine cannot bring a task of this job; empty where its words are not known."""
    return _known(_ENGINE, reason, job)


def after_end(task: Mapping[str, Any], lines: Sequence[str]) -> str:
    """What helps a task that has ended badly, by how it ended and what it printed last."""
    job, hostname = task["job"], task["hostname"]
    if task["state"] == OUT_OF_MEMORY or "out of memory" in task["reason"]:
        return f"Give it more by `jobs={{{job!r}: {{'memory': …}}}}`, or make it need less, such as by smaller batches."
    known = _known(_PROGRAM, "\n".join(lines), job)
    if known:
        return known
    if task["exit_code"] in (_NOT_FOUND, _NOT_EXECUTABLE):
        return "That code means that the program cannot be started: correct `command`, or what it starts itself."
    if task["signal"] == "SIGKILL":
        return "Nobody but the kernel or a person sends SIGKILL: `dmesg` shows whether memory ran out on the machine."
    return f"`tfdeploy logs {hostname}` shows all that it printed."


def _known(rules: Sequence[tuple[str, str]], text: str, job: str) -> str:
    for pattern, remedy in rules:
        if found := re.search(pattern, text, re.IGNORECASE):
            return remedy.format(job=job or "worker", **found.groupdict())
    return ""
