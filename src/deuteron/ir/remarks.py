"""What passes, and the frontend, have to say of ops to whoever reads the IR or the compile report, as data.

    remark(load, Kind.NOT_AHEAD, "it is in a branch")
    remark_of(load, Kind.NOT_AHEAD)                            Remark(Kind.NOT_AHEAD, "it is in a branch", {})

    %x = "tt.load"(%p) {remarks = {"not-ahead" = {reason = "it is in a branch"}}} ...

    remark_place(module, access.location, Kind.NO_TMA, "it is a gather")

    module attributes {tt.remarks = [{"no-tma" = {reason = "it is a gather"}, at = "k.py", line = 7, column = 9}]} ...

The kind and the values are for programs, the reason is for people. A remark changes nothing. What is said of an op
goes where it goes, into its clones too, and where it goes away; of one kind an op has one, the last, as of two that
contradict each other. What is said of a place in the source stays with the module, whatever becomes of its ops.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    IntegerAttr,
    LocationAttr,
    ModuleOp,
    StringAttr,
    i64,
)
from xdsl.ir import Attribute, Operation

from deuteron.errors import Location
from deuteron.ir.location import user_location
from deuteron.ir.nested import nested_ops

_REMARKS, _REASON = "remarks", "reason"
_OF_PLACES = "tt.remarks"


class Kind(Enum):
    """What a remark says; its reason says why."""

    INTO_REGISTERS = "into-registers"  # a load is done iterations ahead, into registers: one, or `iterations`
    NOT_AHEAD = "not-ahead"  # a load of a loop is done in its iteration
    NO_MMA = "no-mma"  # warps do not multiply with their own tensor instructions
    NO_WGMMA = "no-wgmma"  # warpgroups do not
    NO_TMA = "no-tma"  # an access through a tensor descriptor goes through pointers
    FEWER_STAGES = "fewer-stages"  # shared memory has no room for as many as were asked for
    OLD_SPELLING = "old-spelling"  # the kernel says it as older versions of Triton did


_CONTRARY = {Kind.INTO_REGISTERS: Kind.NOT_AHEAD, Kind.NOT_AHEAD: Kind.INTO_REGISTERS}


@dataclass(frozen=True)
class Remark:
    """One of them; `values` are the numbers that decided."""

    kind: Kind
    reason: str
    values: Mapping[str, int] = field(default_factory=dict)


def remark(op: Operation, kind: Kind, reason: str, **values: int) -> None:
    """Keep a remark with an op."""
    before = _said_of(op)
    if kind in _CONTRARY:
        before.pop(_CONTRARY[kind].value, None)
    op.attributes[_REMARKS] = DictionaryAttr({**before, kind.value: _written(reason, values)})


def remark_place(module: ModuleOp, place: LocationAttr, kind: Kind, reason: str, **values: int) -> None:
    """Keep a remark on a place in the source, of which users are told the line that they wrote, once."""
    said = DictionaryAttr({kind.value: _written(reason, values), **_written_place(user_location(place))})
    module.attributes[_OF_PLACES] = ArrayAttr(dict.fromkeys([*_said_of_places(module), said]))


def remark_of(op: Operation, kind: Kind) -> Remark | None:
    """What a pass said of that kind."""
    return next((found for found in remarks_of(op) if found.kind is kind), None)


def remarks_of(op: Operation) -> Iterator[Remark]:
    """All that passes said of an op."""
    return _read(_said_of(op))


def remarks_in(module: ModuleOp) -> list[tuple[Location | None, Remark]]:
    """All that was said of places in the source, and of ops, each with its place."""
    of_places = [(_read_place(said), found) for said in map(_entries, _said_of_places(module)) for found in _read(said)]
    return of_places + [(user_location(op.location), found) for op in nested_ops(module) for found in remarks_of(op)]


# Texts come from anywhere: what is not as we write it is left out.


def _said_of(op: Operation) -> dict[str, Attribute]:
    return _entries(op.attributes.get(_REMARKS))


def _said_of_places(module: ModuleOp) -> Sequence[Attribute]:
    found = module.attributes.get(_OF_PLACES)
    return found.data if isinstance(found, ArrayAttr) else ()


def _written_place(place: Location | None) -> dict[str, Attribute]:
    """Not as a location: MLIR refuses the name of one in an attribute before it is defined, as they are at the end."""
    if place is None:
        return {}
    return {
        "at": StringAttr(place.file),
        "line": IntegerAttr(place.line, i64),
        "column": IntegerAttr(place.column, i64),
    }


def _read_place(said: Mapping[str, Attribute]) -> Location | None:
    match said:
        case {"at": StringAttr() as file, "line": IntegerAttr() as line, "column": IntegerAttr() as column}:
            return Location(file.data, line.value.data, column.value.data)
    return None


def _written(reason: str, values: Mapping[str, int]) -> DictionaryAttr:
    return DictionaryAttr({_REASON: StringAttr(reason), **{k: IntegerAttr(value, i64) for k, value in values.items()}})


def _read(said: Mapping[str, Attribute]) -> Iterator[Remark]:
    for kind in Kind:
        if isinstance(said.get(kind.value), DictionaryAttr):
            entries = _entries(said[kind.value])
            reason = entries.get(_REASON)
            values = {name: value.value.data for name, value in entries.items() if isinstance(value, IntegerAttr)}
            yield Remark(kind, reason.data if isinstance(reason, StringAttr) else "", values)


def _entries(attribute: Attribute | None) -> dict[str, Attribute]:
    return dict(attribute.data) if isinstance(attribute, DictionaryAttr) else {}
