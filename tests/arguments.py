"""Arguments of a cluster as the text of a call."""

import ast

GROUPS = ("container", "docker", "ec2", "kubernetes")


def merged(arguments: str) -> str:
    """The same arguments with each group once: a later `ec2={…}` overrides the members of an earlier one."""
    keywords = ast.parse(f"f({arguments})", mode="eval").body.keywords  # type: ignore[attr-defined]
    texts: dict[str, list[str]] = {}
    for keyword in keywords:
        values = texts.setdefault(keyword.arg, [])
        values[:] = [*(values if keyword.arg in GROUPS else []), ast.unparse(keyword.value)]
    return ", ".join(
        f"{name}={values[0]}" if len(values) == 1 else f"{name}={{{', '.join(f'**{value}' for value in values)}}}"
        for name, values in texts.items()
    )
