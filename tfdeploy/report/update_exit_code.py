"""A failed run fails each update that shows it.

An exception in the program would lose its outputs, so a program of Python fails after Pulumi has recorded them. A component for
another language cannot: either its creation fails, or the update succeeds. Then the update fails, and its outputs are not recorded.
"""

import atexit
import os
import sys
from typing import Any
from weakref import WeakKeyDictionary

import pulumi

_PROGRAM = "pulumi-language-python-exec"

_sentences: WeakKeyDictionary[Any, dict[str, str]] = WeakKeyDictionary()
"""Monitor of an update to the names of the clusters of which the run failed, with a sentence about it."""


_ignored: list[bool] = []
"""Not empty where the caller of the update reports how the run ended."""


def ignore_failed_runs() -> None:
    """Have no update of this process fail because of a failed run: the caller reports how the run ended, as `tfdeploy run` does."""
    _ignored[:] = [True]


def fail_update(cluster: str, sentence: str) -> None:
    """Have this update fail once its outputs are recorded; `sentence` names the cluster and the reason."""
    if _ignored:
        return
    if any(_PROGRAM in part for part in sys.orig_argv):
        atexit.register(_exit)
        return
    monitor = pulumi.runtime.settings.get_monitor()
    if monitor not in _sentences:
        _sentences[monitor] = {}
        _fail_at_shutdown(monitor)
    _sentences[monitor][cluster] = sentence


def failure_of(cluster: str) -> str:
    """The sentence, where the run of this cluster has failed in this update; else empty."""
    return _sentences.get(pulumi.runtime.settings.get_monitor(), {}).get(cluster, "")


def _exit() -> None:
    """End the program with exit code 1, although Pulumi's host of it calls its end a success."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)


def _fail_at_shutdown(monitor: Any) -> None:
    """Under the Automation API the process continues, and the update fails if the program raises an error. The last thing
    that Pulumi does for it, after it has recorded the outputs and deleted what the program no longer declares, is this call."""
    wait_for_shutdown = monitor.SignalAndWaitForShutdown
    sentences = _sentences[monitor]

    def shutdown(request: Any) -> None:
        wait_for_shutdown(request)
        raise pulumi.RunError("\n".join(sentences.values()))

    monitor.SignalAndWaitForShutdown = shutdown
