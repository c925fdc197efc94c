"""The terminal in which Pulumi redraws its table of resources while an update runs.

Pulumi does not describe it to a program. In a terminal, the latest message on a resource is shown in the column Info of its row;
elsewhere, as in CI, Pulumi prints each message on a separate line. So the terminal is read from Pulumi's own process.
"""

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from ..units import wrapped

MIN_COLUMNS = 120
"""Pulumi's columns before Info take about 85 columns; what does not fit is cut off."""

_INDENT = 4
"""Pulumi indents messages by so many columns."""

WATCH_COMMAND = "tfdeploy status --watch"
"""Shows the progress in any terminal."""

_PULUMI = re.compile(r"\.?pulumi(-wrapped)?")
_LINE_BY_LINE = ("--diff", "--non-interactive")
"""With these options of Pulumi, each message is a line."""

_CI_VARIABLES = (
    *("APPVEYOR", "BITBUCKET_COMMIT", "BUILDKITE", "CF_BUILD_URL", "CI", "CIRCLECI", "CODEBUILD_BUILD_ARN", "DRONE"),
    *("GITHUB_ACTIONS", "GITLAB_CI", "GO_PIPELINE_LABEL", "HUDSON_URL", "JENKINS_URL", "MAGNUM", "PULUMI_CI_SYSTEM"),
    *("SEMAPHORE", "SPACELIFT_MAX_REQUESTS_BURST", "TASK_ID", "TEAMCITY_VERSION", "TF_BUILD", "TRAVIS"),
    "bamboo_planKey",
)
"""By these Pulumi recognises CI (`sdk/go/common/util/ciutil` of Pulumi 3.259), where it does not redraw even in a terminal."""

_MAX_ANCESTORS = 8
"""Between Pulumi and a program are at most the language host, a shell and the launcher of a virtual environment."""


class LiveDisplay:
    """Pulumi's display of the update that this process is part of.

    Without `/proc`, which only Linux has, and where Pulumi is not an ancestor of this process, there is none.
    """

    def __init__(self, environ: Mapping[str, str] = os.environ, pid: int | None = None) -> None:
        is_ci = not environ.get("PULUMI_DISABLE_CI_DETECTION") and any(environ.get(name) for name in _CI_VARIABLES)
        is_redrawn = environ.get("TERM") != "dumb" and not is_ci and not _is_set(environ, _LINE_BY_LINE)
        self._pulumi = _pulumi_process(os.getpid() if pid is None else pid) if is_redrawn else None

    @property
    def columns(self) -> int:
        """The present width of the terminal; 0 where Pulumi does not redraw its table."""
        if self._pulumi is None:
            return 0
        return min(_columns(self._pulumi / "fd" / number) for number in ("0", "1"))

    @property
    def text_columns(self) -> int:
        """How many columns of it a message of the program has; 0 likewise."""
        return max(0, self.columns - _INDENT)

    def fitted(self, text: str, begin: str = "") -> str:
        """A message whose words are not broken, after what Pulumi prints before it."""
        first, *rest = wrapped(f"{begin}{text}", self.text_columns)
        return "\n".join([first.removeprefix(begin), *rest])


def _is_set(environ: Mapping[str, str], options: Sequence[str]) -> bool:
    """Whether one of these options is set by its variable, such as PULUMI_OPTION_NON_INTERACTIVE."""
    names = [f"PULUMI_OPTION{option[1:].replace('-', '_').upper()}" for option in options]
    return any(environ.get(name, "false").lower() not in ("", "0", "f", "false") for name in names)


def _pulumi_process(pid: int) -> Path | None:
    """The process of Pulumi's CLI above this one, unless it prints each message on a line."""
    process = Path("/proc", str(pid))
    with suppress(OSError, ValueError, IndexError):
        for _ in range(_MAX_ANCESTORS):
            # The name, which may contain anything, is in parentheses; the parent's id is the second field after it.
            process = Path("/proc", (process / "stat").read_text().rpartition(")")[2].split()[1])
            program, *options = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
            if _PULUMI.fullmatch(Path(program).name):
                named = [option.removesuffix("=true") for option in options]
                return process if not {*named} & {*_LINE_BY_LINE} else None
    return None


def _columns(path: Path) -> int:
    """The width of a terminal; 0 if this is none, or cannot be opened."""
    with suppress(OSError):
        terminal = os.open(path, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK)
        try:
            return os.get_terminal_size(terminal).columns
        finally:
            os.close(terminal)
    return 0
