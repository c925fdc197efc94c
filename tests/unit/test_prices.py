"""What machines cost: the table, the arithmetic, the words, and the budget."""

import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdeploy.ec2.prices import (
    ENDING_SECONDS,
    Amount,
    Disk,
    Rented,
    after,
    beyond,
    maximum,
    of_disk,
    of_type,
    over,
    per_hour,
    sentence,
    table,
    total,
)
from tfdeploy.quantities import dollars, text_of_seconds

OREGON = "us-west-2"
DAYS = 72 * 3600.0
ROOT = Disk("gp3", 100)
SMALL = Rented("m7i.large", disks=(ROOT,))
SMALL_USD = 0.1008 + 100 * 0.08 / 720 + 0.005
STRANGE = Rented("x99.large", disks=(ROOT,))
STRANGE_USD = SMALL_USD - 0.1008
REGIONS = ("us-east-1", "us-east-2", "us-west-2", "eu-west-1", "eu-central-1", "ap-northeast-1")


@pytest.mark.parametrize(
    ("kind", "region", "usd"),
    [
        ("m7i.large", "us-east-1", 0.1008),
        ("m7i.large", "eu-central-1", 0.12075),
        ("m7i.24xlarge", "us-east-1", 4.8384),
        ("c7i.large", "us-east-2", 0.08925),
        ("c7g.medium", "us-east-1", 0.03625),
        ("t3.nano", "us-west-2", 0.0052),
        ("r5.12xlarge", "eu-west-1", 3.384),
        ("g4dn.xlarge", "us-east-1", 0.526),
        ("g5.xlarge", "us-west-2", 1.006),
        ("g6.xlarge", "us-east-1", 0.8048),
        ("g6e.48xlarge", "us-east-1", 30.13118),
        ("p5.48xlarge", "us-east-1", 55.04),
    ],
)
def test_a_type_has_the_price_that_aws_publishes(kind: str, region: str, usd: float) -> None:
    assert of_type(kind, region) == pytest.approx(usd, abs=1e-9)


@pytest.mark.parametrize(
    ("kind", "region"),
    [
        ("x99.large", "us-east-1"),
        ("m7i.large", "mars-north-1"),
        ("m7i.metal-24xl", "us-east-1"),
        ("m7i", "us-west-2"),
        ("g6", "us-east-1"),
        ("g6.3xlarge", "us-east-1"),
        ("g6.xlarge", "eu-west-1"),
        ("efs", "us-east-1x"),
        ("", "us-east-1"),
        ("ipv4", "us-east-1"),
    ],
)
def test_what_the_table_lacks_is_unknown_and_never_nothing(kind: str, region: str) -> None:
    assert of_type(kind, region) is None


def test_the_table_is_dated_and_has_no_price_of_nothing() -> None:
    assert re.fullmatch(r"20\d\d-[01]\d-[0-3]\d", table().at)
    assert {region for row in table().rows.values() for region in row} == set(REGIONS)
    assert all(usd > 0 for row in table().rows.values() for usd in row.values())
    assert all(set(table().rows[what]) == set(REGIONS) for what in ("ebs gp3", "ebs gp2", "ipv4", "efs", "s3"))


def test_no_region_is_cheaper_or_dearer_than_can_be() -> None:
    """A slipped digit would be: AWS's regions differ from the first one by less than half."""
    for what, row in table().rows.items():
        assert all(0.99 <= usd / row["us-east-1"] <= 1.5 for usd in row.values()), what


def test_the_table_is_read_only_when_it_is_asked_for() -> None:
    """`import tfdeploy` stays quick."""
    script = "import sys, tfdeploy; print([name for name in sys.modules if name.startswith('tfdeploy.ec2')])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_machine_costs_itself_its_disks_and_its_address() -> None:
    assert per_hour(SMALL, OREGON).usd == pytest.approx(SMALL_USD)
    assert per_hour(Rented("m7i.large", public_ip=False), OREGON) == Amount(0.1008)
    assert of_disk(Disk("gp3", 720), OREGON) == pytest.approx(0.08)
    assert of_disk(Disk("io2", 720), OREGON) is None


def test_spot_counts_as_on_demand_and_is_said_to_be_the_most() -> None:
    found = per_hour(Rented("m7i.large", True, (ROOT,)), OREGON)
    assert found.usd == pytest.approx(SMALL_USD)
    assert found.most
    assert found.text("/h") == "at most $0.12/h"


def test_what_is_unknown_is_said_beside_what_is_known() -> None:
    found = total(per_hour(one, OREGON) for one in (SMALL, STRANGE))
    assert found.usd == pytest.approx(SMALL_USD + STRANGE_USD)
    assert found.known is None
    assert found.text("/h") == "at least $0.13/h, and 1 machine of unknown price (x99.large)"
    three = total(per_hour(one, OREGON) for one in (STRANGE, STRANGE, Rented("m7i.large", disks=(Disk("io2", 9),))))
    assert three.text("/h").endswith("/h, and 3 machines of unknown price (io2 disk, x99.large)")


def test_where_some_is_the_most_and_some_unknown_no_bound_is_claimed() -> None:
    found = Amount(1.23, ("x99.large",), most=True)
    assert found.text() == "$1.23, and 1 machine of unknown price (x99.large)"


def test_disks_that_nobody_knows_are_no_disks_for_nothing() -> None:
    assert per_hour(Rented("m7i.large", disks=None), OREGON) == Amount(0.1008 + 0.005, ("disks",))


def test_of_a_region_without_prices_nothing_is_known() -> None:
    found = per_hour(SMALL, "mars-north-1")
    assert found == Amount(0, ("m7i.large and gp3 disk and public address",))


def test_the_maximum_has_the_time_that_the_end_takes() -> None:
    assert maximum(Amount(1.0), DAYS) == Amount(72 + ENDING_SECONDS / 3600)
    assert maximum(Amount(1.0), 0.0) is None


@given(st.floats(0, 1e3), st.floats(0, 1e7), st.floats(0, 1e7))
def test_time_adds_up(usd: float, first: float, second: float) -> None:
    hourly = Amount(usd)
    assert (over(hourly, first) + over(hourly, second)).usd == pytest.approx(over(hourly, first + second).usd)


AMOUNTS = st.builds(Amount, st.floats(0, 1e6), st.lists(st.sampled_from(["a", "b"]), max_size=2).map(tuple))


@given(st.lists(AMOUNTS, max_size=5))
def test_a_sum_is_known_only_where_all_of_it_is(amounts: list[Amount]) -> None:
    found = total(amounts)
    assert (found.known is None) == any(one.unknown for one in amounts)
    assert len(found.unknown) == sum(len(one.unknown) for one in amounts)


@pytest.mark.parametrize(
    ("hourly", "lifetime", "budget", "wrong"),
    [
        (Amount(0.33), DAYS, 0.0, None),
        (Amount(0.33), DAYS, 24.0, None),
        (Amount(), DAYS, 0.01, None),
        (
            Amount(0.33),
            DAYS,
            23.0,
            "is $23.00, and the plan may cost $23.80 ($0.33/h) until the machines end themselves after 72h",
        ),
        (
            Amount(0.33),
            0.0,
            99.0,
            "is $99.00, and the machines never end themselves: what they cost has no bound",
        ),
        (
            Amount(0.33, ("x99.large", "x99.large")),
            DAYS,
            99.0,
            f"is $99.00, and the prices of {table().at} do not have all that the plan needs: x99.large",
        ),
    ],
)
def test_a_plan_above_its_budget_is_refused(hourly: Amount, lifetime: float, budget: float, wrong: str | None) -> None:
    found = beyond(hourly, lifetime, budget)
    assert (found[0] if found else None) == wrong
    assert found is None or found[1].endswith(".")


@given(st.floats(0.001, 1e3), st.floats(60, 1e6), st.floats(0.01, 1e6))
def test_what_is_not_refused_stays_within_the_budget(usd: float, lifetime: float, budget: float) -> None:
    most = maximum(Amount(usd), lifetime)
    assert most is not None
    assert (beyond(Amount(usd), lifetime, budget) is None) == (most.usd <= budget)


def test_a_plan_tells_what_it_costs_in_a_line() -> None:
    told = sentence(Amount(0.33), DAYS, ["your volume vol-0a1b2c3d"])
    assert told == (
        f"the machines cost $0.33/h, at most $23.80 until they end themselves after 72h; prices of {table().at}; "
        "after the machines go these cost on: your volume vol-0a1b2c3d"
    )
    spot = sentence(Amount(0.33, most=True), DAYS, [])
    assert spot.startswith("the machines cost at most $0.33/h, at most $23.80 until")
    assert "; spot counts as on demand; after the machines go these cost on: nothing" in spot
    never = sentence(Amount(0.33), 0.0, [])
    assert never.startswith("the machines cost $0.33/h, and never end themselves, so there is no maximum; ")
    unknown = sentence(Amount(0.33, ("x99.large",)), DAYS, [])
    assert "at least $23.80, and 1 machine of unknown price (x99.large) until they end" in unknown


def test_what_bills_on_is_told_with_its_price() -> None:
    assert after(OREGON, "new", True, ["vol-0a"]) == [
        "the file system (EFS), until `pulumi destroy`: $0.30 for each GiB and month",
        "the bucket with the record (S3), also after `pulumi destroy`: $0.023 for each GiB and month",
        "your volume vol-0a",
    ]
    assert after("mars-north-1", "fs-0a", False, []) == [
        "your file system fs-0a: at an unknown price",
        "the bucket with the record (S3), until `pulumi destroy`: at an unknown price",
    ]


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
