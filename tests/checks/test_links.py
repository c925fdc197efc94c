"""The pages lead to files that there are."""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = ("*.md", "docs/**/*.md", "design/*.md", "bench/*.md", "images/*.md", "programs/*/*.md", "programs/*/*/*.md")

LINK = re.compile(r"\[[^\]]*\]\(([^)\s#]+)[^)]*\)")


def broken(root: Path) -> Iterator[str]:
    """Each link of a page to a file of ours that is not there."""
    for pattern in PAGES:
        for page in sorted(root.glob(pattern)):
            for target in LINK.findall(page.read_text()):
                if "://" not in target and not (page.parent / target).exists():
                    yield f"{page.relative_to(root)}: {target}"


def test_every_link_to_a_file_leads_to_one() -> None:
    assert list(broken(ROOT)) == []


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text("[a](docs/a.md) [b](docs/b.md#there) [c](https://example.com/) [d](#here)")
    (tmp_path / "docs/a.md").write_text("[up](../README.md), [beside](c.md)")
    assert list(broken(tmp_path)) == ["README.md: docs/b.md", "docs/a.md: c.md"]
