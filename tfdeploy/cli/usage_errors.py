"""Wrong usage of the command becomes one sentence in our words; and the habits of other commands. Pure."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

_UP = "`pulumi up` creates or updates the cluster"
_DESTROY = "`pulumi destroy` removes the cluster; `tfdeploy stop` stops the training"
_STOP = "`tfdeploy stop` stops the training; `pulumi cancel` ends an update"
_SHOW = "`tfdeploy status` shows a cluster, `tfdeploy ls` all of them"

HABITS: dict[str, str] = {
    **dict.fromkeys(("up", "apply", "create", "deploy", "submit"), _UP),
    **dict.fromkeys(("down", "destroy", "delete", "rm"), _DESTROY),
    **dict.fromkeys(("cancel", "kill"), _STOP),
    **dict.fromkeys(("get", "describe", "list"), _SHOW),
    "shell": "`tfdeploy exec worker-0 -- bash` opens a shell in a task",
    "ssh": "`tfdeploy exec --machine NAME` opens a shell on a machine",
    "scale": "`pulumi config set tfdeploy:workers 3` and `pulumi up` change the number of workers",
    "iam-policy": "the least IAM policy for EC2 is `docs/iam-policy.json`",
    "rbac-policy": "the least Role for Kubernetes is `docs/kubernetes-role.yaml`",
}
"""What users of kubectl, docker, sky, ray, terraform and pulumi type most, and verbs that were withdrawn, to what does it here."""

_OPTIONS_WITH_VALUE = frozenset({"--cwd", "-C", "--stack", "-s", "--cluster", "-c", "--output", "-o"})
_OPTIONS_ALONE = frozenset({"--json", "--debug"})

_WORDS: Sequence[tuple[str, str]] = (
    (r"Value error, (.*?)\.?$", r"\1"),
    (r"Input should be a valid integer.*", "is not a whole number"),
    (r"Input should be a valid number.*", "is not a number"),
    (r"Input should be greater than or equal to (.*?)\.?$", r"must be at least \1"),
    (r"Input should be less than or equal to (.*?)\.?$", r"must be at most \1"),
    (r"Input should be greater than (.*?)\.?$", r"must be more than \1"),
    (r"Input should be less than (.*?)\.?$", r"must be less than \1"),
    (r"Input should be (.*?)\.?$", r"must be \1"),
    (r"(.*) is not a valid integer(?: range)?\.?$", r"\1 is not a whole number"),
    (r"(.*) is not a valid float(?: range)?\.?$", r"\1 is not a number"),
    (r"(.*) is not in the range x>=(\S+?)\.?$", r"\1 is less than \2"),
    (r"(.*) is not in the range x<=(\S+?)\.?$", r"\1 is more than \2"),
    (r"(.*) is not in the range (\S+?)<=x<=(\S+?)\.?$", r"\1 is not between \2 and \3"),
)
"""What the option library and the library that it converts values with call a wrong value, and our words."""

_BRACES = re.compile(r"[{}]")
_NO_COMMAND = re.compile(r"No such command '(.*?)'")
_NO_VALUE = re.compile(r"Option '(.*?)' requires an argument")
_EXTRA = re.compile(r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)")


def arguments_in_order(arguments: Sequence[str]) -> list[str]:
    """The arguments of the command, with `help` and `version` as options, `--help` for none, and the options that select a cluster
    after the command, if they come before it."""
    if not arguments:
        return ["--help"]
    moved: list[str] = []
    front: list[str] = []
    rest = list(arguments)
    while rest and (count := _count_of_option(rest[0])):
        (front if rest[0] == "--debug" else moved).extend(rest[:count])
        rest = rest[count:]
    if not rest or (moved and rest[0].startswith("-")):
        return list(arguments)
    if rest == ["version"]:
        return [*front, "--version"]
    if rest[0] == "help":
        return [*front, *rest[1:2], "--help"]
    return [*front, rest[0], *moved, *rest[1:]]


def _count_of_option(argument: str) -> int:
    name, _, value = argument.partition("=")
    if name in _OPTIONS_ALONE:
        return 1
    return (1 if value else 2) if name in _OPTIONS_WITH_VALUE else 0


def usage_message(error: Any, commands: Iterable[str]) -> str:
    """What is wrong, and what to type; `commands` are those that the help lists."""
    path = error.ctx.command_path if getattr(error, "ctx", None) else "tfdeploy"
    usage = _BRACES.sub("", error.ctx.get_usage().removeprefix("Usage: ")) if getattr(error, "ctx", None) else ""
    text = str(getattr(error, "message", "") or "")
    kind = type(error).__name__
    if kind == "NoSuchOption":
        near = f" Did you mean {' or '.join(sorted(error.possibilities))}?" if error.possibilities else ""
        return f"{error.option_name} is not an option of `{path}`.{near} `{path} --help` lists them."
    if kind == "MissingParameter":
        return f"{_name(error)} is missing. Use: {usage}"
    if match := _NO_COMMAND.match(text):
        return _no_command(match[1], commands)
    if match := _NO_VALUE.match(text):
        return f"{match[1]} needs a value. `{path} --help` lists the options."
    if match := _EXTRA.match(text):
        return f"{match[1]} is not expected here. Use: {usage}"
    name = _name(error)
    if not name:
        return text
    if ". " in text:  # it is more than one sentence, and has what to do
        return f"{name}: {text}"
    return f"{name}: {_given(error)}{_in_our_words(text)}. `{path} --help` lists the options."


def _no_command(name: str, commands: Iterable[str]) -> str:
    begin = f"there is no command {name!r}."
    if name in HABITS:
        return f"{begin} {HABITS[name][0].upper()}{HABITS[name][1:]}."
    from difflib import get_close_matches

    near = get_close_matches(name, list(commands), 2)
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    return f"{begin}{hint} `tfdeploy help` lists the commands."


def _name(error: Any) -> str:
    """The option or argument that an error is about; empty if it names it itself."""
    param, hint = getattr(error, "param", None), getattr(error, "param_hint", None)
    if hint:
        return hint if isinstance(hint, str) else " / ".join(hint)
    if param is None:
        return ""
    options = [name for name in param.opts if name.startswith("-")]
    return max(options, key=len) if options else str(param.metavar or param.name.upper())


def _given(error: Any) -> str:
    """The value that could not be converted, where the message lacks it."""
    errors = getattr(error.__cause__, "errors", None)
    if errors is None or not str(error.message).startswith("Input should"):
        return ""
    return f"{errors()[0].get('input')!r} "


def _in_our_words(text: str) -> str:
    for pattern, words in _WORDS:
        if re.match(pattern, text):
            return re.sub(pattern, words, text)
    return text.rstrip(".")
