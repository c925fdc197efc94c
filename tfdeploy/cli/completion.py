"""Shell completion, from the registry alone: no cluster is contacted.

The shell calls `tfdeploy` with the words before the one that it completes; the environment variable has the beginning of that one.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import TfdeployError, UsageError
from .command_table import ALL, BY_NAME, VERBS

if TYPE_CHECKING:
    from ..registry import Entry
    from .cluster_selection import ClusterQuery

SCRIPTS = {
    "bash": """\
_tfdeploy() {
    local IFS=$'\\n'
    COMPREPLY=($(_TFDEPLOY_COMPLETE="$2" "$1" "${COMP_WORDS[@]:1:COMP_CWORD-1}"))
}
complete -o default -F _tfdeploy tfdeploy
""",
    "zsh": """\
_tfdeploy() {
    local -a found=(${(f)"$(_TFDEPLOY_COMPLETE="$PREFIX" ${words[1]} "${(@)words[2,CURRENT-1]}")"})
    (( $#found )) && compadd -- $found || _files
}
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit; }
compdef _tfdeploy tfdeploy
""",
    "fish": """\
function _tfdeploy
    set -l words (commandline -opc)
    _TFDEPLOY_COMPLETE=(commandline -ct) $words[1] $words[2..-1]
end
complete --command tfdeploy --no-files --arguments "(_tfdeploy)"
""",
}
"""Shell to what it reads to complete the words of `tfdeploy`."""

_START_FILES = {"bash": ".bashrc", "zsh": ".zshrc", "fish": ".config/fish/config.fish"}
"""Shell to the file in the home folder that it reads when it starts."""


def script(shell: str) -> str:
    """The script for a shell, by default the user's.

    Raises:
        UsageError: there is none.
    """
    return SCRIPTS[_known(shell)]


def install(shell: str) -> Path:
    """Have a shell, by default the user's, complete the words of `tfdeploy`; returns the file that it reads when it starts.

    Raises:
        UsageError: there is no script for it.
    """
    shell = _known(shell)
    start_file = Path.home() / _START_FILES[shell]
    file = Path.home() / ".local" / "share" / "tfdeploy" / f"completion.{shell}"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(SCRIPTS[shell])
    start_file.parent.mkdir(parents=True, exist_ok=True)
    line = f'source "{file}"\n'
    if not start_file.exists() or line not in start_file.read_text():
        with start_file.open("a") as stream:
            stream.write(line)
    return start_file


def _known(shell: str) -> str:
    name = shell or Path(os.environ.get("SHELL", "")).name
    if name not in SCRIPTS:
        raise UsageError(f"{name or 'the shell'} has no completion. Name one of {', '.join(SCRIPTS)} after the option.")
    return name


def candidates(words: Sequence[str], begin: str) -> list[str]:
    """What completes a word that begins so, after these words of the command line."""
    if not words:
        return [verb.name for verb in VERBS if verb.name.startswith(begin)]
    import logging

    logging.disable(logging.WARNING)  # a warning of the registry would be printed into the command line
    try:
        return [name for name in dict.fromkeys(_names(words, begin)) if name.startswith(begin)]
    except (TfdeployError, OSError):
        return []
    finally:
        logging.disable(logging.NOTSET)


def _names(words: Sequence[str], begin: str) -> Iterator[str]:
    from .parser import Parser, add_common_options, command_parser

    verb = BY_NAME.get(words[0])
    if verb is None:
        return
    if begin.startswith("-"):
        yield from command_parser(verb, verb.name)[0].option_names()
        return
    complete = _OPTIONS.get(words[-1]) if len(words) > 1 else None
    if complete is None:
        complete = _ARGUMENTS.get(verb.name)
    else:
        words = words[:-1]
    if complete is not None:
        from .cluster_selection import ClusterQuery

        common = Parser(verb.name, "", add_help=False)
        add_common_options(common, ALL, verb.wide)
        given, _ = common.parse_known_args(words[1:])
        query = ClusterQuery(given.cwd, given.stack, given.cluster)
        yield from (name for name in complete(query) if name not in words)


def _hostnames(query: "ClusterQuery") -> list[str]:
    """Tasks of the selected clusters."""
    return [task.hostname for entry in _entries(query) for task in entry.expected.tasks]


def _sources(query: "ClusterQuery") -> list[str]:
    """What `cp` copies from: tasks of the selected clusters, and the runs in the records on this computer."""
    from ..agent.record.record import Record
    from ..registry import present_record, stored_records

    entries = _entries(query)
    folders = [folder for entry in entries for folder in (present_record(entry), *stored_records(entry))]
    runs = [f"run:{run_id}/" for folder in folders for run_id in Record(folder).runs()]
    return [*(f"{name}:" for name in _hostnames(query)), *runs]


def _clusters(query: "ClusterQuery") -> list[str]:
    """Clusters of the stack, or of all stacks if there is no stack."""
    from .. import registry

    return [entry.cluster["name"] for entry in _entries(query) or registry.entries()]


def _stacks(query: "ClusterQuery") -> list[str]:
    """Stacks that have clusters."""
    from .. import registry

    return [entry.cluster["stack"] for entry in registry.entries()]


def _entries(query: "ClusterQuery") -> "list[Entry]":
    from .cluster_selection import select_clusters

    with suppress(TfdeployError, OSError):
        return select_clusters(query)
    return []


Complete = Callable[["ClusterQuery"], list[str]]
_OPTIONS: dict[str, Complete] = {"--stack": _stacks, "-s": _stacks, "--cluster": _clusters, "-c": _clusters}
"""Option to what its value can be."""

_ARGUMENTS: dict[str, Complete] = {
    **dict.fromkeys(("logs", "explain", "dump", "restart", "exec", "port-forward"), _hostnames),
    "cp": _sources,
}
"""Command to what its arguments can be."""
