"""What a cluster's machines have cost so far."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdeploy.backends.ec2.price.cost_ledger import (
    Ledger,
    LedgerEntry,
    end_time,
    final_cost,
    spent,
    spent_before,
    updated,
    vanished,
)
from tfdeploy.backends.ec2.price.prices import ENDING_SECONDS, Amount, BillableMachine, Disk

REGION = "us-east-1"
NOON = 1_795_262_400.0
HOUR = 3600.0
BARE = BillableMachine("m7i.large", public_ip=False)
A = LedgerEntry("i-0a", "mnist-m0", BARE, NOON, 72 * HOUR)
B = LedgerEntry("i-0b", "mnist-m1", replace(BARE, spot=True), NOON, 72 * HOUR)
USD = 0.1008
LEDGER = Ledger((A, B), {"mnist-m0": BillableMachine("m7i.large", disks=(Disk("gp3", 100),))}, 72 * HOUR, ("a bucket",))
TOLD = "User initiated (2026-11-21 14:05:11 GMT)"
AT = NOON + 2 * HOUR + 5 * 60 + 11


@pytest.mark.parametrize(
    ("reason", "at"),
    [
        (TOLD, AT),
        ("Server.SpotInstanceTermination: taken (2026-11-21 14:05:11 GMT)", AT),
        ("User initiated (2026-11-21 14:05:11 UTC)", AT),
        ("", None),
        ("User initiated", None),
        ("User initiated (2026-13-41 14:05:11 GMT)", None),
    ],
)
def test_the_end_is_read_from_what_ec2_says(reason: str, at: float | None) -> None:
    assert end_time(reason) == at


def test_a_look_adds_those_that_are_new_and_keeps_those_that_are_known() -> None:
    first = updated(Ledger(()), [A], {}, NOON)
    second = updated(first, [replace(A, lifetime=1.0, launched=0.0), B], {}, NOON + HOUR)
    assert (first.entries, second.entries) == ((A,), (A, B))
    assert updated(second, [A, B], {}, NOON + 2 * HOUR) == second


def test_what_comes_late_is_added() -> None:
    late = replace(A, billable=replace(BARE, public_ip=True))
    (entry,) = updated(Ledger((A,)), [late], {}, NOON).entries
    assert entry.billable.public_ip
    (entry,) = updated(Ledger((late,)), [A], {}, NOON).entries
    assert entry.billable.public_ip
    nobody_knew = replace(A, billable=replace(BARE, disks=None))
    assert updated(Ledger((nobody_knew,)), [A], {}, NOON).entries == (A,)
    assert updated(Ledger((A,)), [nobody_knew], {}, NOON).entries == (A,)


def test_one_that_is_gone_ended_when_ec2_says() -> None:
    assert vanished(Ledger((A, B)), [B]) == ["i-0a"]
    (gone, _) = updated(Ledger((A, B)), [B], {"i-0a": TOLD}, NOON + 9 * HOUR).entries
    assert (gone.ended, gone.ended_at_latest) == (AT, False)
    assert spent([gone], REGION, NOON + 99 * HOUR).usd == pytest.approx(USD * (AT - NOON) / HOUR)
    assert vanished(Ledger((gone,)), []) == []


@pytest.mark.parametrize(
    ("lifetime", "now", "ended"),
    [
        (72 * HOUR, NOON + HOUR, NOON + HOUR),
        (2 * HOUR, NOON + 99 * HOUR, NOON + 2 * HOUR + ENDING_SECONDS),
        (0.0, NOON + 99 * HOUR, NOON + 99 * HOUR),
        (72 * HOUR, NOON - HOUR, NOON),
    ],
)
def test_one_that_vanished_counts_to_the_latest_that_it_can_have_stood(
    lifetime: float, now: float, ended: float
) -> None:
    (gone,) = updated(Ledger((replace(A, lifetime=lifetime),)), [], {}, now).entries
    assert (gone.ended, gone.ended_at_latest) == (ended, True)
    assert spent([gone], REGION, now).text().startswith("at most $")


def test_a_bound_gives_way_to_what_is_told_later_and_a_time_to_nothing() -> None:
    bound = updated(Ledger((A,)), [], {}, NOON + 3 * HOUR)
    told = updated(bound, [], {"i-0a": TOLD}, NOON + 4 * HOUR)
    assert [(one.ended, one.ended_at_latest) for one in told.entries] == [(AT, False)]
    assert updated(told, [], {}, NOON + 5 * HOUR) == told
    assert updated(bound, [], {}, NOON + 5 * HOUR) == bound


def test_one_that_ec2_forgot_for_a_moment_lives_on() -> None:
    """What was just launched may be missing from an answer of EC2's."""
    lost = updated(Ledger((A,)), [], {}, NOON + 1)
    assert updated(lost, [A], {}, NOON + 2).entries == (A,)


def test_those_that_live_cost_until_now_and_spot_at_most() -> None:
    found = spent([A, B], REGION, NOON + 10 * HOUR)
    assert found.usd == pytest.approx(2 * 10 * USD)
    assert (found.is_maximum, spent([A], REGION, NOON + 10 * HOUR).is_maximum) == (True, False)


def test_nobody_costs_beyond_the_end_of_its_lifetime() -> None:
    assert spent([A], REGION, NOON + 1000 * HOUR).usd == pytest.approx(USD * (72 + ENDING_SECONDS / HOUR))


def test_less_than_a_minute_is_billed_as_one_also_before_the_launch() -> None:
    minute = pytest.approx(USD / 60)
    assert spent([A], REGION, NOON + 5).usd == minute
    assert spent([A], REGION, NOON - 9 * HOUR).usd == minute
    assert spent([], REGION, NOON) == Amount()


def test_before_a_run_the_first_minute_counts_for_those_that_end() -> None:
    """The controller counts the minute of those that stay."""
    gone = replace(A, ended=NOON + 5)
    found = spent_before([gone, A], [A], REGION, NOON + 20)
    assert found.usd == pytest.approx(USD * (60 + 20) / HOUR)
    assert spent_before([A], [A], REGION, NOON - 9 * HOUR).usd == 0


def test_a_machine_of_unknown_price_makes_the_sum_unknown() -> None:
    strange = replace(A, billable=BillableMachine("x99.large", public_ip=False))
    assert (
        spent([A, strange], REGION, NOON + HOUR).text()
        == "at least $0.10, plus 1 machine with unknown prices (x99.large)"
    )


def test_in_the_end_all_have_cost_their_whole_lifetime() -> None:
    ended = replace(A, instance_id="i-0c", ended=NOON + HOUR)
    most = final_cost([A, ended], REGION)
    assert most is not None
    assert most.usd == pytest.approx(USD * (72 + ENDING_SECONDS / HOUR + 1))
    assert final_cost([replace(A, lifetime=0.0), ended], REGION) is None
    assert final_cost([replace(ended, lifetime=0.0)], REGION) == Amount(USD)
    assert final_cost([], REGION) == Amount()


def test_it_comes_back_from_json() -> None:
    gone = replace(B, ended=AT, ended_at_latest=True, billable=BillableMachine("g6.xlarge", True, None))
    kept = Ledger((A, gone), LEDGER.planned, LEDGER.lifetime, LEDGER.billed_after)
    assert Ledger.from_dict(json.loads(json.dumps(kept.to_dict()))) == kept


@given(st.lists(st.tuples(st.floats(0, 1e6), st.booleans(), st.booleans()), max_size=8))
def test_however_often_it_is_looked_nobody_is_lost_counted_twice_or_refunded(
    looks: list[tuple[float, bool, bool]],
) -> None:
    """Each look has its time (in order), and whether each of two machines is there."""
    known, before = Ledger(()), 0.0
    for later, *there in sorted(looks):
        now = NOON + later
        live = [one for one, here in zip((A, B), there, strict=True) if here]
        known = updated(known, live, {}, now)
        ids = [entry.instance_id for entry in known.entries]
        assert len(ids) == len(set(ids))
        so_far = spent(known.entries, REGION, now).usd
        assert so_far >= before - 1e-9
        before = so_far
