"""Machines whose boot failed: how often in a row, what is remembered, and when no further one is made."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from tests.unit.fleets import CLUSTER, facts, instance, spec
from tfdeploy.backends.ec2 import failing, fleet, forming, reach
from tfdeploy.backends.ec2.refusals import refuse_failing
from tfdeploy.backends.ec2.status import _sentence
from tfdeploy.ec2 import failures
from tfdeploy.ec2.boot import READY
from tfdeploy.ec2.facts import Instance
from tfdeploy.ec2.failures import Failure, Kind
from tfdeploy.errors import BackendError, SpecError
from tfdeploy.plan import Given, Plan, make_plan

KIND = Kind("m7i.large", "ami-0c", "subnet-0a")
FIRST = Failure("i-0a", "a1", KIND, "did not boot: its boot script failed", "  line 7: mount")
SECOND, THIRD = replace(FIRST, instance_id="i-0b"), replace(FIRST, instance_id="i-0c", reason="did not boot: lost")


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A state folder of the test's own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def in_a_row(*failed: Failure) -> Failure:
    found = None
    for one in failed:
        found = failures.after(found, one)
    assert found
    return found


def test_failures_of_the_same_kind_are_counted_in_a_row() -> None:
    assert [in_a_row(*(FIRST, SECOND, THIRD)[:count]).times for count in (1, 2, 3)] == [1, 2, 3]
    assert in_a_row(FIRST, SECOND).words == "its boot failed (2 of 3)"
    assert replace(in_a_row(FIRST, SECOND, THIRD), times=1) == THIRD


def test_a_machine_that_is_looked_at_twice_has_failed_once() -> None:
    assert in_a_row(FIRST, FIRST, FIRST).times == 1
    assert in_a_row(FIRST, SECOND, SECOND).times == 2


@pytest.mark.parametrize("key", ["instance_type", "image_id", "subnet_id"])
def test_another_kind_begins_anew(key: str) -> None:
    other = replace(THIRD, kind=replace(KIND, **{key: "other"}))
    assert in_a_row(FIRST, SECOND, other).times == 1


def test_the_failure_of_another_instance_is_not_that_of_the_one_that_stands() -> None:
    assert failures.of(FIRST, "") == failures.of(FIRST, "i-0a") == FIRST
    assert failures.of(FIRST, "i-0b") is failures.of(None, "") is None


def test_after_three_none_is_made() -> None:
    given_up = {"mnist-worker-m0": in_a_row(FIRST, SECOND, THIRD)}
    with pytest.raises(SpecError) as error:
        failures.refuse("mnist: machines", {"mnist-ps-m0": KIND, "mnist-worker-m0": KIND}, given_up)
    assert str(error.value) == (
        "mnist: machines: mnist-worker-m0 failed to boot 3 times in a row (m7i.large, ami-0c, subnet-0a): "
        "did not boot: lost. Choose another ami, instance_type or subnet_id; or run `pulumi destroy`, and begin again. "
        "The end of its console:\n  line 7: mount"
    )
    failures.refuse("mnist: machines", {"mnist-ps-m0": KIND}, given_up)
    failures.refuse("mnist: machines", {"mnist-worker-m0": replace(KIND, image_id="ami-0d")}, given_up)
    failures.refuse("mnist: machines", {"mnist-worker-m0": KIND}, {"mnist-worker-m0": in_a_row(FIRST, SECOND)})


def test_what_failed_is_remembered_until_the_machine_is_ready_or_the_cluster_goes() -> None:
    assert failing.read(CLUSTER) == {}
    failing.forget(CLUSTER, "mnist-ps-m0")
    failing.forget_all(CLUSTER)
    for failed in (FIRST, SECOND):
        failing.remember(CLUSTER, "mnist-ps-m0", failed)
    failing.remember(CLUSTER, "mnist-worker-m0", FIRST)
    assert failing.read(CLUSTER) == {"mnist-ps-m0": in_a_row(FIRST, SECOND), "mnist-worker-m0": FIRST}
    assert reach.of(CLUSTER).stat().st_mode & 0o777 == 0o700
    failing.forget(CLUSTER, "mnist-ps-m0")
    assert failing.read(CLUSTER) == {"mnist-worker-m0": FIRST}
    failing.forget_all(CLUSTER)
    assert failing.read(CLUSTER) == {}


PAIR: dict[str, Any] = {"ps": 1, "workers": 1}
PS, WORKER = instance("mnist-ps-m0", manages=True), instance("mnist-worker-m0")
FAILED = Failure("i-mnist-worker-m0", "a1b2", Kind("m7i.large", "ami-0c", "subnet-0a"), "did not boot", "", 2)


def after_failures(*there: Instance, failed: Failure = FAILED, **args: Any) -> Plan:
    """A plan, when the worker's machine has failed to boot."""
    asked = spec(**PAIR, **args)
    known = replace(facts(*there), failures={"mnist-worker-m0": failed})
    return make_plan(asked, fleet.machines(CLUSTER, asked, known), Given(train_dir="/tfdeploy/train"))


def told(made: Plan) -> list[str]:
    return [line for one in made.machines for line in _sentence(made, one)]


def test_a_machine_whose_boot_failed_is_made_anew() -> None:
    made = after_failures(PS, WORKER)
    anew = "mnist-worker-m0 is made anew (its boot failed (2 of 3))"
    assert told(made) == [f"{anew}; what stands there starts again: worker-0"]
    assert fleet.plot_of(made.machines[1])["life"] != WORKER.life
    (line,) = told(after_failures(PS))
    assert line.startswith("mnist-worker-m0 is made again (its boot failed (2 of 3)): m7i.large, ")
    assert told(after_failures(PS, replace(WORKER, instance_id="i-another"))) == []


def refused_failing(made: Plan, failed: Failure) -> bool:
    try:
        refuse_failing(spec(**PAIR), made, {"mnist-worker-m0": failed})
    except SpecError:
        return True
    return False


def test_a_machine_is_given_up_only_where_it_would_be_made_once_more() -> None:
    thrice = replace(FAILED, times=3)
    for there in ((PS, WORKER), (PS,)):
        assert refused_failing(after_failures(*there, failed=thrice), thrice)
        assert not refused_failing(after_failures(*there), FAILED)
    assert not refused_failing(after_failures(PS, replace(WORKER, instance_id="i-another"), failed=thrice), thrice)
    assert not refused_failing(after_failures(PS, failed=thrice, ami="ami-0f"), thrice)
    over = replace(after_failures(PS, failed=thrice), unneeded=frozenset({"mnist-worker-m0"}))
    assert not refused_failing(over, thrice)


MEMBER: forming.Member = {
    "machine": "mnist-worker-m0",
    "instance_id": "i-0a",
    "address": "198.51.100.7",
    "private_ip": "172.31.0.9",
    "life": "a1",
    "manages": False,
    "kind": asdict(KIND),
    "labels": {},
}


def boots(console: str, stood: set[str]) -> str:
    """What is said of a machine that is not ready in time."""

    def end() -> None:
        raise forming._failure(MEMBER, "was not ready: ssh timed out", console)

    with pytest.raises(BackendError) as error:
        forming._watched(CLUSTER, MEMBER, stood, end)
    return str(error.value)


def test_a_boot_that_fails_is_remembered_with_the_end_of_the_console() -> None:
    console = "\n".join(map(str, range(40)))
    assert boots(console, set()).startswith(
        "mnist-worker-m0 was not ready: ssh timed out. The end of its console:\n  15\n"
    )
    tail = "\n".join(f"  {number}" for number in range(15, 40))
    kept = Failure("i-0a", "a1", KIND, "was not ready: ssh timed out", tail)
    assert failing.read(CLUSTER) == {"mnist-worker-m0": kept}


def test_a_machine_that_has_booted_or_was_in_the_swarm_has_not_failed_to() -> None:
    assert "was not ready: ssh timed out" in boots(f"booting\n{READY}\n", set())
    assert "was not ready: ssh timed out" in boots("booting", {"i-0a"})
    assert failing.read(CLUSTER) == {}
