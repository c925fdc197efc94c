"""What a preview prints of a plan: its summary, and its consequences for what exists."""

from typing import Any

from tests.unit.backends.docker.test_planner import change_lines
from tests.unit.backends.ec2 import fleets
from tests.unit.cases import BOX, plan
from tests.unit.plan.test_plan import AWAY, BASE, ON_AWAY, changes, job, standing_plan
from tests.unit.snapshots import case, section
from tfdeploy.agent.model.run_state import RunState
from tfdeploy.plan.plan import Plan
from tfdeploy.plan.retained_data import RetainedData, lines

PLANS: dict[str, Plan] = {
    "one machine": plan(ps=1, workers=2),
    "servers": plan(standalone_servers=True, ps=1, workers=2),
    "a chief": plan(chief=1, workers=1),
    "many workers": plan(workers=6, worker_timeout="5m"),
    "a metric may end it earlier": plan(
        workers=2, metrics={"loss": "l", "acc": "a"}, until={"loss": "<1", "acc": ">= 0.95"}
    ),
    "elastic": plan(ps=1, workers=2, elastic={"max": 8}),
    "all workers decide": plan(chief=1, workers=2, success="all-workers"),
    "two machines": standing_plan([BOX, AWAY], ON_AWAY, workers=2, placement=["hostname:UNIQUE"]),
    "on ec2": fleets.plan(ps=1, workers=2),
}

BEFORE: dict[str, RunState | None] = {
    "nothing exists": None,
    "nothing changes": job(**BASE),
    "one worker more": job(ps=1, workers=1),
    "a chief goes": job(chief=1, workers=2),
    "fewer workers, finished": job(decided=True, ps=1, workers=3),
    "another run": job(**BASE, run_id="earlier"),
    "TensorBoard goes": job(**BASE, tensorboard=True),
}

SERVICES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "image": ({"image": "mine:2"}, {}),
    "user and cpus": ({"user": "0"}, {"jobs": {"worker": {"cpus": 2}}}),
    "network": ({"network": "host"}, {}),
}

RETAINED: dict[str, tuple[RetainedData, ...]] = {
    "nothing is known": (),
    "all is kept": (
        RetainedData("record", "/home/ada/.local/state/tfdeploy/retained/mnist-0123456789", True, 12 << 20),
        RetainedData("checkpoints", "s3://bucket/mnist", True),
    ),
    "a part is removed": (
        RetainedData("record", "s3://records/mnist-0123456789", True),
        RetainedData("checkpoints", "volume mnist-0123456789-train on box", False, 3 << 30),
        RetainedData("disk", "100 GiB on mnist-worker-m0", False),
    ),
}


def preview() -> str:
    changed = {title: changes(before, **BASE) for title, before in BEFORE.items()}
    services = {title: change_lines(container, **args) for title, (container, args) in SERVICES.items()}
    retained = {title: lines(data) for title, data in RETAINED.items()}
    return "\n".join(
        [
            section("plans", [case(title, _summary(made)) for title, made in PLANS.items()]),
            section("what changes", [case(title, "\n".join(rows)) for title, rows in changed.items()]),
            section("what changes in containers", [case(title, "\n".join(rows)) for title, rows in services.items()]),
            section("what destroy keeps", [case(title, "\n".join(rows)) for title, rows in retained.items()]),
        ]
    )


def _summary(made: Plan) -> str:
    return "\n".join(
        [made.summary, made.success_rule, *made.placement, *(f"warning: {text}" for text in made.warnings)]
    )
