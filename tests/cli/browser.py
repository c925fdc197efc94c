"""A real browser without a screen: Debian's Chromium, told what to do by its DevTools protocol over a pair of pipes.

https://chromedevtools.github.io/devtools-protocol/
"""

import base64
import fcntl
import json
import os
import select
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.artefacts import artefacts
from tests.debian import provided

_OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)


def _pipe() -> tuple[int, int]:
    """A pipe whose ends do not stand where the browser wants its own."""
    low = os.pipe()
    high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in low]
    for end in low:
        os.close(end)
    return high[0], high[1]


@contextmanager
def browser() -> Iterator["Browser"]:
    """A browser with a profile of its own, until the end of the context."""
    program = provided("chromium")
    to_read, its_write = _pipe()
    its_read, to_write = _pipe()
    with tempfile.TemporaryDirectory(prefix="tfdeploy-chromium-", ignore_cleanup_errors=True) as profile:
        # The protocol is spoken on its file descriptors 3 and 4.
        script = f'exec "$@" 3<&{its_read} 4>&{its_write} {its_read}<&- {its_write}>&-'
        command = ["bash", "-c", script, "chromium", program, *_OPTIONS, f"--user-data-dir={profile}", "about:blank"]
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(its_read, its_write),
            start_new_session=True,
        )
        os.close(its_read)
        os.close(its_write)
        try:
            yield Browser(to_read, to_write)
        finally:
            with suppress(OSError):
                os.write(to_write, b'{"id":0,"method":"Browser.close"}\0')
            os.close(to_write)
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)
                process.wait()
            os.close(to_read)


@dataclass
class Browser:
    """The browser's end of the pipes."""

    to_read: int
    to_write: int
    _count: int = 0
    _rest: bytes = b""
    events: list[dict[str, Any]] = field(default_factory=list)

    def call(self, method: str, session: str = "", **params: Any) -> dict[str, Any]:
        """One call and its answer; what happens meanwhile is kept in `events`."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": params, **({"sessionId": session} if session else {})}
        os.write(self.to_write, json.dumps(message).encode() + b"\0")
        while True:
            heard = self._next()
            if heard.get("id") == self._count:
                assert "error" not in heard, f"{method}: {heard['error']}"
                return dict(heard["result"])
            self.events.append(heard)

    def wait(self, method: str, session: str) -> None:
        """Until this has happened in a tab."""
        while not any(event.get("method") == method and event.get("sessionId") == session for event in self.events):
            self.events.append(self._next())

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            assert select.select([self.to_read], [], [], 120)[0], "the browser does not respond"
            fresh = os.read(self.to_read, 1 << 20)
            assert fresh, "the browser has ended"
            self._rest += fresh
        message, _, self._rest = self._rest.partition(b"\0")
        return dict(json.loads(message))

    def open(self, url: str, width: int = 1280, dark: bool = False, height: int = 900, script: bool = True) -> "Tab":
        """A page in a tab of its own, loaded."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        tab = Tab(self, self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"])
        for domain in ("Page", "Runtime", "Network", "Log"):
            tab.call(f"{domain}.enable")
        tab.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        tab.call("Emulation.setScriptExecutionDisabled", value=not script)
        tab.media("screen", dark)
        tab.call("Page.navigate", url=url)
        self.wait("Page.loadEventFired", tab.session)
        return tab


@dataclass
class Tab:
    """One tab."""

    browser: Browser
    session: str

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """A call to this tab."""
        return self.browser.call(method, self.session, **params)

    def close(self) -> None:
        """Away with it, and with what it said."""
        self.call("Page.close")
        self.browser.events = [event for event in self.browser.events if event.get("sessionId") != self.session]

    def media(self, kind: str, dark: bool = False) -> None:
        """Have it believe that it is printed, or that the reader wants it dark."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media=kind, features=[scheme])

    def ask(self, expression: str) -> Any:
        """The value of an expression."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def texts(self, selector: str) -> list[str]:
        """The text of each element."""
        return list(self.ask(f"[...document.querySelectorAll({json.dumps(selector)})].map(one => one.textContent)"))

    def picture(self, name: str) -> Path:
        """The whole page, kept as an artefact."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        path = artefacts() / name
        path.write_bytes(self.shot((size["width"], size["height"])))
        return path

    def shot(self, size: tuple[int, int]) -> bytes:
        """The top of the page, so wide and high, as a PNG."""
        clip = {"x": 0, "y": 0, "width": size[0], "height": size[1], "scale": 1}
        shot = self.call("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)
        return base64.b64decode(shot["data"])

    def requested(self) -> list[str]:
        """The URLs that it has asked for."""
        return [event["params"]["request"]["url"] for event in self._heard("Network.requestWillBeSent")]

    def complaints(self) -> list[str]:
        """What stands in its console as a warning or an error, and exceptions."""
        self.ask("0")
        logged = [event["params"]["entry"] for event in self._heard("Log.entryAdded")]
        called = [event["params"] for event in self._heard("Runtime.consoleAPICalled")]
        return [
            *(entry["text"] for entry in logged if entry["level"] in ("warning", "error")),
            *(str(call["args"]) for call in called if call["type"] in ("warning", "error", "assert")),
            *(str(event["params"]["exceptionDetails"]) for event in self._heard("Runtime.exceptionThrown")),
        ]

    def _heard(self, method: str) -> list[dict[str, Any]]:
        return [
            event
            for event in self.browser.events
            if event.get("method") == method and event.get("sessionId") == self.session
        ]
