"""The program of docs/how-to/elastic.md for tests that change its cluster: they need its steps, not the processor's whole time."""

from tests.pages import ROOT, blocks

PAGE = ROOT / "docs" / "how-to" / "elastic.md"
STEP = "        _, value = session.run([train, step])\n"
SECONDS = 0.05
"""The pause after a step of a worker."""


def paced_program() -> str:
    """The page's program, with a pause after each step, and a line for each tenth step instead of each hundredth."""
    program = next(block.text for block in blocks(PAGE, "python") if "device_filters" in block.text)
    assert STEP in program
    assert program.count("value // 100") == 2
    paced = program.replace(STEP, f"{STEP}        __import__('time').sleep({SECONDS})\n")
    return paced.replace("value // 100", "value // 10")
