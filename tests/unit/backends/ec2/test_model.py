"""The addresses that stay clear of the VPC's, and the image that a type of machine gets."""

from ipaddress import IPv4Network

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.unit.backends.ec2.fleets import GPUS, GRAVITON, SMALL
from tfdeploy.backends.ec2.machine import model
from tfdeploy.backends.ec2.machine.model import InstanceType, requested_image

_PRIVATE = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "198.51.0.0/16")


def _within(block: str, bits: int, place: float) -> str:
    whole = IPv4Network(block)
    width = max(bits, whole.prefixlen)
    number = int(place * 2 ** (width - whole.prefixlen))
    return f"{whole.network_address + number * 2 ** (32 - width)}/{width}"


CIDRS = st.builds(_within, st.sampled_from(_PRIVATE), st.integers(16, 28), st.floats(0, 1, exclude_max=True))
"""What VPCs have: https://docs.aws.amazon.com/vpc/latest/userguide/vpc-cidr-blocks.html."""


def meets(pool: str, *others: str) -> bool:
    return any(IPv4Network(pool).overlaps(IPv4Network(other)) for other in others)


@given(st.lists(CIDRS, max_size=4))
@example(["10.200.0.0/16", "172.31.0.0/16", "192.168.0.0/16"])
@example(["10.199.0.0/16", "10.200.0.0/16", "172.20.0.0/16", "172.24.0.0/16"])
def test_docker_never_takes_an_address_of_the_vpc_or_one_twice_whatever_the_order(cidrs: list[str]) -> None:
    overlays, bridges = model.overlay_pool(cidrs), model.bridge_pool(cidrs)
    assert not meets(overlays, bridges, *cidrs)
    assert not meets(bridges, *cidrs)
    assert (overlays, bridges) == (model.overlay_pool(cidrs[::-1]), model.bridge_pool(cidrs[::-1]))


_ECS = "/aws/service/ecs/optimized-ami/amazon-linux-2023"
_DLAMI = "base-oss-nvidia-driver-gpu-amazon-linux-2023/latest/ami-id"


@pytest.mark.parametrize(
    ("ami", "kind", "name"),
    [
        ("", SMALL, f"{_ECS}/recommended/image_id"),
        ("", GRAVITON, f"{_ECS}/arm64/recommended/image_id"),
        ("", GPUS, f"{_ECS}/gpu/recommended/image_id"),
        ("deep-learning", GPUS, f"/aws/service/deeplearning/ami/x86_64/{_DLAMI}"),
        ("deep-learning", GRAVITON, f"/aws/service/deeplearning/ami/arm64/{_DLAMI}"),
        ("ssm:/mine/image", GPUS, "/mine/image"),
        ("ami-0a1b", GPUS, "ami-0a1b"),
    ],
)
def test_an_image_is_named_by_what_is_asked_for_and_by_the_type(ami: str, kind: InstanceType, name: str) -> None:
    assert requested_image(ami, kind) == name
