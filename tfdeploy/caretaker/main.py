"""The caretaker's loop: look, decide, do; and again, whatever a look or a step fails with.

`prepare` is its other command: run before Docker starts, each time the machine does.
"""

import json
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Callable, Dict, Mapping, Optional, Tuple, TypeVar

from .bucket import Bucket
from .decisions import END, REST, SAVE, STOP, Action, Facts, Limits, decide
from .engine import Engine, Seen
from .metadata import Metadata, close
from .upload import Upload

SETTINGS = Path("/etc/tfdeploy/caretaker.json")
STATE = Path("/var/lib/tfdeploy")
"""When the machine was `born`, its boot script `ready`, some task last `busy`, tasks last `expected`: the times of files."""

SHOWN = Path("/run/tfdeploy")
"""What the tasks see of the machine: `notice` says why they are to stop."""

CONSOLE = Path("/dev/console")

TICK = 5.0
"""Seconds between two looks, as Amazon advises for spot notices:
https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html"""

T = TypeVar("T")


class Caretaker:
    """The one of a machine with these settings, the content of `/etc/tfdeploy/caretaker.json`."""

    def __init__(self, settings: Mapping[str, Any], engine: Engine, about: Metadata) -> None:
        self._limits = Limits.of(settings)
        self._spot: bool = settings["spot"]
        self._engine, self._about = engine, about
        self._bucket: Optional[Bucket] = None
        if settings["bucket"]:
            self._bucket = Bucket(settings["bucket"], settings["region"], settings["endpoint"], about.credentials)
        self._upload: Optional[Upload] = None
        self._came = time.time()
        self._seen = Seen(0, 0, False, 0)
        self._notice: Optional[Tuple[str, float]] = None
        self._action = Action(REST)
        self._rested, self._saving = time.monotonic(), 0.0
        self._safe = False
        self._complaints: Dict[str, str] = {}

    def tick(self) -> None:
        """One look, one step."""
        self._look()
        action = decide(self._limits, self._facts(time.time()))
        if action != self._action:
            say(f"{'ends' if action.do == END else action.do}: {action.why}", action.do == END)
        if action.do == REST:
            self._rested, self._saving = time.monotonic(), 0.0
        if action.do != SAVE:
            self._safe = False
        if action.do == SAVE and not self._saving:
            self._saving = time.monotonic()
        self._action = action
        self._do(action)

    def _look(self) -> None:
        """Ask engine and metadata. An engine that is silent is not known to be idle."""
        seen = self._tried("engine", self._engine.look, None)
        self._seen = seen or self._seen
        busy = bool(seen.tasks or seen.elsewhere) if seen else (STATE / "busy").exists()
        if busy:
            (STATE / "busy").touch()
        if self._spot:
            self._notice = self._tried("metadata", self._about.notice, None) or self._notice

    def _facts(self, now: float) -> Facts:
        # One that comes and goes between two looks has come all the same.
        busy, expected = max(_time(STATE / "busy"), self._seen.last), _time(STATE / "expected")
        return Facts(
            age=now - _time(STATE / "born"),
            ready=(STATE / "ready").exists(),
            quiet=now - max(busy, expected, self._came),
            came=busy > expected,
            tasks=self._seen.tasks,
            manages=self._seen.manages,
            others=self._seen.others,
            safe=self._safe,
            due=time.monotonic() - self._rested,
            saving=time.monotonic() - self._saving if self._saving else 0.0,
            notice=self._notice[0] if self._notice else "",
            left=self._notice[1] - now if self._notice else 0.0,
        )

    def _do(self, action: Action) -> None:
        if action.do == STOP:
            (SHOWN / "notice").write_text(action.why + "\n")
        elif action.do == END:
            subprocess.run(["shutdown", "-P", "now"], check=False)
        elif self._seen.manages:
            self._keep_record(action.do == SAVE)

    def _keep_record(self, now: bool) -> None:
        """Bring the record into the bucket when it is time, or now."""
        if self._bucket is None:
            self._safe = True
            return
        if self._upload is None:
            folder = self._tried("volume", self._engine.record, None)
            self._upload = Upload(folder, self._bucket.put) if folder else None
            self._safe = folder is None and "volume" not in self._complaints
        if self._upload is not None and (now or self._upload.due()):
            self._safe = self._tried("record", self._upload.bring, False)

    def _tried(self, what: str, do: Callable[[], T], otherwise: T) -> T:
        """What it comes to; `otherwise` when it fails, which is said once for each reason."""
        try:
            found = do()
        except Exception as error:
            words = f"{what}: {error!r}"
            if self._complaints.get(what) != words:
                self._complaints[what] = words
                say(words)
            return otherwise
        self._complaints.pop(what, None)
        return found


def say(text: str, console: bool = False) -> None:
    """Tell whoever reads the journal, or the console."""
    print(f"tfdeploy: {text}", file=sys.stderr, flush=True)
    if console:
        with suppress(OSError):
            CONSOLE.write_text(f"tfdeploy: {text}\n")


def _time(file: Path) -> float:
    return file.stat().st_mtime if file.exists() else 0.0


def prepare(settings: Mapping[str, Any]) -> None:
    """What must be before a task comes: metadata closed to it, a folder that it can see."""
    close(settings["ssm"])
    SHOWN.mkdir(exist_ok=True)
    with suppress(FileNotFoundError):
        (SHOWN / "notice").unlink()


def main() -> int:
    """Prepare, or take care for ever."""
    settings = json.loads(SETTINGS.read_text())
    if sys.argv[1:] == ["prepare"]:
        prepare(settings)
        return 0
    STATE.mkdir(parents=True, exist_ok=True)
    if not (STATE / "born").exists():
        (STATE / "born").touch()
    caretaker = Caretaker(settings, Engine(settings), Metadata())
    while True:
        try:
            caretaker.tick()
        except Exception as error:
            say(repr(error))
        time.sleep(TICK)
