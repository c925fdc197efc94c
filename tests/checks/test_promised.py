"""What each version since 1.0.0 offers, later ones of the same major version offer too (docs/versions.md)."""

import re
import sys
from pathlib import Path

import pytest

from tools.reference import COMMAND, JSON, TARGET

VERSIONS = sorted((Path(__file__).parent / "promised").glob("*.txt"))


def offered() -> list[str]:
    """The arguments, outputs, options and members of documents, with their types, as the generated pages list them."""
    found = []
    for page in (TARGET, COMMAND, JSON):
        title = ""
        for line in page.read_text().splitlines():
            if heading := re.match(r"#+ (.*)", line):
                title = heading[1].replace("`", "")
            elif item := re.match(r"- (`[^`]+`(?: \([^)]*\))?)", line):
                names = re.findall(r"--[a-z-]+|\B-\w", item[1]) if page == COMMAND else []
                found += [f"{page.stem}: {title}: {name}".replace("`", "") for name in names or [item[1]]]
    return [*dict.fromkeys(found)]


@pytest.mark.parametrize("file", VERSIONS, ids=lambda file: file.stem)
def test_nothing_that_a_version_offers_is_missing_or_has_another_type(file: Path) -> None:
    assert sorted({*file.read_text().splitlines()} - {*offered()}) == []


if __name__ == "__main__":
    Path(sys.argv[1]).write_text("\n".join(offered()) + "\n")
