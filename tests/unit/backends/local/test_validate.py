"""What this machine does not allow is refused in the preview; what it can hardly do is warned of."""

import re
import resource
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.cases import BOX, spec
from tfdeploy.backends.local.supervisor import most_tasks, needed_files
from tfdeploy.backends.local.validate import crowded_warnings, refuse_few_files
from tfdeploy.errors import SpecError

GIB = 1024**3


@pytest.mark.parametrize(
    ("hard", "args", "problem"),
    [
        (128, {"workers": 25}, ""),
        (128, {"workers": 26}, "26 tasks need 129 open files, and the hard limit of this shell is 128 (`ulimit -Hn`)"),
        (128, {"workers": 1, "ps": 1, "elastic": {"max": 40}}, "41 tasks need 174 open files"),
        (128, {"workers": 25, "tensorboard": True}, "or use at most 25 tasks."),
        (20, {"workers": 1}, "1 task needs 54 open files, and the hard limit of this shell is 20"),
        (1024, {"workers": 300}, ""),
        (resource.RLIM_INFINITY, {"workers": 1000, "log_lines": 1}, ""),
        (1 << 20, {"workers": 1000, "log_lines": 1}, ""),
    ],
)
def test_too_few_open_files_are_refused_with_the_numbers(
    monkeypatch: pytest.MonkeyPatch, hard: int, args: dict[str, Any], problem: str
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (20, hard))
    with pytest.raises(SpecError, match=re.escape(problem)) if problem else nullcontext():
        refuse_few_files(spec(**args))


@pytest.mark.parametrize("limit", [0, 20, 54, 128, 1024, 4096])
def test_the_most_tasks_are_those_that_the_limit_suffices_for(limit: int) -> None:
    most = most_tasks(limit)
    assert most == 0 or needed_files(most) <= limit
    assert needed_files(most + 1) > limit


SMALL = replace(BOX, memory=GIB)
STORE = {"command": ["redis-server"]}
CROWDED = (
    "400 tasks may need 156.2 GiB of memory (400 MiB each), and box has 23 GiB: the kernel kills tasks when it is used up; "
    "400 tasks share 2 processors of box: each gets a small part of one. Use fewer tasks, or other machines (`backend`)"
)


@pytest.mark.parametrize(
    ("args", "machine", "warned"),
    [
        ({"workers": 4, "ps": 1}, BOX, ""),
        ({"workers": 400}, replace(BOX, cpus=2.0, memory=23 * GIB), CROWDED),
        ({"workers": 50}, replace(BOX, cpus=2.0, memory=64 * GIB), "50 tasks share 2 processors of box"),
        (
            {"workers": 2, "jobs": {"worker": {"memory": "10GiB"}}},
            BOX,
            "2 tasks may need 20 GiB of memory (10 GiB each)",
        ),
        ({"workers": 2, "tensorboard": True}, SMALL, ""),
        ({"workers": 3}, SMALL, "3 tasks may need 1.2 GiB of memory"),
        ({"workers": 2, "services": {"store": {**STORE, "count": 9}}}, SMALL, ""),
        (
            {"workers": 2, "services": {"store": {**STORE, "memory": "1GiB"}}},
            SMALL,
            "3 tasks may need 1.8 GiB of memory",
        ),
        ({"workers": 1, "data_service": {"workers": 2}}, SMALL, "4 tasks may need 1.6 GiB of memory"),
    ],
)
def test_more_tasks_than_the_machine_has_memory_or_processors_for_are_warned_of(
    args: dict[str, Any], machine: Any, warned: str
) -> None:
    warnings = crowded_warnings(spec(**args), machine)
    assert warned in "".join(warnings)
    assert len(warnings) == bool(warned)
