"""Marathon's placement constraints: their text, and what each says of a machine."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdeploy.errors import SpecError
from tfdeploy.plan.constraints import OPERATORS, Constraint, parse
from tfdeploy.plan.scheduler import Machine

WHERE = "mnist: jobs: worker: placement"


def machine(name: str = "m0", address: str = "10.0.0.1", labels: Mapping[str, str] | None = None) -> Machine:
    return Machine(name, "Worker", "docker", "", 4, 8 * 1024**3, address=address, labels=labels or {})


@pytest.mark.parametrize(
    ("text", "constraint"),
    [
        ("hostname:UNIQUE", Constraint("hostname", "UNIQUE")),
        ("@hostname:UNIQUE", Constraint("hostname", "UNIQUE")),
        ("rack:CLUSTER:r1", Constraint("rack", "CLUSTER", "r1")),
        ("rack:GROUP_BY", Constraint("rack", "GROUP_BY")),
        ("hostname:LIKE:10.0.0.159|10.0.1.202", Constraint("hostname", "LIKE", "10.0.0.159|10.0.1.202")),
        ("address:UNLIKE:fe80::.*", Constraint("address", "UNLIKE", "fe80::.*")),
        ("rack:IS:a:b", Constraint("rack", "IS", "a:b")),
    ],
)
def test_a_text_is_read(text: str, constraint: Constraint) -> None:
    assert parse(WHERE, text) == constraint


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'' is not a valid constraint. It takes field:OPERATOR[:parameter], such as \"hostname:UNIQUE\"."),
        ("hostname", "'hostname' is not a valid constraint. It takes field:OPERATOR"),
        (
            "rack:unique",
            "'rack:unique' has the operator 'unique'. There are: UNIQUE, CLUSTER, GROUP_BY, LIKE, UNLIKE, MAX_PER, IS.",
        ),
        ("rack:UNIQUE:1", "'rack:UNIQUE:1' has a parameter. UNIQUE takes none: rack:UNIQUE"),
        ("rack:LIKE", "'rack:LIKE' lacks a parameter. LIKE takes a regular expression: rack:LIKE:…"),
        ("rack:MAX_PER", "'rack:MAX_PER' lacks a parameter. MAX_PER takes the most tasks on one value, 1 or more"),
        ("rack:MAX_PER:0", "'rack:MAX_PER:0' has the parameter '0'. MAX_PER takes the most tasks on one value"),
        ("rack:MAX_PER:²", "has the parameter '²'. MAX_PER takes the most tasks"),
        (f"rack:MAX_PER:{'9' * 5000}", "MAX_PER takes the most tasks on one value, 1 or more."),
        ("rack:GROUP_BY:-1", "has the parameter '-1'. GROUP_BY takes the number of values, 1 or more."),
        (
            "rack:LIKE:(",
            "'(' is not a valid regular expression (missing ), unterminated subpattern at position 0). Correct",
        ),
    ],
)
def test_a_bad_text_is_refused(text: str, message: str) -> None:
    with pytest.raises(SpecError) as refusal:
        parse(WHERE, text)
    assert str(refusal.value).startswith(f"{WHERE}: ")
    assert message in str(refusal.value)


@given(st.text(), st.sampled_from(sorted(OPERATORS)), st.text())
def test_any_text_is_read_or_refused_and_what_is_read_is_read_again(field: str, operator: str, parameter: str) -> None:
    try:
        read = parse(WHERE, f"{field}:{operator}:{parameter}")
    except SpecError:
        return
    assert parse(WHERE, str(read)) == read


@pytest.mark.parametrize(
    ("text", "value", "admitted"),
    [
        ("rack:CLUSTER:r1", "r2", False),
        ("rack:LIKE:r[12]", "r12", False),
        ("rack:LIKE:a|ab", "ab", True),
        ("rack:UNLIKE:r[12]", "r1", False),
        ("rack:IS:r.", "r1", False),
        ("rack:IS:r1", "", False),
    ],
)
def test_what_an_operator_says_of_a_value(text: str, value: str, admitted: bool) -> None:
    assert parse(WHERE, text).admits(machine(labels={"rack": value})) is admitted


@pytest.mark.parametrize(
    "text",
    ["rack:UNIQUE", "rack:CLUSTER", "rack:CLUSTER:a", "rack:GROUP_BY", "rack:LIKE:.*", "rack:MAX_PER:1", "rack:IS:a"],
)
def test_a_machine_without_the_label_satisfies_nothing_on_it(text: str) -> None:
    assert not parse(WHERE, text).admits(machine(labels={"zone": "a"}))


@pytest.mark.parametrize(
    ("field", "value"),
    [("hostname", "m7"), ("@hostname", "m7"), ("address", "10.0.0.7"), ("rack", "r1"), ("zone", None)],
)
def test_what_a_field_names(field: str, value: str | None) -> None:
    assert parse(WHERE, f"{field}:UNIQUE").value(machine("m7", "10.0.0.7", {"rack": "r1"})) == value
    assert parse(WHERE, "address:UNIQUE").value(machine(address="")) is None, "it is not known"
