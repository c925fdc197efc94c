"""The launcher's side of `tfdeploy dump`: what it sends when an order asks for it."""

import json
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Callable, Optional

from ..settings import TaskSettings
from ..task_dump import MAX_BYTES, TaskDump
from ..transport.rpc import CallError, Client


class DumpSender:
    """Takes and sends the dump that orders ask for, once, in a thread."""

    def __init__(self, connect: Callable[[], Client], settings: TaskSettings) -> None:
        self._connect, self._settings = connect, settings
        self._number = 0
        self._thread: Optional[threading.Thread] = None

    def follow(self, number: int, group: int) -> None:
        """Send the dump with this number, of the program with this process group; 0 for none."""
        if not number or number == self._number or (self._thread is not None and self._thread.is_alive()):
            return
        self._number = number
        self._thread = threading.Thread(target=self._run, args=(number, group), daemon=True)
        self._thread.start()

    def _run(self, number: int, group: int) -> None:
        from .program_dump import take_dump  # few launchers need it

        hostname = self._settings.hostname
        try:
            dump = take_dump(hostname, group, Path(self._settings.folder)) if group else TaskDump(hostname)
        except Exception as error:  # it may not end the launcher, nor be missing without a reason
            dump = TaskDump(hostname, notes=[f"the launcher could not read /proc: {error!r}"])
        with suppress(OSError, CallError), self._connect() as client:
            client.call("PUT", f"/dump/{hostname}/{number}", encoded(dump))


def encoded(dump: TaskDump) -> bytes:
    """As JSON of at most `MAX_BYTES`: without stacks where it is longer. Pure."""
    content = json.dumps(dump.to_dict()).encode()
    if len(content) <= MAX_BYTES:
        return content
    short = replace(dump, python=[], notes=[*dump.notes, "no Python stack: it is too long"])
    return json.dumps(short.to_dict()).encode()
