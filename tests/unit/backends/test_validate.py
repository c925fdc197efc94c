"""What every backend refuses of a plan."""

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.cases import BOX, inventory, spec
from tfdeploy.backends.validate import refuse_elastic_on_machines, refuse_same_ports
from tfdeploy.errors import SpecError
from tfdeploy.plan.plan import make_plan


def test_in_the_network_of_several_machines_no_worker_can_be_added() -> None:
    asked = spec(ps=1, workers=2, elastic={"max": 4}, container={"network": "host"})
    refuse_elastic_on_machines(asked, make_plan(asked, inventory(asked)))
    machines = (BOX, replace(BOX, name="other"))
    with pytest.raises(SpecError) as error:
        refuse_elastic_on_machines(asked, make_plan(asked, inventory(asked, *machines)))
    assert error.value.where == "mnist: elastic"
    fixed = spec(ps=1, workers=2, container={"network": "host"})
    refuse_elastic_on_machines(fixed, make_plan(fixed, inventory(fixed, *machines)))


def test_two_tasks_of_a_machine_have_different_ports_also_workers_that_do_not_exist_yet() -> None:
    def check(ps_port: int, **args: Any) -> None:
        jobs = {"worker": {"port": 25_000}, "ps": {"port": ps_port}}
        asked = spec(ps=1, workers=2, jobs=jobs, **args)
        refuse_same_ports(make_plan(asked, inventory(asked)))

    check(25_003)
    check(25_004, elastic={"max": 4})
    with pytest.raises(SpecError, match="ps-0 and worker-3 would use port 25003 on box"):
        check(25_003, elastic={"max": 4})
    with pytest.raises(SpecError, match="ps-0 and worker-1 would use port 25001 on box"):
        check(25_001)
