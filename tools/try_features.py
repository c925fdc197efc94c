"""Runs the tests of each row of the features, and prints on which backend each ran and how it ended: `python -m tools.try_features`."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from xml.etree import ElementTree

from .features import EACH, ROOT, Feature, backends_of, features

_OPTIONS = ["-q", "--numprocesses=4", "--dist=loadfile", "--no-loadscope-reorder"]


def main() -> int:
    """1 if a test of a row did not pass."""
    rows = features(ROOT).rows
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "outcomes.xml"
        pytest = [sys.executable, "-m", "pytest", *_OPTIONS, "-m", "", f"--junitxml={file}"]
        subprocess.run([*pytest, *sorted({test for row in rows for test in row.tests})], cwd=ROOT, check=False)
        outcomes = _outcomes(file)
    for row in rows:
        print(f"\n{row.id}: {row.text}", *_lines(row, outcomes), sep="\n")
    failed = [row.id for row in rows if any("passed" not in line for line in _lines(row, outcomes))]
    print(f"\n{len(rows)} rows, {len(outcomes)} tests. Rows that did not pass: {', '.join(failed) or 'none'}.")
    return 1 if failed else 0


def _lines(row: Feature, outcomes: Mapping[str, str]) -> Iterator[str]:
    """One line for each test and each of its parameters: backend, outcome with seconds, name."""
    for test in row.tests:
        found = {name: outcome for name, outcome in outcomes.items() if name.partition("[")[0] == test}
        for name, outcome in (found or {test: "did not run"}).items():
            parameter = name.partition("[")[2].rstrip("]")
            backend = parameter if test.startswith(EACH) else " and ".join(sorted(backends_of(test)))
            yield f"    {backend:<20} {outcome:<20} {name.rpartition('::')[2]}"


def _outcomes(file: Path) -> Mapping[str, str]:
    """How each test of a report in JUnit's format ended, and its seconds, by pytest's ids."""
    found: dict[str, str] = {}
    for case in ElementTree.parse(file).iter("testcase"):
        word = next((item.tag for item in case if item.tag in ("failure", "error", "skipped")), "passed")
        test = f"{case.attrib['classname'].replace('.', '/')}.py::{case.attrib['name']}"
        found[test] = f"{word} {float(case.attrib['time']):7.1f} s"
    return found


if __name__ == "__main__":
    sys.exit(main())
