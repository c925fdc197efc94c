"""`docs/limits.md` is the one page that lists what was tested and what was not."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
LIMITS = (ROOT / "docs" / "limits.md").read_text()

UNTESTED = (
    "AWS itself",
    "GPUs",
    "Docker 25 and later, cgroup v2, rootless",
    "Pulumi's present Python language host",
    "macOS",
    "HDFS",
    "gs://",
    "ECR",
)
"""What no test could reach."""

COPY = re.compile(r"\bnot (?:been )?tried\b|\bnever been run\b|\bnot tested\b|does not prove", re.IGNORECASE)
"""How such a list begins."""


def section(title: str) -> str:
    """The text below a heading of the page."""
    return LIMITS.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


@pytest.mark.parametrize("title", ["Tested", "Tested in emulation", "Untested", "By design"])
def test_the_page_has_each_grade(title: str) -> None:
    assert section(title).count("\n| ") > 2 or title == "By design"
    assert section(title)


@pytest.mark.parametrize("name", UNTESTED)
def test_what_no_test_could_reach_is_named(name: str) -> None:
    assert name in section("Untested")


def test_other_pages_link_to_it_and_have_no_list() -> None:
    pages = [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("images/*.md"), *ROOT.glob("programs/**/*.md")]
    copies = [
        f"{page.relative_to(ROOT)}: {line.strip()[:80]}"
        for page in pages
        if page.name not in ("limits.md", "features.md") and "decisions" not in page.parts
        for line in page.read_text().splitlines()
        if COPY.search(line) and "limits.md" not in line
    ]
    assert copies == []
