"""The pictures of README and docs, from a real run: `make pictures` trains MNIST in a terminal and writes docs/pictures."""

import json
import re
import shutil
import tempfile
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

from tests.cli.browser import browser
from tests.integration.conftest import ROOT, Project
from tests.verbs import COMMAND, Terminal

PICTURES = ROOT / "docs" / "pictures"
UP, STATUS = PICTURES / "up.svg", PICTURES / "status.svg"
PAGES = {False: PICTURES / "report-light.png", True: PICTURES / "report-dark.png"}
"""The page of `tfdeploy report`, by whether it is dark."""

UP_SIZE, STATUS_SIZE = (60, 152), (24, 100)
"""Rows and columns of the terminals."""

PAGE_SIZE = (1100, 860)

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_MOVEMENT = re.compile(r"\x1b\[[0-9;?]*[A-LN-Za-ln-z]|\x1b\]\S*?(?:\x07|\x1b\\)|\r")
_UP = re.compile(r"\x1b\[\d+A")
_SVG_FORMAT = re.sub(r"    @font-face .*?\}\}\n", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)


def mnist_project(folder: Path, *flags: str, stack: str = "test") -> Project:
    """The repository's own program, in a copy, with a state of its own; its tasks have these flags besides."""
    project = Project(folder, "mnist")
    project.stack = stack
    shutil.copy(ROOT / "Pulumi.yaml", project.program)
    shutil.copytree(ROOT / "programs/mnist", project.program / "programs/mnist")
    program = project.program / "programs/mnist/__main__.py"
    program.write_text(
        program.read_text().replace('"train.py"]', f"{', '.join(map(json.dumps, ('train.py', *flags)))}]")
    )
    project.init()
    return project


def terminal_svg(text: str, columns: int, title: str) -> str:
    """A terminal with this text as an SVG, which loads nothing."""
    console = Console(record=True, width=columns, file=StringIO(), force_terminal=True, color_system="256")
    console.print(Text.from_ansi(text), soft_wrap=False, overflow="fold")
    svg = console.export_svg(title=title, code_format=_SVG_FORMAT, unique_id=title.replace(" ", "-"))
    return re.sub(r">\n\s*(?=<rect|</clipPath)", ">", svg)


def frames(said: str) -> Iterator[str]:
    """Each state of Pulumi's table while it updates, with colours."""
    for frame in _UP.split(said.partition("Updating (")[2]):
        table = _MOVEMENT.sub("", frame).partition("Diagnostics:")[0]
        yield "\n".join(line.rstrip() for line in table.splitlines() if line.strip() and "…" not in line)


def update_text(said: str) -> str:
    """What the picture of `pulumi up` shows: a moment of the training, and the end."""
    moments = [frame for frame in frames(said) if len(re.findall(r"worker-\d .* left ", _COLOUR.sub("", frame))) > 1]
    rows = [line for line in moments[len(moments) * 2 // 3].splitlines() if "Updating" not in line]
    table = "\n".join(rows[next(place for place, line in enumerate(rows) if "Type" in line) :])
    end = _MOVEMENT.sub("", said.rpartition("Diagnostics:")[2].partition("MACHINE ")[2]).rstrip()
    return f"$ pulumi up\n\n{table}\n\n    MACHINE {end}\n"


def trained_update(project: Project) -> str:
    """What `pulumi up` prints in a terminal."""
    env = {**project.env, "TERM": "xterm-256color", "PULUMI_DISABLE_CI_DETECTION": "1"}
    project.use_plain_python()
    update = Terminal(["pulumi", "up", "--yes", "--stack", project.stack], project.program, env, UP_SIZE)
    assert update.end() == 0, update.said
    return update.said


def status_text(project: Project) -> str:
    """What `tfdeploy status` prints in a terminal."""
    env = {**project.env, "TERM": "xterm-256color"}
    terminal = Terminal([COMMAND, "status"], project.program, env, STATUS_SIZE)
    assert terminal.end() == 0, terminal.said
    return f"$ tfdeploy status\n{_MOVEMENT.sub('', terminal.said).rstrip()}\n"


def take_pages(page: Path) -> None:
    """Take the pictures of the top of a page of `tfdeploy report`."""
    with browser() as chromium:
        for dark, path in PAGES.items():
            tab = chromium.open(page.as_uri(), PAGE_SIZE[0], dark, PAGE_SIZE[1])
            path.write_bytes(tab.shot(PAGE_SIZE))
            tab.close()


def report_page(project: Project) -> Path:
    """The page of the cluster."""
    page = project.folder / "mnist.html"
    project.tfdeploy("report", "--save", str(page))
    return page


def main() -> None:
    """Train MNIST, and write all pictures."""
    with tempfile.TemporaryDirectory(prefix="tfdeploy-pictures-") as folder:
        project = mnist_project(Path(folder) / "mnist", stack="dev")
        try:
            PICTURES.mkdir(exist_ok=True)
            UP.write_text(terminal_svg(update_text(trained_update(project)), UP_SIZE[1], "pulumi up"))
            STATUS.write_text(terminal_svg(status_text(project), STATUS_SIZE[1], "tfdeploy status"))
            take_pages(report_page(project))
            project.destroy()
        finally:
            project.clean()


if __name__ == "__main__":
    main()
