"""What the training of `programs/data_service` prints of its epochs."""

import re

MOST_LOST = 50
"""At most so many elements are lost with a data worker that is killed: those that it had begun."""
IN_ANSWERS = 2
"""At most so many are lost with the dispatcher: one for each of two data workers, which is in the journal and was not sent."""


def epochs_in(output: str) -> dict[int, tuple[int, int]]:
    """Number to elements and different elements of the epochs that have ended."""
    lines = re.findall(r"^epoch (\d+): (\d+) elements, (\d+) different", output, re.MULTILINE)
    return {int(number): (int(elements), int(different)) for number, elements, different in lines}
