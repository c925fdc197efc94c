"""Has each Python process count what it does: `tests.counting`."""

from tests.counting import count_this_process

count_this_process()
