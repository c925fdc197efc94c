"""What machines cost: the table, the arithmetic, and the words."""

import re

import pytest

from tfdeploy.backends.ec2.price.prices import (
    ENDING_SECONDS,
    Amount,
    hourly_cost,
    instance_price,
    maximum_cost,
    monthly_price,
    price_table,
    storage_price,
    total,
)
from tfdeploy.units import dollars, text_of_seconds

OREGON = "us-west-2"
DAYS = 72 * 3600.0
ROOT = ("gp3", 100)
SMALL_USD = 0.1008 + 100 * 0.08 / 720 + 0.005
STRANGE_USD = SMALL_USD - 0.1008
REGIONS = ("us-east-1", "us-east-2", "us-west-2", "eu-west-1", "eu-central-1", "ap-northeast-1")


@pytest.mark.parametrize(
    ("kind", "region", "usd"),
    [
        ("m7i.large", "us-east-1", 0.1008),
        ("m7i.large", "eu-central-1", 0.12075),
        ("m7i.24xlarge", "us-east-1", 4.8384),
        ("c7g.medium", "us-east-1", 0.03625),
        ("t3.nano", "us-west-2", 0.0052),
        ("g5.xlarge", "us-west-2", 1.006),
        ("g6e.48xlarge", "us-east-1", 30.13118),
        ("p5.48xlarge", "us-east-1", 55.04),
    ],
)
def test_a_type_has_the_price_that_aws_publishes(kind: str, region: str, usd: float) -> None:
    assert instance_price(kind, region) == pytest.approx(usd, abs=1e-9)


@pytest.mark.parametrize(
    ("kind", "region"),
    [
        ("x99.large", "us-east-1"),
        ("m7i.large", "mars-north-1"),
        ("m7i.metal-24xl", "us-east-1"),
        ("m7i", "us-west-2"),
        ("g6.3xlarge", "us-east-1"),
        ("g6.xlarge", "eu-west-1"),
        ("", "us-east-1"),
        ("ipv4", "us-east-1"),
    ],
)
def test_what_the_table_lacks_is_unknown_and_never_nothing(kind: str, region: str) -> None:
    assert instance_price(kind, region) is None


def test_the_table_is_dated_and_has_no_price_of_nothing() -> None:
    assert re.fullmatch(r"20\d\d-[01]\d-[0-3]\d", price_table().date)
    assert {region for row in price_table().rows.values() for region in row} == set(REGIONS)
    assert all(usd > 0 for row in price_table().rows.values() for usd in row.values())
    assert all(set(price_table().rows[what]) == set(REGIONS) for what in ("ebs gp3", "ebs gp2", "ipv4", "efs", "s3"))


def test_no_region_is_cheaper_or_dearer_than_can_be() -> None:
    """A slipped digit would be: AWS's regions differ from the first one by less than half."""
    for what, row in price_table().rows.items():
        assert all(0.99 <= usd / row["us-east-1"] <= 1.5 for usd in row.values()), what


def test_a_machine_costs_itself_its_disks_and_its_address() -> None:
    assert hourly_cost("m7i.large", OREGON, disks=[ROOT]).usd == pytest.approx(SMALL_USD)
    assert hourly_cost("m7i.large", OREGON, public_ip=False) == Amount(0.1008)
    assert storage_price("ebs gp3", 720, OREGON) == pytest.approx(0.08)
    assert storage_price("ebs io2", 720, OREGON) is None


def test_spot_counts_as_on_demand_and_is_said_to_be_the_most() -> None:
    found = hourly_cost("m7i.large", OREGON, spot=True, disks=[ROOT])
    assert found.usd == pytest.approx(SMALL_USD)
    assert found.is_maximum
    assert found.text("/h") == "at most $0.12/h"


def test_what_is_unknown_is_said_beside_what_is_known() -> None:
    known, strange = (hourly_cost(kind, OREGON, disks=[ROOT]) for kind in ("m7i.large", "x99.large"))
    found = total([known, strange])
    assert found.usd == pytest.approx(SMALL_USD + STRANGE_USD)
    assert found.known is None
    assert found.text("/h") == "at least $0.13/h, plus 1 machine with unknown prices (x99.large)"
    three = total([strange, strange, hourly_cost("m7i.large", OREGON, disks=[("io2", 9)])])
    assert three.text("/h").endswith("/h, plus 3 machines with unknown prices (io2 disk, x99.large)")


def test_where_some_is_the_most_and_some_unknown_no_bound_is_claimed() -> None:
    found = Amount(1.23, ("x99.large",), is_maximum=True)
    assert found.text() == "$1.23, plus 1 machine with unknown prices (x99.large)"


def test_of_a_region_without_prices_nothing_is_known() -> None:
    found = hourly_cost("m7i.large", "mars-north-1", disks=[ROOT])
    assert found == Amount(0, ("m7i.large and gp3 disk and public address",))
    assert monthly_price("s3", "mars-north-1") == "price unknown"


def test_the_maximum_has_the_time_that_the_end_takes() -> None:
    assert maximum_cost(Amount(1.0), DAYS) == Amount(72 + ENDING_SECONDS / 3600)
    assert maximum_cost(Amount(1.0), 0.0) is None


@pytest.mark.parametrize(
    ("usd", "text"),
    [
        (0, "$0.00"),
        (0.00001, "less than $0.0001"),
        (0.0052, "$0.0052"),
        (0.05, "$0.05"),
        (0.0999999, "$0.10"),
        (0.3, "$0.30"),
        (1.234, "$1.23"),
        (1234.5, "$1,234.50"),
    ],
)
def test_an_amount_has_as_many_digits_as_say_something(usd: float, text: str) -> None:
    assert dollars(usd) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0s"), (90, "1m30s"), (900, "15m"), (5_400, "1h30m"), (259_200, "72h"), (3_601, "1h1s")]
)
def test_a_duration_reads_as_it_is_asked_for(seconds: float, text: str) -> None:
    assert text_of_seconds(seconds) == text
