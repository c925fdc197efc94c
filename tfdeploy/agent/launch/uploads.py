"""The launcher's uploads of artifacts, in a thread: its loop goes on meanwhile, and the program has precedence."""

import os
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Callable, Optional

from ..model.sync import UploadRequest
from ..system.polling import Backoff, boot_seconds
from ..system.signals import wake_main_thread
from ..wire.rpc import CallError, CallObsolete, Client

if TYPE_CHECKING:
    from .artifact_sender import ArtifactSender  # most launchers upload nothing, and it takes long to load

_CALL_SECONDS = 60.0
"""How long a call of an upload may take: the controller reads a large file again, and writes it to the disk."""

_REFUSED_SECONDS = 60.0
"""For so long an upload is tried again that the controller refuses, as on a full disk."""

_NICENESS = 19


class Uploads:
    """What this launcher uploads. `connect` gets the seconds that a call may take."""

    def __init__(self, connect: Callable[[float], Client], hostname: str) -> None:
        self._connect, self._hostname = connect, hostname
        self._thread: Optional[threading.Thread] = None
        self._request: Optional[UploadRequest] = None
        self._is_over = threading.Event()
        self._backoff = Backoff()
        self._refused_since = 0.0
        self.problem = ""
        """Why an upload is tried again; empty when nothing is wrong."""

    def follow(self, request: Optional[UploadRequest]) -> None:
        """Upload what the present order asks for. What it asks for no more ends at its next part, and the next request begins then."""
        if request != self._request:
            self._is_over.set()
        if self._thread is not None and self._thread.is_alive():
            return
        self._request, self._thread = request, None
        if request is not None:
            self._is_over = threading.Event()
            self._thread = threading.Thread(target=self._run, args=(request, self._is_over), daemon=True)
            self._thread.start()

    def _run(self, request: UploadRequest, is_over: threading.Event) -> None:
        """Upload, and try again what has failed; while the program runs, look for newer checkpoints until that is over."""
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
        from .artifact_sender import ArtifactSender

        has_ended = False
        while not has_ended and not is_over.wait(self._backoff.seconds):
            with self._connect(_CALL_SECONDS) as client:
                sender = ArtifactSender(client, self._hostname, request, is_over.wait)
                while not has_ended and not is_over.wait(sender.pause) and self._try(sender):
                    has_ended = not request.interval
        self._note_success()
        wake_main_thread()

    def _try(self, sender: "ArtifactSender") -> bool:
        """Upload once, and return whether nothing has failed."""
        from ..record.stored_artifact import DISK_FULL
        from .artifact_sender import Interrupted

        try:
            if self._refused_since and boot_seconds() - self._refused_since > _REFUSED_SECONDS:
                sender.give_up(DISK_FULL)
            else:
                sender.send()
        except Interrupted:
            return False
        except CallObsolete:  # the response to the end of the upload was lost, or the program has ended
            pass
        except (OSError, CallError, ValueError, KeyError, TypeError) as error:
            if isinstance(error, CallError):
                self._refused_since = self._refused_since or boot_seconds()
            self.problem = self._backoff.fail_by("cannot upload artifacts", error)
            return False
        self._note_success()
        return True

    def _note_success(self) -> None:
        self._backoff.reset()
        self.problem, self._refused_since = "", 0.0
