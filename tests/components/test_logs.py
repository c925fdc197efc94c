"""Every byte that a task prints is in the record, and lines are shown as a terminal would show them."""

import sys

from tests.components.conftest import Standing
from tests.waiting import until

PRINTS = """
import os, sys

contents = {contents!r}
sys.stdout.buffer.write(contents[int(os.environ["TFDEPLOY_TASK_INDEX"])])
sys.stdout.flush()
"""
"""Each worker prints a content of its own."""

FLOODS = """
import time

LINES_A_SECOND, SECONDS = 10_000, 3
begin = time.monotonic()
number = 0
for step in range(SECONDS * 100):
    for _ in range(LINES_A_SECOND // 100):
        print(f"{number:08d}" + " loss 0.123456" * (number % 5), flush=True)
        number += 1
    time.sleep(max(0, begin + (step + 1) / 100 - time.monotonic()))
"""

TALKS_ON_BOTH = """
import os

for number in range(300):
    os.write(1 + number % 2, b"%d\\n" % number)
"""


def flood() -> bytes:
    """What `FLOODS` prints."""
    return b"".join(b"%08d" % number + b" loss 0.123456" * (number % 5) + b"\n" for number in range(30_000))


def test_ten_thousand_lines_a_second_lose_nothing(cluster: Standing) -> None:
    cluster.up(FLOODS, workers=1, log_lines=3)
    seen = cluster.until_state("succeeded")
    assert cluster.output("worker-0") == flood()
    assert seen.logs["worker-0"] == flood().decode().splitlines()[-3:]


def test_the_two_pipes_are_told_apart_and_shown_in_order(cluster: Standing) -> None:
    cluster.up(TALKS_ON_BOTH, workers=1, log_lines=1000)
    seen = cluster.until_state("succeeded")
    even, odd = range(0, 300, 2), range(1, 300, 2)
    assert cluster.output("worker-0").split() == [b"%d" % number for number in even]
    assert cluster.output("worker-0", "stderr").split() == [b"%d" % number for number in odd]
    shown = [int(text) for text in seen.logs["worker-0"]]
    assert [number for number in shown if number % 2] == list(odd)
    assert [number for number in shown if not number % 2] == list(even)


def test_lines_are_shown_as_a_terminal_shows_them(cluster: Standing) -> None:
    shown = {
        b"step 1\rstep 2\rstep 3\ndone\r\n": ["step 3", "done"],
        b"one\n\nthree": ["one", "", "three"],
        b"caf\xe9\n": ["caf\N{REPLACEMENT CHARACTER}"],
    }
    cluster.up(PRINTS.format(contents=[*shown]), workers=len(shown))
    logs = cluster.until_state("succeeded").logs
    assert logs == {f"worker-{index}": lines for index, lines in enumerate(shown.values())}


def test_a_line_is_in_the_record_soon_after_it_was_printed(cluster: Standing) -> None:
    cluster.up("from steps import *\nprint('hello', flush=True)\nbegin()\nwait_for('gate')", workers=1)
    cluster.until_started("worker-0")
    until(lambda: cluster.output("worker-0") == b"hello\n", "the line is in the record")


def test_as_many_last_lines_are_shown_as_asked_for(cluster: Standing) -> None:
    script = "for number in range(5): print(number)"
    cluster.up(script, workers=1)
    cluster.until_state("succeeded")
    for asked, shown in ((0, None), (2, ["3", "4"]), (100, ["0", "1", "2", "3", "4"])):
        cluster.declare(script, workers=1, log_lines=asked)
        assert cluster.look().logs.get("worker-0") == shown


def test_what_all_attempts_printed_stays_and_no_line_joins_two(cluster: Standing) -> None:
    script = "import sys\nfrom steps import begin\nn = begin()\nsys.stdout.write(f'torn {n}')\nsys.exit(n < 3)"
    cluster.up(script, workers=1, restart={"maximum": 5, "backoff": 0, "on": ["any"]})
    seen = cluster.until_state("succeeded")
    assert cluster.output("worker-0") == b"torn 1torn 2torn 3"
    assert seen.logs["worker-0"] == ["torn 1", "torn 2", "torn 3"]


def test_metrics_are_never_those_of_an_earlier_run(cluster: Standing) -> None:
    metrics = {"accuracy": r"accuracy: (\S+)", "steps": r"(\d+) steps"}
    cluster.up("print('accuracy: 0.5 after 100 steps')", workers=1, metrics=metrics)
    assert cluster.until_state("succeeded").metrics == {"accuracy": 0.5, "steps": 100.0}
    cluster.up("from steps import *\nbegin()\nwait_for('gate')\nprint('accuracy: none')", workers=1, metrics=metrics)
    cluster.until_started("worker-0")
    assert cluster.look().metrics == {"accuracy": None, "steps": None}
    cluster.open()
    cluster.until_state("succeeded")
    assert cluster.look().metrics == {"accuracy": "none", "steps": None}


def test_the_task_that_decides_has_the_last_word_on_metrics(cluster: Standing) -> None:
    script = (
        "import os\nfrom steps import *\nwait_for(hostname)\nprint('value:', 1 + (hostname == 'worker-0'))\nbegin()"
    )
    cluster.up(script, workers=2, success="worker-0", metrics={"value": r"value: (\d)"})
    cluster.open("worker-1")
    cluster.until_status("worker-1", "succeeded")
    assert cluster.look().metrics == {"value": 1.0}
    cluster.open("worker-0")
    assert cluster.until_state("succeeded").metrics == {"value": 2.0}


def test_a_program_that_is_no_python_program_is_heard_too(cluster: Standing) -> None:
    cluster.up(
        command=["/bin/sh", "-c", "echo $TFDEPLOY_HOSTNAME; exec 1>&-; echo late 1>&2", sys.executable], workers=1
    )
    cluster.until_state("succeeded")
    assert cluster.output("worker-0") == b"worker-0\n"
    assert cluster.output("worker-0", "stderr") == b"late\n"
