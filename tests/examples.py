"""Which examples property tests try: the same ones in each run, or, where the environment asks for it, random ones and more of them.

To be imported before the tests are: by the `conftest.py` of each shelf that has such tests.
"""

import os

from hypothesis import settings

RANDOM = "TFDEPLOY_TESTS_RANDOM"
"""The environment variable; pytest's option `--hypothesis-seed` says which random ones."""

USUAL = 60
"""Examples of a property in a run with the same ones."""

TIMES = 5 if os.environ.get(RANDOM) else 1
"""How many times as many are tried in this run."""

# There is no deadline, since the machine may be busy, and no database: a run does not depend on the one before.
settings.register_profile("same", max_examples=USUAL, derandomize=True, deadline=None, database=None)
# Where the environment says CI, Hypothesis would derandomise both.
settings.register_profile(
    "random", max_examples=USUAL * TIMES, derandomize=False, print_blob=True, deadline=None, database=None
)
settings.load_profile("same" if TIMES == 1 else "random")


def examples(usual: int) -> int:
    """How many examples a property tries that has another number than others; more of them where they are random."""
    return usual * TIMES
