"""The unit tests that belong to a module: `make near FILE=tfdeploy/plan/scheduler.py` runs them."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent


def nearest_tests(file: str, also: Sequence[str] = ()) -> list[list[str]]:
    """The unit tests named like a module, then the others of their folder, first those that name the module, then `also`."""
    path = Path(file.removeprefix("tfdeploy/"))
    place = ROOT / "tests" / "unit" / path
    folder = next(parent for parent in place.parents if parent.is_dir())
    named = sorted(folder.glob(f"test_{path.stem}*.py"))
    others = sorted({*folder.glob("test_*.py")} - {*named}, key=lambda test: (path.stem not in test.read_text(), test))
    groups = [[str(test.relative_to(ROOT)) for test in tests] for tests in (named, others)]
    return [group for group in (*groups, [*also]) if group]


def main(file: str) -> int:
    """Run the first group; pytest's exit code."""
    if not (ROOT / file).is_file():
        sys.exit(f"FILE: {file!r} is no file of this clone. Name one such as tfdeploy/plan/scheduler.py.")
    pytest = [sys.executable, "-m", "pytest", "-q", "--confcutdir=tests/unit", "-m", "not full"]
    return subprocess.run([*pytest, *nearest_tests(file)[0]], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else ""))
