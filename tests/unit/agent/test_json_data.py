"""Dataclasses as JSON, and back."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from tfdeploy.agent.model.json_data import JsonData, SparseJsonData


@dataclass(frozen=True)
class Wheel(JsonData):
    size: int = 17


@dataclass
class Car(JsonData):
    name: str
    wheels: list[Wheel] = field(default_factory=list)
    by_place: dict[str, Wheel] = field(default_factory=dict)
    spare: Wheel | None = None
    colours: tuple[str, ...] = ()
    pairs: tuple[Wheel, ...] | None = None
    notes: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class Short(SparseJsonData):
    count: int = 0
    text: str = ""
    is_so: bool = False


FULL = Car("a", [Wheel(18)], {"left": Wheel(19)}, Wheel(20), ("red", "blue"), (Wheel(), Wheel(1)), {"x": [1, None]})


@pytest.mark.parametrize("car", [FULL, Car("empty")])
def test_what_was_written_is_read(car: Car) -> None:
    assert Car.from_dict(json.loads(json.dumps(car.to_dict()))) == car


def test_the_json_does_not_change_with_the_object() -> None:
    car = Car("a", notes={"x": [1]})
    data = car.to_dict()
    car.wheels.append(Wheel())
    car.notes["x"].append(2)
    assert (data["wheels"], data["notes"]) == ([], {"x": [1]})


def test_other_versions_have_more_or_fewer_fields() -> None:
    assert Car.from_dict({"name": "a", "doors": 4, "spare": {"size": 3, "brand": "b"}}) == Car("a", spare=Wheel(3))


def test_what_is_empty_is_left_out_where_that_is_wanted() -> None:
    assert Short(is_so=True).to_dict() == {"is_so": True}
    assert Short.from_dict({}) == Short()


@pytest.mark.parametrize("data", [{}, [], "name", 1, None, {"name": "a", "wheels": 1}, {"name": "a", "by_place": []}])
def test_other_json_is_refused(data: Any) -> None:
    with pytest.raises((TypeError, AttributeError)):
        Car.from_dict(data)
