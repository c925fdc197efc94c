"""How many files the supervisord and the controller of a local cluster may have open.

The supervisord has two pipes and a log for each program. It creates a program with two more pipes, and its own files and those of a
request are open meanwhile. The controller has less.
"""

import resource

_OF_SUPERVISOR = 48
_OF_TASK = 3

_MOST = 4096
"""Enough for the most tasks of a cluster. Each start of a program closes so many numbers of files."""


def needed_files(tasks: int) -> int:
    """The open files of a supervisord with so many tasks, and with the controller."""
    return _OF_SUPERVISOR + _OF_TASK * (tasks + 1)


def most_tasks(limit: int) -> int:
    """The most tasks for which so many open files suffice."""
    return max(0, (limit - _OF_SUPERVISOR) // _OF_TASK - 1)


def allowed_files() -> int:
    """The hard limit of this process, up to what a cluster may need: a supervisord raises its limit so far."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return _MOST if hard == resource.RLIM_INFINITY else min(hard, _MOST)
