"""What JSON gave, read as the annotations of dataclasses say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from deuteron.json_fields import read_value


@dataclass(frozen=True)
class Step:
    extent: int
    name: str | None = None


@dataclass(frozen=True)
class Jump:
    height: float


@dataclass(frozen=True)
class Walk:
    steps: tuple[Step | Jump, ...]
    ends: tuple[int, str]
    times: dict[str, float]
    first: Step | None
    is_long: bool
    notes: Any
    tree: tuple


WALK = Walk((Step(1, "a"), Jump(2)), (3, "b"), {"t": 0.5, "u": 1}, None, True, {"n": [1]}, ("add", ("arg", 1)))
FIELDS = {
    "steps": [{"extent": 1, "name": "a"}, {"height": 2}],
    "ends": [3, "b"],
    "times": {"t": 0.5, "u": 1},
    "first": None,
    "is_long": True,
    "notes": {"n": [1]},
    "tree": ["add", ["arg", 1]],
}


def test_all_kinds():
    assert read_value(Walk, FIELDS) == WALK
    assert read_value(tuple[Step, ...], [{"extent": 1, "name": None}]) == (Step(1),)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("steps", None, "steps is None, and must be an array"),
        ("steps", [{"extent": "1", "name": None}], "steps[0].extent is '1', and must be a whole number"),
        ("steps", [{"extent": True, "name": None}], "steps[0].extent is True, and must be a whole number"),
        ("steps", [{"extent": 1}], "steps[0].name is missing"),
        ("steps", [{"extent": 1, "name": 2}], "steps[0].name is 2, and must be a text or null"),
        ("steps", [{"height": 1, "weight": 2}], "steps[0].weight is no field"),
        ("steps", [3], "steps[0] is 3, and must be an object"),
        ("ends", [1], "ends has 1 item, and must have 2"),
        ("ends", [1, 2], "ends[1] is 2, and must be a text"),
        ("times", {"t": None}, "times.t is None, and must be a number"),
        ("times", [], "times is [], and must be an object"),
        ("first", {"extent": 1, "name": []}, "first.name is [], and must be a text or null"),
        ("first", 1, "first is 1, and must be an object or null"),
        ("is_long", 1, "is_long is 1, and must be true or false"),
        ("tree", 1, "tree is 1, and must be an array"),
    ],
)
def test_what_is_wrong_is_said(name, value, message):
    with pytest.raises(ValueError) as caught:
        read_value(Walk, {**FIELDS, name: value})
    assert str(caught.value) == message


def test_what_is_no_object():
    with pytest.raises(ValueError, match="^it is 3, and must be an object$"):
        read_value(Walk, 3)
