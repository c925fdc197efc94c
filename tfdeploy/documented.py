"""What the code itself says of a class's attributes: the docstring under each."""

import ast
from collections.abc import Iterator
from pathlib import Path


def documented(module: str, name: str) -> Iterator[tuple[str, str, str]]:
    """Name, type and docstring of each attribute of a class, and first the class's own under an empty name."""
    tree = ast.parse(Path(__file__).with_name(f"{module}.py").read_text())
    found = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name)
    yield "", "", ast.get_docstring(found) or ""
    for item, following in zip(found.body, found.body[1:], strict=False):
        if isinstance(item, ast.AnnAssign) and isinstance(following, ast.Expr):
            text = ast.literal_eval(following.value)
            yield ast.unparse(item.target), ast.unparse(item.annotation), " ".join(text.split())
