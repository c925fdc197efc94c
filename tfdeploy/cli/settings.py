"""What is set for a stack, as its file has it: plain values only, and nothing secret."""

import re
from collections.abc import Mapping
from pathlib import Path

_LINE = re.compile(r"^  ([A-Za-z0-9_-]+:[A-Za-z0-9_.-]+): *[\"']?([^\s\"'#]+)[\"']?\s*$", re.MULTILINE)


def text_of(file: Path | None, stack: str) -> str:
    """The file of a stack of the project of that file; empty where there is none."""
    if file is None or not stack:
        return ""
    try:
        return file.with_name(f"{file.stem}.{stack}{file.suffix}").read_text()
    except OSError:
        return ""


def settings(file: Path | None, stack: str) -> dict[str, str]:
    """Key to value of a stack, of the project of that file; nothing where none are set."""
    return {key: value for key, value in _LINE.findall(text_of(file, stack)) if value != "secure:"}


def places(known: Mapping[str, str]) -> dict[str, str]:
    """Backend to where its clusters are, as these settings have it; empty for where its own tools would look."""
    region = known.get("tfdeploy:region") or known.get("aws:region", "")
    return {"local": "", "docker": known.get("tfdeploy:docker_host", ""), "ec2": region}
