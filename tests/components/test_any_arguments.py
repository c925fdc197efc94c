"""Whatever arguments are accepted, the cluster that they ask for runs to its end."""

import itertools
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.components.conftest import Standing
from tfdeploy.errors import SpecError
from tfdeploy.spec.cluster import cluster_spec

SCRIPT = """
import json, os, time
json.loads(os.environ["TF_CONFIG"]), json.loads(os.environ["TFDEPLOY_CONTEXT"])
while os.environ["TFDEPLOY_JOB_NAME"] == "ps":
    time.sleep(1)
"""

NUMBERS = itertools.count()
JSON = st.recursive(st.none() | st.booleans() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=2))
ARGUMENTS = st.fixed_dictionaries(
    {"ps": st.integers(-1, 2), "workers": st.integers(-1, 2)},
    optional={
        "chief": st.integers(0, 2),
        "evaluator": st.integers(0, 1),
        "success": st.sampled_from(["chief", "worker-0", "all-workers", "none"]),
        "env": st.dictionaries(st.sampled_from(["A", "b_1", "C%S", "TF_CONFIG"]), st.text(max_size=20)),
        "context": st.dictionaries(st.text(max_size=5), JSON, max_size=2),
        "metrics": st.dictionaries(st.text(max_size=5), st.sampled_from(["a(b)", "(", r"\S+"]), max_size=2),
        "restart": st.fixed_dictionaries({}, optional={"maximum": st.integers(-1, 3), "on": st.just(["any"])}),
        "jobs": st.dictionaries(st.sampled_from(["ps", "worker"]), st.just({"cpus": 0.1, "memory": "1GiB"})),
        "run_id": st.text(max_size=10),
        "log_lines": st.integers(-1, 3),
    },
)


def accepted(arguments: dict[str, Any]) -> bool:
    """Whether a cluster may be asked for like this."""
    try:
        cluster_spec("any", {"command": ["python"], **arguments})
    except SpecError:
        return False
    return True


@settings(max_examples=6, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
@given(arguments=ARGUMENTS.filter(accepted))
def test_accepted_arguments_run_to_the_end(clusters: Callable[[str], Standing], arguments: dict[str, Any]) -> None:
    standing = clusters(f"any-{next(NUMBERS)}")
    standing.up(SCRIPT, **arguments)
    seen = standing.until_state("succeeded")
    assert {row["status"] for row in seen.tasks} <= {"succeeded", "stopped (run finished)"}
    standing.clear()
