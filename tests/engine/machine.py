"""What an engine changes in the machine that it runs on: looked at before, put back afterwards."""

import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FORWARDING = Path("/proc/sys/net/ipv4/ip_forward")
TABLES = ("filter", "nat", "mangle")
BRIDGE = re.compile(r"\bbr-[0-9a-f]{12}\b")
"""What Docker calls a network's bridge."""


@contextmanager
def kept(*folders: Path) -> Iterator[None]:
    """Take away, at the end, the mounts below these folders, new network interfaces and new rules of the firewall."""
    _forget_bridges()
    before = links()
    forwarding = FORWARDING.read_text()
    rules = {table: _rules(table) for table in TABLES}
    try:
        yield
    finally:
        for mount in mounts(folders):
            call("umount", "--lazy", mount)
        for name in links() - before:
            call("ip", "link", "delete", name)
        for table in TABLES:
            _put_back(table, rules[table])
        FORWARDING.write_text(forwarding)


def _forget_bridges() -> None:
    """Remove the rules of bridges that are no more: a killed engine's would masquerade who has the addresses next."""
    there = links()
    for table in TABLES:
        for rule in _rules(table):
            if rule.startswith("-A") and not there.issuperset(BRIDGE.findall(rule)):
                _remove(table, rule)


def links() -> set[str]:
    """The names of the network interfaces."""
    return {name for _, name in socket.if_nameindex()}


def mounts(folders: tuple[Path, ...]) -> list[str]:
    """The mount points below these folders, the innermost first."""
    points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return [point for point in reversed(points) if any(Path(point).is_relative_to(folder) for folder in folders)]


def _rules(table: str) -> list[str]:
    """Policies (`-P`), chains (`-N`) and rules (`-A`) of one table of the firewall."""
    if not shutil.which("iptables"):
        return []
    done = subprocess.run(["iptables", "-t", table, "-S"], capture_output=True, text=True, check=False)
    return done.stdout.splitlines()


def _put_back(table: str, before: list[str]) -> None:
    new = [line for line in _rules(table) if line not in before]
    for line in new:
        if line.startswith("-A"):
            _remove(table, line)
    for line in new:
        if line.startswith("-N"):
            call("iptables", "-t", table, "-X", line.split()[1])
    for line in before:
        if line.startswith("-P"):
            call("iptables", "-t", table, *line.split())


def _remove(table: str, rule: str) -> None:
    call("iptables", "-t", table, "-D", *rule.split()[1:])


def call(*command: str) -> None:
    """Some of these things go together: one that has gone meanwhile is no failure."""
    subprocess.run(command, capture_output=True, check=False)
