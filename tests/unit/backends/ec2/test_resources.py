"""What Pulumi is asked for, and what is said when its provider fails."""

from dataclasses import replace
from typing import Any, cast

import pulumi
import pulumi_aws as aws
import pytest

from tests.unit.backends.ec2.fleets import CLUSTER, PAIR, PS, WORKER, plan, spec
from tests.unit.backends.ec2.s3 import REGION
from tfdeploy.backends.ec2 import resources
from tfdeploy.backends.ec2.machine.model import MachineState, ec2_machine
from tfdeploy.backends.ec2.resources import ResourceContext, _instance


def options(monkeypatch: pytest.MonkeyPatch, *there: MachineState) -> pulumi.ResourceOptions:
    """The options of the worker's machine, of a cluster whose run is open; these machines exist."""
    asked: list[pulumi.ResourceOptions] = []
    monkeypatch.setattr(resources, "_boot_script", lambda *_: "")
    monkeypatch.setattr(aws.ec2, "Instance", lambda *_, opts, **__: asked.append(opts))
    made, nothing = plan(*there, **PAIR), pulumi.ResourceOptions()
    planned = {machine.name: ec2_machine(machine) for machine in made.machines}
    context = ResourceContext("mnist", CLUSTER, spec(**PAIR), planned, None, nothing, run_is_open=True)
    key, group = cast(Any, "a-key"), cast(Any, "sg")
    _instance(context, ec2_machine(made.machines[1]), key, group, "", "")
    return asked[0]


def test_a_machine_that_stays_is_not_replaced_by_another_key_pair_or_tag(monkeypatch: pytest.MonkeyPatch) -> None:
    opts = options(monkeypatch, PS, WORKER)
    assert opts.ignore_changes == ["userData", "ebsBlockDevices", "keyName"]
    assert opts.replacement_trigger is None
    for there in ([PS], [PS, replace(WORKER, spot=True)]):  # one that cannot stay gets the present key pair
        assert not options(monkeypatch, *there).ignore_changes


def test_an_error_of_pulumis_provider_gets_a_remedy() -> None:
    text = "creating EC2 Instance: operation error EC2: RunInstances, RequestID: 1, api error {}: no"

    def explanation(name: str, error: str) -> str:
        return resources.explanation(REGION, ["mnist-ps-m0"], name, error)

    said = explanation("mnist-group", text.format("RulesPerSecurityGroupLimitExceeded"))
    assert said.startswith(
        "mnist-group: AWS: An error occurred (RulesPerSecurityGroupLimitExceeded) when calling the RunInstances operation: no"
    )
    refused = text.format("InsufficientInstanceCapacity")
    assert "Choose another ec2.instance_type or ec2.subnet_id" in explanation("mnist-ps-m0", refused)
    profile = text.format("InvalidParameterValue") + "Invalid IAM Instance Profile name"
    assert "Run `pulumi up --refresh`" in explanation("mnist-ps-m0", profile)
    assert explanation("mnist-group", "timeout while waiting for a state") == ""
    assert explanation("mnist-group", text.format("InternalError")) == ""
