"""Unit files in the box's machines: what is read of them."""

import pytest

from tests.box.image.unit_files import BadUnit, parsed
from tests.box.programs import UNIT


def test_what_is_read() -> None:
    unit = parsed(UNIT)
    assert unit.command == ["/bin/sh", "/root/serve"]
    assert [may_fail for may_fail, _ in unit.before_all] == [True, False]
    assert unit.before == {"docker"}
    assert (unit.restarts, unit.pause, unit.console) == (True, 0.2, True)
    assert unit.environment == {"WORD": "hello"}
    assert parsed("[Service]\nExecStart=/one\nExecStart=\nExecStart=/two \\\n  three\n").command == ["/two", "three"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[Service]\nExecStart=/x\nMemoryMax=1G\n", "MemoryMax"),
        ("[Unit]\nExecStart=/x\n", r"ExecStart= in \[Unit\]"),
        ("[Service]\n", "one ExecStart"),
        ("[Service]\nExecStart=/x\nType=notify\n", "notify"),
        ("[Service]\nExecStart=/x\nRestart=on-abort\n", "on-abort"),
    ],
)
def test_what_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(BadUnit, match=complaint):
        parsed(text)
