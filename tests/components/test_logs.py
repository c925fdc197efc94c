"""Every byte that a task prints is in the record, and lines are shown as a terminal would show them."""

from tests.components.conftest import Standing

TALKS_ON_BOTH = """
import os

for number in range(300):
    os.write(1 + number % 2, b"%d\\n" % number)
"""


def test_the_two_pipes_are_told_apart_and_shown_in_order(cluster: Standing) -> None:
    cluster.up(TALKS_ON_BOTH, workers=1, log_lines=1000)
    seen = cluster.until_state("succeeded")
    even, odd = range(0, 300, 2), range(1, 300, 2)
    assert cluster.output("worker-0").split() == [b"%d" % number for number in even]
    assert cluster.output("worker-0", "stderr").split() == [b"%d" % number for number in odd]
    shown = [int(text) for text in seen.logs["worker-0"]]
    assert [number for number in shown if number % 2] == list(odd)
    assert [number for number in shown if not number % 2] == list(even)


def test_metrics_are_never_those_of_an_earlier_run(cluster: Standing) -> None:
    metrics = {"accuracy": r"accuracy: (\S+)", "steps": r"(\d+) steps"}
    cluster.up("print('accuracy: 0.5 after 100 steps')", workers=1, metrics=metrics)
    assert cluster.until_state("succeeded").metrics == {"accuracy": 0.5, "steps": 100.0}
    cluster.up("from steps import *\nbegin()\nwait_for('gate')\nprint('accuracy: none')", workers=1, metrics=metrics)
    cluster.until_started("worker-0")
    assert cluster.look().metrics == {"accuracy": None, "steps": None}
    cluster.finish()
    assert cluster.look().metrics == {"accuracy": "none", "steps": None}
