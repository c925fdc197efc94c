"""An update prints what it installs, although Pulumi installs it in another process."""

import asyncio
import contextlib
from types import SimpleNamespace
from typing import Any, cast

import pulumi
import pytest

from tests.clusters import cluster_ref
from tests.unit.cases import spec
from tests.waiting import PATIENCE
from tfdeploy import announcements
from tfdeploy.declaration import Declaration


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
