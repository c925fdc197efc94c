"""The limits for lines: all files count that git has, generated ones and data too. A commit that removes lines lowers its row."""

import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tools.density import ROOT, measured

LIMITS = {
    "tfdeploy": 1869,
    "tfdeploy/program": 1706,
    "tfdeploy/spec": 2175,
    "tfdeploy/plan": 1804,
    "tfdeploy/agent": 11345,
    "tfdeploy/backends": 3438,
    "tfdeploy/backends/local": 1683,
    "tfdeploy/backends/docker": 3817,
    "tfdeploy/backends/kubernetes": 2894,
    "tfdeploy/backends/ec2": 6446,
    "tfdeploy/report": 4160,
    "tfdeploy/cli": 6264,
    "tests": 61535,
    "bench": 3493,
    "docs": 4534,
    "design": 1789,
    "tools": 12821,
    "programs": 25894,
    "images": 408,
    ".ci": 11,
    ".github": 111,
    "package": 1218,
}
"""Folder to its lines. `tfdeploy` and `tfdeploy/backends` stand for the files beside their folders."""

PACKAGE_LINES, PACKAGE_MODULES = 47601, 316

DENSITY = {
    "mean length of a function": 8.6,
    "median length of a function": 6,
    "functions with a docstring, in percent": 73,
    "longest line": 146,
}
"""How dense the code of the package was at 03608bcb."""


def lines_by_row() -> Counter[str]:
    """Row of the table to the lines of its files; a file without a row has the row of its own folder."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    lines: Counter[str] = Counter()
    for name in filter(None, listed.stdout.split("\0")):
        folders = [str(folder) for folder in Path(name).parents]
        row = next((folder for folder in folders if folder in LIMITS), folders[0])
        path = ROOT / name
        if row != "." and path.is_file():
            lines[row] += path.read_bytes().count(b"\n")
    return lines


def test_no_folder_has_more_lines_than_its_limit() -> None:
    lines = lines_by_row()
    assert {row: count for row, count in lines.items() if count > LIMITS.get(row, 0)} == {}


def test_the_package_has_no_more_lines_and_modules_than_its_limits() -> None:
    lines = sum(count for row, count in lines_by_row().items() if row.partition("/")[0] == "tfdeploy")
    modules = len([*(ROOT / "tfdeploy").rglob("*.py")])
    assert (lines <= PACKAGE_LINES, modules <= PACKAGE_MODULES) == (True, True), f"{lines} lines, {modules} modules"


@pytest.mark.parametrize("name", DENSITY)
def test_the_code_is_no_denser_than_it_was(name: str) -> None:
    """Within a tenth."""
    assert measured(ROOT / "tfdeploy")[name] == pytest.approx(DENSITY[name], rel=0.1)
