"""Texts of programs for terminals, pages, messages and outputs. Pure."""

from ..agent.record.escapes import RESET, plain, safe

__all__ = ["RESET", "plain", "safe", "shown_text"]


def shown_text(text: str) -> str:
    """What a task has printed, for messages and outputs: Pulumi ends with a panic at what looks like its own markup of colours."""
    return plain(text).replace("<{%", "<{ %")
