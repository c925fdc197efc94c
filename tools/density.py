"""Prints how dense the code of the package is: `python -m tools.density`.

Fewer lines must not come from longer functions, from fewer docstrings, or from longer lines.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from statistics import mean, median

ROOT = Path(__file__).parents[1]

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(path: Path) -> Iterator[Function]:
    """The functions and methods of a file."""
    return (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, Function))


def first_line(function: Function) -> int:
    """The number of its first line, which may be that of a decorator."""
    return min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])


def length(function: Function) -> int:
    """Its lines, with decorators and docstring."""
    first = first_line(function)
    return (function.end_lineno or first) - first + 1


def measured(package: Path) -> dict[str, float]:
    """The numbers of a package, by name."""
    paths = sorted(package.rglob("*.py"))
    found = [function for path in paths for function in functions(path)]
    lengths = [length(function) for function in found]
    return {
        "mean length of a function": round(mean(lengths), 1),
        "median length of a function": median(lengths),
        "functions with a docstring, in percent": round(100 * mean(bool(ast.get_docstring(item)) for item in found)),
        "longest line": max(len(line) for path in paths for line in path.read_text().splitlines()),
    }


if __name__ == "__main__":
    for name, value in measured(ROOT / "tfdeploy").items():
        print(f"{value:>6g}  {name}")
