"""How one `pulumi up` waits for a cluster: progress as it goes, Ctrl-C, and what a failed job does to the update."""

import asyncio
import atexit
import datetime
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import pulumi

from .observe import Watch, follow, over
from .report import Report

_BEGUN = time.time()
_FAILED_WORDS = ("failed", "killed", "out of memory")
_EXECUTOR = "pulumi-language-python-exec"
_waiting: set[asyncio.Event] = set()


async def observed(watch: Watch, given: str) -> Report:
    """The report that the outputs are made of; `given` is when the run was given, as ISO 8601.

    In a preview one quick look. In an update it waits as long as the spec says, and fails the update when the job that this
    update gave or awaited has failed.
    """
    if pulumi.runtime.is_dry_run():
        return await follow(watch, 0.0, lambda line: None)
    seen = at_first = await follow(watch, 0.0, _progress)
    if not over(watch.spec, at_first) and watch.spec.wait > 0:
        # Said beforehand: after Ctrl-C, Pulumi passes on nothing more of what the program says.
        detach = "Ctrl-C detaches: the training goes on, and `pulumi up` looks at it again"
        pulumi.log.info(f"{watch.spec.name}: waiting for the job's end, at most {watch.spec.wait:g} s. {detach}.")
        with _detachable(watch.detached):
            seen = await follow(watch, watch.spec.wait, _progress)
    ours = not at_first.decided or datetime.datetime.fromisoformat(given).timestamp() >= _BEGUN
    _tell(watch, seen, ours)
    return seen


def _progress(line: str) -> None:
    pulumi.log.info(line, ephemeral=True)


@contextmanager
def _detachable(detached: asyncio.Event) -> Iterator[None]:
    """While inside, Ctrl-C ends the waiting, not the training."""
    loop = asyncio.get_running_loop()
    in_main_thread = threading.current_thread() is threading.main_thread()
    _waiting.add(detached)
    if in_main_thread:
        loop.add_signal_handler(signal.SIGINT, _detach)
    try:
        yield
    finally:
        _waiting.discard(detached)
        if in_main_thread and not _waiting:
            loop.remove_signal_handler(signal.SIGINT)


def _detach() -> None:
    for detached in _waiting:
        detached.set()


def _tell(watch: Watch, seen: Report, ours: bool) -> None:
    name = watch.spec.name
    pulumi.log.info(f"{name}\n{seen.status}")
    if seen.state == "failed":
        text = f"{name}: the job failed: {seen.reason}.{_last_words(seen)}"
        if ours:
            pulumi.log.error(text)
            _fail_at_exit()
        else:
            again = "It is the same run as before; change the program, its arguments or run_id for a new one."
            pulumi.log.warn(f"{text}\n{again}")
    elif seen.state == "unknown":
        pulumi.log.warn(f"{name}: {seen.reason}. `{watch.backend.heal}` brings back what died.")
    elif not seen.decided and not watch.spec.serve and watch.spec.wait > 0:
        pulumi.log.info(f"{name}: still {seen.state} when the wait was over; `pulumi up` looks again.")


def _last_words(seen: Report) -> str:
    said = ""
    for row in seen.tasks:
        if row["status"].startswith(_FAILED_WORDS):
            lines = "".join(f"\n  {text}" for _, text in seen.timed.get(row["hostname"], []))
            said += f"\n{row['hostname']} {row['status']}; its last lines:{lines or ' none'}"
    return said


@cache
def _fail_at_exit() -> None:
    """Have the program end with code 1, after its outputs have been recorded: an exception would lose them.

    Not where the process is more than this program, as under the Automation API: there the caller reads `state`.
    """
    if any(_EXECUTOR in part for part in sys.orig_argv):
        atexit.register(_exit)


def _exit() -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)
