"""Runs the files with the tests of each row of the features, and prints how each test ended; `make features` calls it."""

import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree

from .features import EACH, ROOT, Feature, backends_of, features


def main(pytest: Sequence[str]) -> int:
    """Call this command with the files of the rows, whole, since tests go on from the one before; 1 if a row did not pass."""
    rows, failed = features(ROOT).rows, []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "outcomes.xml"
        files = sorted({test.partition("::")[0] for row in rows for test in row.tests})
        subprocess.run([*pytest, "-m", "", f"--junitxml={file}", *files], cwd=ROOT, check=False)
        outcomes = _outcomes(file) if file.exists() else {}
    for row in rows:
        ended = _ended(row, outcomes)
        print(f"\n{row.id}: {row.text}")
        for test, outcome in ended.items():
            print(f"    {_backends(test):<20} {outcome:<12} {test.rpartition('::')[2]}")
        failed += [row.id] if {*ended.values()} != {"passed"} else []
    print(f"\n{len(rows)} rows, {len(outcomes)} tests. Rows that did not pass: {', '.join(failed) or 'none'}.")
    return 1 if failed else 0


def _ended(row: Feature, outcomes: Mapping[str, str]) -> Mapping[str, str]:
    """How each test of a row ended, with each of its parameters."""
    ended = {name: outcome for name, outcome in outcomes.items() if name.partition("[")[0] in row.tests}
    known = {name.partition("[")[0] for name in ended}
    return {**ended, **{test: "did not run" for test in row.tests if test not in known}}


def _backends(test: str) -> str:
    named = test.partition("[")[2].rstrip("]") if test.startswith(EACH) else ""
    return named or " and ".join(sorted(backends_of(test)))


def _outcomes(file: Path) -> Mapping[str, str]:
    """How each test of a report in JUnit's format ended, by pytest's ids."""
    found: dict[str, str] = {}
    for case in ElementTree.parse(file).iter("testcase"):
        test = f"{case.attrib['classname'].replace('.', '/')}.py::{case.attrib['name']}"
        found[test] = next((item.tag for item in case if item.tag in ("failure", "error", "skipped")), "passed")
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
