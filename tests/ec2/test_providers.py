"""Which of Pulumi's AWS providers creates the resources of a cluster, and in which region."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pulumi
import pulumi_aws as aws
import pytest
from pulumi.runtime import mocks

from tests.components.mocked import Recorder, run
from tests.ec2.preparing import REGION, arguments
from tfdeploy import TensorFlowCluster

pytestmark = pytest.mark.usefixtures("moto_account")

ACCOUNT, OTHER = "123456789012", "210987654321"
SENTENCE = (
    f"mnist: AWS: Pulumi's AWS provider uses the account {OTHER}, but tfdeploy's own calls use {ACCOUNT} (by the environment). "
    f"Set AWS_PROFILE, or aws:profile where the stack has one, to a profile of {OTHER}, for every command: tfdeploy itself uses no "
    "keys and no roles of a stack or a provider."
)
GLOBAL = ("aws:iam/",)
"""Resources of these types are in no region."""

OPTIONS = {
    "provider": lambda provider: pulumi.ResourceOptions(provider=provider),
    "a list": lambda provider: pulumi.ResourceOptions(providers=[provider]),
    "a mapping": lambda provider: pulumi.ResourceOptions(providers={"aws": provider}),
    "a parent": lambda provider: pulumi.ResourceOptions(
        parent=pulumi.ComponentResource("a:b:C", "c", {}, pulumi.ResourceOptions(providers=[provider]))
    ),
}


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the explicit provider answers, by function."""
    found = {
        "aws:index/getCallerIdentity:getCallerIdentity": {"accountId": ACCOUNT},
        "aws:index/getRegion:getRegion": {"region": REGION},
    }

    def call(_: Any, args: mocks.MockCallArgs) -> tuple[dict[Any, Any], list[tuple[str, str]]]:
        return found.get(args.token, {}), []

    monkeypatch.setattr("tests.components.mocked.Maker.call", call)
    return found


def aws_resources(monitor: Recorder) -> dict[str, str]:
    """The AWS resources that were registered, and their types."""
    return {
        name: kind for name, kind in monitor.maker.kinds.items() if kind.startswith("aws:") and name in monitor.inputs
    }


def declared(home: Path, option: str = "", preview: bool = False, **args: Any) -> Recorder:
    def program() -> None:
        opts = None
        if option:
            opts = OPTIONS[option](aws.Provider("mine", region=REGION, profile="ml"))
        TensorFlowCluster("mnist", {**arguments(home, **args), "wait": "0"}, opts)  # type: ignore[typeddict-item]

    return run(program, preview)


@pytest.mark.parametrize("option", OPTIONS)
def test_all_aws_resources_use_the_provider_of_the_program(
    tmp_path: Path, option: str, answers: Mapping[str, Any]
) -> None:
    monitor = declared(tmp_path, option)
    resources = aws_resources(monitor)
    assert len(set(resources.values())) >= 8
    used = {monitor.providers[name].rpartition("::")[0].rpartition("::")[2] for name in resources}
    assert used == {"mine"}


def test_without_one_the_stacks_default_provider_is_used(tmp_path: Path) -> None:
    monitor = declared(tmp_path)
    resources = aws_resources(monitor)
    assert {monitor.providers[name] for name in resources} == {""}
    assert "pulumi:providers:aws" not in monitor.maker.kinds.values()
    assert all("region" not in monitor.inputs[name] for name in resources)


def test_another_region_than_the_providers_is_an_argument_of_each_resource(
    tmp_path: Path, answers: Mapping[str, Any]
) -> None:
    for option in ("", "provider"):
        monitor = declared(tmp_path, option, ec2={"region": "us-west-1"})
        resources = aws_resources(monitor)
        regions = {name: monitor.inputs[name].get("region") for name, kind in resources.items()}
        assert {name for name, region in regions.items() if region is None} == {
            name for name, kind in resources.items() if kind.startswith(GLOBAL)
        }
        assert set(regions.values()) == {None, "us-west-1"}


def test_a_provider_of_another_account_is_refused(tmp_path: Path, answers: dict[str, Any]) -> None:
    answers["aws:index/getCallerIdentity:getCallerIdentity"] = {"accountId": OTHER}
    with pytest.raises(pulumi.RunError) as error:
        declared(tmp_path, "provider")
    assert str(error.value) == SENTENCE


def test_a_provider_that_a_preview_cannot_ask_is_refused(tmp_path: Path, answers: dict[str, Any]) -> None:
    answers.clear()
    with pytest.raises(pulumi.RunError) as error:
        declared(tmp_path, "provider", preview=True)
    assert str(error.value) == (
        "mnist: AWS: the account of the provider is not known in this preview: a resource that does not exist yet configures it. "
        "Run `pulumi up --skip-preview`, or configure the provider with plain values."
    )
