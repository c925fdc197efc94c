"""The watchdog's loop: observe, decide, act. An error of one step never ends the loop.

`prepare` is its other command; it runs before Docker starts, at each boot.
"""

import json
import resource
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Callable, Dict, Mapping, Optional, Tuple, TypeVar

from .docker_api import EngineState, LocalEngine
from .instance_metadata import Metadata, block_metadata
from .record_upload import RecordUpload
from .s3 import S3Folder
from .shutdown_rule import END, ENGINE_SILENT, REST, SAVE, STOP, Action, Limits, MachineFacts, decide

STATE = Path("/var/lib/tfdeploy")
"""The times of these files are the machine's state: `born`, `watched` by the watchdog, boot script `ready`, a task was `busy`,
tasks are `expected`."""

SHOWN = Path("/run/tfdeploy")
"""The folder that tasks can read: `notice` has the reason why they must stop."""

CONSOLE = Path("/dev/console")

TICK = 5.0
"""Seconds between two steps, as Amazon recommends for interruption notices:
https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html"""

BLOCK = 60.0
"""Seconds between two checks of the firewall's rules: a restart of the machine's own firewall removes them."""

SETTINGS = Path("/etc/tfdeploy/watchdog.json")
"""The present settings; `pulumi up` replaces the file (`backends.ec2.swarm`)."""

CREATED_WITH = Path("/usr/local/lib/tfdeploy/settings.json")
"""The settings that the machine was created with."""

DEFAULTS: Dict[str, Any] = {
    # Seconds after its start, and without a task, until the machine shuts down; 0 for never.
    "lifetime": 72 * 3600.0,
    "idle": 900.0,
    # Seconds until it shuts down if it is not ready, or has no watchdog. `up` waits for less, so that it can still read the console.
    "boot": 1800.0,
    "spot": False,
    "region": "",
    # The bucket of the record, empty for none; the cluster's folder in it; S3's address, empty for AWS's own.
    "bucket": "",
    "folder": "",
    "endpoint": "",
    # True with access through Systems Manager; its agent needs the metadata.
    "ssm": False,
}
"""Where no file can be read. The limits are the arguments' own defaults."""

T = TypeVar("T")


class Watchdog:
    """The watchdog of a machine; `DEFAULTS` has the names of its settings."""

    def __init__(self, settings: Mapping[str, Any], engine: LocalEngine, metadata: Metadata) -> None:
        self._limits = Limits.from_settings(settings)
        self._spot: bool = settings["spot"]
        self._block_metadata, self._next_block = partial(block_metadata, settings["ssm"]), 0.0
        self._engine, self._metadata = engine, metadata
        self._bucket: Optional[S3Folder] = None
        if settings["bucket"]:
            place = (settings["bucket"], settings["folder"], settings["region"], settings["endpoint"])
            self._bucket = S3Folder(*place, metadata.credentials)
        self._upload: Optional[RecordUpload] = None
        self._started = time.time()
        self._state = EngineState(0, 0, False, 0)
        self._notice: Optional[Tuple[str, float]] = None
        self._action = Action(REST)
        self._last_rest, self._saving_since = time.monotonic(), 0.0
        self._engine_seen = time.monotonic()
        self._saved = False
        self._errors: Dict[str, str] = {}

    def tick(self) -> None:
        """One step."""
        if time.monotonic() >= self._next_block:
            self._next_block = time.monotonic() + BLOCK
            self._try("firewall", self._block_metadata, None)
        self._observe()
        action = decide(self._limits, self._facts(time.time()))
        if action != self._action:
            is_unsaved = action.do == SAVE and bool(self._errors.get("record"))
            log(f"{'ends' if action.do == END else action.do}: {action.why}", action.do == END or is_unsaved)
        if action.do == REST:
            self._last_rest, self._saving_since = time.monotonic(), 0.0
        if action.do != SAVE:
            self._saved = False
        if action.do == SAVE and not self._saving_since:
            self._saving_since = time.monotonic()
        self._action = action
        self._act(action)

    def _observe(self) -> None:
        """Ask the engine and the metadata. An engine that does not respond is not known to be idle, for a while."""
        is_over = bool(self._upload and self._upload.run_result()[1])
        state = self._try("engine", partial(self._engine.observe, is_over), None)
        if state:
            self._state, self._engine_seen = state, time.monotonic()
        busy = bool(state.tasks or state.elsewhere) if state else not self._engine_lost() and (STATE / "busy").exists()
        if busy:
            self._try("state", (STATE / "busy").touch, None)
        if self._spot:
            self._notice = self._try("metadata", self._metadata.notice, None) or self._notice

    def _engine_lost(self) -> bool:
        return time.monotonic() - self._engine_seen >= ENGINE_SILENT

    def _facts(self, now: float) -> MachineFacts:
        # A task that started and ended between two steps counts too.
        busy, expected = max(_time(STATE / "busy"), self._state.last), _time(STATE / "expected")
        return MachineFacts(
            age=now - (_time(STATE / "born") or self._started),
            ready=(STATE / "ready").exists(),
            quiet=now - max(busy, expected, self._started),
            had_task=busy > expected,
            tasks=self._state.tasks,
            is_manager=self._state.is_manager,
            others=self._state.others,
            saved=self._saved,
            due=time.monotonic() - self._last_rest,
            saving=time.monotonic() - self._saving_since if self._saving_since else 0.0,
            notice=self._notice[0] if self._notice else "",
            left=self._notice[1] - now if self._notice else 0.0,
            problem=self._errors.get("record", ""),
        )

    def _act(self, action: Action) -> None:
        if action.do == STOP:
            self._try("notice", partial((SHOWN / "notice").write_text, action.why + "\n"), 0)
        elif action.do == END:
            subprocess.run(["shutdown", "-P", "now"], check=False)
        elif self._state.is_manager:
            self._upload_record(action.do == SAVE)

    def _upload_record(self, now: bool) -> None:
        """Upload the record when it is due, or now."""
        if self._bucket is None:
            self._saved = True
            return
        if self._upload is None:
            folder = self._try("volume", self._engine.record, None)
            self._upload = RecordUpload(folder, self._bucket.put) if folder else None
            self._saved = folder is None and ("volume" not in self._errors or self._engine_lost())
        if self._upload is not None and (now or self._upload.due()):
            self._saved = self._try("record", self._upload.upload, False)
            self._upload.note_problem(self._errors.get("record", ""))

    def _try(self, what: str, call: Callable[[], T], default: T) -> T:
        """The value of a call; `default` when it fails. Each error is logged once."""
        try:
            value = call()
        except Exception as error:
            message = str(error) or repr(error)
            if self._errors.get(what) != message:
                self._errors[what] = message
                log(f"{what}: {error!r}")
            return default
        self._errors.pop(what, None)
        return value


def log(text: str, console: bool = False) -> None:
    """Write a line to the journal, and to the console."""
    print(f"tfdeploy: {text}", file=sys.stderr, flush=True)
    if console:
        with suppress(OSError):
            CONSOLE.write_text(f"tfdeploy: {text}\n")


def _time(file: Path) -> float:
    return file.stat().st_mtime if file.exists() else 0.0


def prepare(settings: Mapping[str, Any]) -> None:
    """What must exist before tasks start: blocked metadata, and the folder that tasks can read."""
    block_metadata(settings["ssm"])
    SHOWN.mkdir(exist_ok=True)
    with suppress(FileNotFoundError):
        (SHOWN / "notice").unlink()


def cancel_boot_guard() -> None:
    """Cancel the shutdown that the first line of the boot script has scheduled; once in a machine's life."""
    if not (STATE / "watched").exists():
        subprocess.run(["shutdown", "-c"], check=False)
        (STATE / "watched").touch()


def read_settings(log: Callable[[str], None]) -> Dict[str, Any]:
    """The present settings; else those that the machine was created with; else the defaults. What cannot be read never keeps a machine
    from ending."""
    return _read_file(SETTINGS, log) or _read_file(CREATED_WITH, log) or DEFAULTS


def _read_file(path: Path, log: Callable[[str], None]) -> Dict[str, Any]:
    """The settings in a file; empty where it cannot be read."""
    try:
        settings = {**DEFAULTS, **json.loads(path.read_text())}
        Limits.from_settings(settings)
    except (OSError, ValueError, TypeError) as error:
        log(f"{path} cannot be read: {error!r}")
        return {}
    return settings


def main() -> int:
    """`prepare`, or run until the machine shuts down."""
    settings = read_settings(log)
    if sys.argv[1:] == ["prepare"]:
        prepare(settings)
        return 0
    with suppress(OSError):
        STATE.mkdir(parents=True, exist_ok=True)
        if not (STATE / "born").exists():
            (STATE / "born").touch()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # the files of the artifacts of a run are open together
    watchdog = Watchdog(settings, LocalEngine(), Metadata())
    while True:
        try:
            watchdog.tick()
            cancel_boot_guard()
        except Exception as error:
            log(repr(error))
        time.sleep(TICK)
