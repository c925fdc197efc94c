"""What each version since 1.0.0 offers, later ones of the same major version offer too (docs/versions.md)."""

import re
import sys
from pathlib import Path

import pytest

import tfdeploy
from tools.reference import COMMAND, JSON, TARGET

VERSIONS = sorted((Path(__file__).parent / "promised").glob("*.txt"))

_ITEM = re.compile(r"- ((?:`[^`]+`(?:, )?)+)(?: \((.*?)\))?[^:`]*: ")
"""The names of an item, and its type and default; names with the same text share one item."""

_DIGEST = re.compile(r"@sha256:\w+")
"""Which build of an image is the default may change."""

_EXIT_CODE = re.compile(r"\| (\d+) \|")


def offered() -> list[str]:
    """What can be imported; the arguments, outputs, options, members of documents, variables of a task, and exit codes, with types
    and defaults, as the generated pages list them."""
    found = [f"tfdeploy: {name}" for name in tfdeploy.__all__]
    for page in (TARGET, COMMAND, JSON):
        title = ""
        for line in page.read_text().replace("\n  ", " ").splitlines():
            if heading := re.match(r"#+ (.*)", line):
                title = heading[1].replace("`", "")
            elif code := _EXIT_CODE.match(line):
                found.append(f"{page.stem}: {title}: {code[1]}")
            elif item := _ITEM.match(line):
                about = f" ({_DIGEST.sub('', item[2]).replace('`', '')})" if item[2] else ""
                names = ", ".join(re.findall("`(.+?)`", item[1])).split(", ")
                found += [f"{page.stem}: {title}: {_word(name)}{about}" for name in names]
    return [*dict.fromkeys(found)]


def _word(name: str) -> str:
    """An option without the names of its values."""
    return name.split()[0] if name.startswith("-") else name


@pytest.mark.parametrize("file", VERSIONS, ids=lambda file: file.stem)
def test_nothing_that_a_version_offers_is_missing_or_has_another_type(file: Path) -> None:
    assert sorted({*file.read_text().splitlines()} - {*offered()}) == []


if __name__ == "__main__":
    Path(sys.argv[1]).write_text("\n".join(offered()) + "\n")
