"""Remedies in the words of `tfdeploy run`: its clusters have no Pulumi program, and exist for one command. Pure."""

import re

_SENTENCES = (
    (
        r"Fix the cause and run `pulumi up`\..*",
        "Fix the cause, and run the command again by `tfdeploy run`.",
    ),
    (r"`pulumi up` creates it again;", "`tfdeploy run` with the same command creates another one;"),
    (r", and run `pulumi up`|, and `pulumi up`", ", and run the command again"),
    (r"`pulumi up`", "`tfdeploy run`"),
)
_ARGUMENT = re.compile(r"`?\b(\w+)=(\"[^\"`]*\"|\{[^`]*?\}|\[[^`]*?\])(`|(?=[.,;:] |[.,;:]?$))")
"""An argument with its value, in backticks or at the end of a sentence."""


def in_words_of_run(text: str) -> str:
    """A remedy for a cluster of `tfdeploy run`: arguments are options, and the command is run again."""
    for pattern, sentence in _SENTENCES:
        text = re.sub(pattern, sentence, text)
    return re.sub(
        r"\b([Ss])et (?=`-)", lambda match: "Add " if match[1] == "S" else "add ", _ARGUMENT.sub(_option, text)
    )


def _option(match: re.Match[str]) -> str:
    name, value = match[1], match[2]
    text = value.strip('"') if value.startswith('"') else f"'{value}'"
    if variable := re.fullmatch(r"'\{\"(\w+)\": \"(\w*)\"\}'", text if name == "env" else ""):
        return f"`-e {variable[1]}={variable[2]}`"
    return f"`--set {name}={text}`"
