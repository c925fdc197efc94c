"""What Pulumi is asked for, for a machine that exists and for one that does not."""

from dataclasses import replace
from typing import Any, cast

import pulumi
import pulumi_aws as aws
import pytest

from tests.unit.backends.ec2.fleets import CLUSTER, instance, plan, spec
from tfdeploy.backends.ec2 import resources
from tfdeploy.backends.ec2.machine.model import MachineState, ec2_machine
from tfdeploy.backends.ec2.resources import ResourceContext, _instance

PAIR: dict[str, Any] = {"ps": 1, "workers": 1}
PS, WORKER = instance("mnist-ps-m0", is_manager=True), instance("mnist-worker-m0")


def options(monkeypatch: pytest.MonkeyPatch, *there: MachineState) -> pulumi.ResourceOptions:
    """The options of the worker's machine, of a cluster whose run is open; these machines exist."""
    asked: list[pulumi.ResourceOptions] = []
    monkeypatch.setattr(resources, "_boot_script", lambda *_: "")
    monkeypatch.setattr(aws.ec2, "Instance", lambda *_, opts, **__: asked.append(opts))
    made, nothing = plan(*there, **PAIR), pulumi.ResourceOptions()
    planned = {machine.name: ec2_machine(machine) for machine in made.machines}
    context = ResourceContext("mnist", CLUSTER, spec(**PAIR), planned, None, nothing, run_is_open=True)
    _instance(
        context,
        ec2_machine(made.machines[1]),
        cast(Any, "a-key"),
        cast(Any, "sg"),
        "",
        "",
    )
    return asked[0]


def test_a_machine_that_stays_is_not_replaced_by_another_key_pair_or_tag(monkeypatch: pytest.MonkeyPatch) -> None:
    opts = options(monkeypatch, PS, WORKER)
    assert opts.ignore_changes == ["userData", "ebsBlockDevices", "keyName"]
    assert opts.replacement_trigger is None


def test_a_machine_that_cannot_stay_gets_the_present_key_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not options(monkeypatch, PS).ignore_changes
    assert not options(monkeypatch, PS, replace(WORKER, spot=True)).ignore_changes
