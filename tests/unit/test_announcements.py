"""What a preview prints in terminals of every width, and what an update prints while it installs packages."""

import asyncio
import contextlib
from types import SimpleNamespace
from typing import Any, cast

import pulumi
import pytest

from tests.clusters import cluster_ref
from tests.unit.cases import spec
from tests.waiting import PATIENCE
from tfdeploy.program import announcements
from tfdeploy.program.declaration import Declaration
from tfdeploy.report import live_display
from tfdeploy.report.live_display import LiveDisplay

WORDS = (
    "The run succeeds when worker-0 succeeds; worker-1 then has 1m to end by itself, and not a second more than that."
)


@pytest.fixture
def columns(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> int:
    """The width of Pulumi's terminal; 0 for a log."""
    width: int = request.param
    monkeypatch.setattr(LiveDisplay, "columns", width)
    return width


def declaration(wait: float = 600.0, ended: bool = False) -> Any:
    run = SimpleNamespace(id="a", spec=SimpleNamespace(id="a", content_id=""), result="succeeded" if ended else None)
    return SimpleNamespace(
        plan=SimpleNamespace(run=run), inventory=SimpleNamespace(run=run), spec=SimpleNamespace(wait=wait)
    )


@pytest.mark.parametrize(
    ("columns", "lines"), [(0, 0), (60, 1), (80, 1), (119, 1), (120, 1), (160, 1)], indirect=["columns"]
)
def test_ctrl_c_is_named_in_terminals_of_every_width(columns: int, lines: int) -> None:
    found = announcements._progress_lines(declaration())
    assert [line.count("Ctrl-C detaches: the training continues") for line in found] == [1] * lines
    assert any(live_display.WATCH_COMMAND in line for line in found) is (0 < columns < 120)
    assert announcements._progress_lines(declaration(wait=0.0)) == []
    assert announcements._progress_lines(declaration(ended=True)) == []


@pytest.mark.parametrize("columns", [0, 60, 80, 120], indirect=True)
@pytest.mark.parametrize("begin", ["", "warning: "])
def test_no_word_of_a_message_is_broken(columns: int, begin: str, monkeypatch: pytest.MonkeyPatch) -> None:
    logged: list[str] = []
    monkeypatch.setattr(pulumi.log, "info", logged.append)
    monkeypatch.setattr(pulumi.log, "warn", logged.append)
    if begin:
        warned: Any = SimpleNamespace(warnings=[WORDS.rstrip(".")], spec=SimpleNamespace(name="mnist"))
        announcements._print_warnings(warned)
    else:
        announcements._print_lines(["mnist:", WORDS])
    (message,) = logged
    assert f"{begin}{message}".split() == f"{begin}mnist: {WORDS}".split()
    shown = [f"    {line}" for line in f"{begin}{message}".split("\n")]
    assert max(map(len, shown)) <= columns or not columns


@pytest.mark.parametrize("requirements", [["numpy", "six"], []])
def test_what_an_update_installs_is_printed_once(requirements: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    printed: list[str] = []
    states = iter(["", "installing numpy, six, 1s", "installing numpy, six, 2s"])
    monkeypatch.setattr(announcements, "installing", lambda *_: next(states, "installing numpy, six, 3s"))
    monkeypatch.setattr(announcements, "_POLL_SECONDS", 0.01)
    monkeypatch.setattr(pulumi.log, "info", lambda text, *_, **__: printed.append(text))
    declaration = cast(
        Declaration, SimpleNamespace(spec=spec(workers=1, requirements=requirements), cluster=cluster_ref())
    )

    async def update() -> None:
        submitted = announcements.report_installation(declaration, cast(Any, None))
        async with asyncio.timeout(PATIENCE):
            while requirements and (not printed or next(states, None) is not None):
                await asyncio.sleep(0)
        submitted.set()

    with contextlib.closing(asyncio.new_event_loop()) as loop:
        loop.run_until_complete(update())
    assert printed[:1] == ["mnist: installing numpy, six. The tasks start after that."] * bool(requirements)
    assert len([text for text in printed if text.startswith("mnist:")]) <= 1
