"""Small wrong changes, and the tests that notice them: `python -m tools.mutants --count 20 tfdeploy/plan/*.py`.

Each change is made alone, in a temporary copy of the tree. The same seed makes the same changes to the same code. `--table FILE` reads
changes from a TOML file instead: each `[[mutant]]` has `file`, `old`, `new`, and may have `tests`. Prints a table in Markdown. The
nearest unit tests run, and the tests that `--also` names if those pass.
"""

import argparse
import ast
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from tools.near import ROOT, nearest_tests

_OPPOSITES = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "=="}
_OPPOSITES |= {ast.In: "not in", ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is"}
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


class Mutant(NamedTuple):
    """A change: from the byte `start` of a file on, `old` becomes `new`."""

    file: str
    start: int
    old: str
    new: str
    tests: Sequence[Sequence[str]]
    """Paths for pytest: each group of them runs if those before it have passed."""

    def __str__(self) -> str:
        line = (ROOT / self.file).read_bytes()[: self.start].count(b"\n") + 1
        return f"`{self.file}:{line}` | " + " ".join(f"`{self.old}` → `{self.new}`".replace("|", "\\|").split())


def _changes(node: ast.expr | ast.stmt) -> Iterator[str]:
    """What a node may become: a flipped comparison, another number, a dropped `not` or statement, `and` for `or`."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        yield f"{ast.unparse(node.left)} {_OPPOSITES[type(node.ops[0])]} {ast.unparse(node.comparators[0])}"
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield f"({ast.unparse(node.operand)})"
    elif isinstance(node, ast.BoolOp):
        yield (" or " if isinstance(node.op, ast.And) else " and ").join(f"({ast.unparse(it)})" for it in node.values)
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield str(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        yield repr(node.value * 2 if node.value > 1 else node.value + 1)
    elif isinstance(node, (ast.Raise, ast.AugAssign, ast.Assign, ast.Expr)):
        part = node.value if isinstance(node, ast.Expr) else node.targets[0] if isinstance(node, ast.Assign) else None
        if part is None or isinstance(part, (ast.Call, ast.Attribute, ast.Subscript)):
            yield "pass"


def _nodes(node: ast.AST) -> Iterator[ast.expr | ast.stmt]:
    """All statements and expressions, but those of annotations, decorators and f-strings."""
    if isinstance(node, (ast.expr, ast.stmt)):
        yield node
    for name, value in ast.iter_fields(node):
        if name not in ("annotation", "returns", "decorator_list") and not isinstance(node, ast.JoinedStr):
            for child in value if isinstance(value, list) else [value]:
                yield from _nodes(child) if isinstance(child, ast.AST) else ()


def mutants_of(file: str, also: Sequence[str]) -> Iterator[Mutant]:
    """All changes to a file that this module knows."""
    source, tests = (ROOT / file).read_bytes(), nearest_tests(file, also)
    starts = [0, *accumulate(map(len, source.splitlines(keepends=True)))]
    for node in _nodes(ast.parse(source)):
        for new in _changes(node):
            begin = starts[node.lineno - 1] + node.col_offset
            yield Mutant(file, begin, ast.get_source_segment(source.decode(), node) or "", new, tests)


def mutants_in(table: Path, also: Sequence[str]) -> Iterator[Mutant]:
    """The changes of a table; each text must be in its file once."""
    for row in tomllib.loads(table.read_text())["mutant"]:
        source = (ROOT / row["file"]).read_text()
        if source.count(row["old"]) != 1:
            sys.exit(f"{row['file']} has {row['old']!r} {source.count(row['old'])} times, not once.")
        start = len(source.partition(row["old"])[0].encode())
        tests = [row["tests"]] if "tests" in row else nearest_tests(row["file"], also)
        yield Mutant(row["file"], start, row["old"], row["new"], tests)


def first_failure(copy: Path, groups: Sequence[Sequence[str]]) -> str:
    """The first test that fails in a copy of the tree; empty if all pass."""
    # Without compiled modules: two changes within a second may have the same time and size.
    env = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    pytest = ["timeout", "600", sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", "not full"]
    for tests in groups:
        run = subprocess.run([*pytest, *tests], cwd=copy, env=env, capture_output=True, text=True, check=False)
        if run.returncode not in (0, 5):  # 5: all of these tests are `full`
            failed: list[str] = _FAILED.findall(run.stdout)
            without_test = "does not end" if run.returncode == 124 else f"exit code {run.returncode}"
            return failed[0].removeprefix("tests/") if failed else without_test
    return ""


def main(args: Sequence[str]) -> int:
    """Print what becomes of each mutant; 1 if one survives."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--table", type=Path)
    for name, number in (("--seed", 1), ("--first", 1), ("--count", 20)):
        parser.add_argument(name, type=int, default=number)
    parser.add_argument("--also", nargs="*", default=[])
    options = parser.parse_args(args)
    changes = [mutant for file in sorted(options.files) for mutant in mutants_of(file, options.also)]
    chosen = random.Random(options.seed).sample(changes, len(changes))[options.first - 1 :][: options.count]
    chosen = [*mutants_in(options.table, options.also)] if options.table else chosen
    survivors = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "tree")
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".git", ".venv", "build", "__pycache__"))
        tests = sorted({test for mutant in chosen for group in mutant.tests for test in group})
        if failure := first_failure(copy, [tests]):
            sys.exit(f"{failure} fails without a change.")
        print("| # | where | change | seconds | killed by |\n|---|---|---|---|---|", flush=True)
        for number, mutant in enumerate(chosen, options.first):
            file, begin = copy / mutant.file, time.monotonic()
            source = file.read_bytes()
            rest = source[mutant.start + len(mutant.old.encode()) :]
            file.write_bytes(source[: mutant.start] + mutant.new.encode() + rest)
            failure = first_failure(copy, mutant.tests)
            file.write_bytes(source)
            survivors += not failure
            print(f"| {number} | {mutant} | {time.monotonic() - begin:.0f} | {failure or '**survived**'} |", flush=True)
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
