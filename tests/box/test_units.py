"""Unit files in the box's machines: what is read of them, and that services live, end and boot as systemd's."""

from collections.abc import Iterator

import pytest

from tests.box.cloud import Box
from tests.box.image.unit_files import BadUnit, parsed
from tests.box.test_cloud import booted, run
from tests.engine.cli import DockerFailed
from tests.waiting import until

UNIT = """\
[Unit]
Description=Tested
Before=docker.service

[Service]
Environment=WORD=hello
ExecStartPre=-/bin/false
ExecStartPre=/bin/sh -c 'docker version >/dev/null 2>&1 && echo later >>/root/order || echo sooner >>/root/order'
ExecStart=/bin/sh /root/serve
Restart=always
RestartSec=0.2
StandardOutput=journal+console

[Install]
WantedBy=multi-user.target
"""
SERVE = """\
trap 'docker version >/dev/null 2>&1 && echo engine lives || echo engine is gone; exit 0' TERM
echo "$WORD from $$"
while :; do sleep 0.1; done
"""
USER_DATA = f"""#!/bin/sh
cat >/root/serve <<'END'
{SERVE}END
cat >/etc/systemd/system/tested.service <<'END'
{UNIT}END
printf '[Service]\\nExecStartPre=/bin/false\\nExecStart=/bin/true\\n' >/etc/systemd/system/failing.service
printf '[Service]\\nMemoryMax=1G\\nExecStart=/bin/true\\n' >/etc/systemd/system/unknown.service
systemctl daemon-reload
systemctl enable --now tested.service
"""


@pytest.fixture(scope="module")
def machine(box: Box) -> Iterator[str]:
    before = box.left()
    (found,) = run(box, 1, UserData=USER_DATA)
    booted(box, found)
    yield found
    box.client("ec2").terminate_instances(InstanceIds=[found])
    assert box.left() == before


def ask(box: Box, machine: str, script: str) -> str:
    """What a shell printed."""
    return box.run(machine, "sh", "-c", script)


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


def test_a_service_lives_until_it_is_stopped(box: Box, machine: str) -> None:
    assert ask(box, machine, "systemctl is-active tested") == "active"
    assert ask(box, machine, "systemctl is-enabled tested") == "enabled"
    first = ask(box, machine, "cat /run/box/tested.pid")
    until(lambda: f"hello from {first}" in box.console(machine), "its output is on the console")
    ask(box, machine, f"kill -KILL {first}")
    until(lambda: ask(box, machine, "cat /run/box/tested.pid") != first, "it has started again")
    ask(box, machine, "systemctl stop tested && sleep 1")
    assert ask(box, machine, "systemctl is-active tested || echo $?").split() == ["inactive", "3"]
    ask(box, machine, "systemctl start tested && systemctl disable tested")
    assert ask(box, machine, "systemctl is-enabled tested || echo $?").split() == ["disabled", "1"]
    ask(box, machine, "systemctl enable tested")


@pytest.mark.parametrize(("unit", "why"), [("failing", "/bin/false"), ("unknown", "MemoryMax"), ("none", "not found")])
def test_a_service_that_cannot_start_says_why(box: Box, machine: str, unit: str, why: str) -> None:
    with pytest.raises(DockerFailed, match=why):
        box.run(machine, "systemctl", "start", unit)


def test_the_engine_is_stopped_with_its_socket(box: Box, machine: str) -> None:
    ask(box, machine, "systemctl stop docker.socket docker")
    assert ask(box, machine, "systemctl is-active docker || true") == "inactive"
    ask(box, machine, "systemctl start docker")


def test_what_is_before_the_engine_starts_first_and_ends_last(box: Box, machine: str) -> None:
    before = ask(box, machine, "cat /root/order").split()
    assert set(before) == {"later"}
    box.client("ec2").reboot_instances(InstanceIds=[machine])
    booted(box, machine, 2)
    assert "engine is gone" in box.console(machine)
    assert ask(box, machine, "cat /root/order").split() == [*before, "sooner"]
    assert ask(box, machine, "systemctl is-active tested docker").split() == ["active", "active"]
