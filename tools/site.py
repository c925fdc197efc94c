"""Builds a site from the pages with mkdocs-material: `python -m tools.site [FOLDER]`. A link that leads nowhere is an error."""

import os
import re
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

ROOT = Path(__file__).parent.parent
CONFIG = ROOT / "docs" / "mkdocs.yml"
TARGET = ROOT / "build" / "site"

PAGES = ("*.md", "docs/**/*.md", "design/*.md", "bench/*.md", "images/*.md", "programs/**/README.md")
_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")


def assemble(sources: Path, root: Path = ROOT) -> None:
    """Copy the pages, and the files to which they link, into a folder, with the links that a site can have."""
    for page in (page for pattern in PAGES for page in sorted(root.glob(pattern))):
        target = sources / page.relative_to(root)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(_LINK.sub(partial(_linked, page=page, sources=sources, root=root), page.read_text()))
    for picture in root.glob("docs/pictures/*"):
        target = sources / picture.relative_to(root)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(picture, target)


def _linked(match: re.Match[str], page: Path, sources: Path, root: Path) -> str:
    """A link as the site has it: a folder is its README or only its name, another file is copied."""
    text, path, anchor = match[1], match[2], match[3] or ""
    target = Path(os.path.normpath(page.parent / path))
    if "://" in path or not target.is_relative_to(root) or not target.exists():
        return match[0]
    if target.is_dir():
        return f"[{text}]({path.rstrip('/')}/README.md)" if (target / "README.md").exists() else text
    if target.suffix != ".md":
        copy = sources / target.relative_to(root)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(target, copy)
    return f"[{text}]({path}{anchor})"


def build(target: Path, root: Path = ROOT) -> int:
    """Build the site into a folder; the exit code of mkdocs."""
    sources = target.with_name(f"{target.name}-sources")
    shutil.rmtree(sources, ignore_errors=True)
    assemble(sources / "pages", root)
    config = sources / "mkdocs.yml"
    config.write_text(CONFIG.read_text())
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", f"--config-file={config}", f"--site-dir={target}"]
    done = subprocess.run(command, check=False, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})
    shutil.rmtree(sources)
    return done.returncode


if __name__ == "__main__":
    sys.exit(build(Path(sys.argv[1]).absolute() if len(sys.argv) > 1 else TARGET))
