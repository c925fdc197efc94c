"""Which examples property tests try: the same ones in each run, or, where the environment asks for it, random ones and more of them.

To be imported before the tests are: by the `conftest.py` of each shelf that has such tests.
"""

import os

from hypothesis import HealthCheck, settings

RANDOM = "TFDEPLOY_TESTS_RANDOM"
"""The environment variable; pytest's option `--hypothesis-seed` says which random ones."""

USUAL = 60
"""Examples of a property in a run with the same ones."""

TIMES = 5 if os.environ.get(RANDOM) else 1
"""How many times as many are tried in this run."""

# A machine that is busy makes examples slowly: there is no deadline. Without a database a run does not depend on the one before.
settings.register_profile(
    "any",
    max_examples=USUAL * TIMES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    database=None,
)
settings.register_profile("same", settings.get_profile("any"), derandomize=True)
# Where the environment says CI, Hypothesis would derandomise both.
settings.register_profile("random", settings.get_profile("any"), derandomize=False, print_blob=True)
settings.load_profile("same" if TIMES == 1 else "random")


def examples(usual: int) -> int:
    """How many examples a property tries that has another number than others; more of them where they are random."""
    return usual * TIMES
