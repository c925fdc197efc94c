"""`python -m tests.chaos`: trainings under random faults, and what must be true after each of them.

The same seed and number of a round draw the same faults. `--first 17 --rounds 1` replays round 17 alone.
"""

import argparse
import signal
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.artefacts import artefacts
from tests.chaos.disk import in_namespace
from tests.chaos.rounds import BACKENDS, Log, play


def main() -> int:
    """Play rounds; the exit code is 1 when an invariant was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--backend", choices=sorted(BACKENDS), default="local")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=1, metavar="N", help="the number of the first round")
    parser.add_argument("--rounds", type=int, default=10, metavar="N", help="how many rounds")
    parser.add_argument("--log", type=Path, help="a file for steps and results, JSON lines")
    arguments = parser.parse_args()
    in_namespace("tests.chaos", sys.argv[1:])
    # Whoever ends this process early leaves nothing either.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    name = f"chaos-{arguments.backend}-{arguments.seed}-{arguments.first}.jsonl"
    log = Log(arguments.log or artefacts() / name)
    with TemporaryDirectory(prefix="tfdeploy-chaos-", ignore_cleanup_errors=True) as folder:
        numbers = range(arguments.first, arguments.first + arguments.rounds)
        return play(arguments.backend, arguments.seed, numbers, Path(folder), log)


if __name__ == "__main__":
    sys.exit(main())
