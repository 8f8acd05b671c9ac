"""What passes, and the frontend, have to say of ops to whoever reads the IR or the compile report, as data.

    remark(load, Kind.NOT_AHEAD, "it is in a branch")
    remark_of(load, Kind.NOT_AHEAD)                            Remark(Kind.NOT_AHEAD, "it is in a branch", {})

    %x = "tt.load"(%p) {remarks = {"not-ahead" = {reason = "it is in a branch"}}} ...

The kind and the values are for programs, the reason is for people. A remark changes nothing. It stays with its op, so
that every text of the IR has it; of one kind an op has one, the last, as of two that contradict each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute, Operation

from deuteron.ir.nested import nested_ops

_REMARKS, _REASON = "remarks", "reason"


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
    said = {_REASON: StringAttr(reason), **{name: IntegerAttr(value, i64) for name, value in values.items()}}
    before = _said_of(op)
    if kind in _CONTRARY:
        before.pop(_CONTRARY[kind].value, None)
    op.attributes[_REMARKS] = DictionaryAttr({**before, kind.value: DictionaryAttr(said)})


def remark_of(op: Operation, kind: Kind) -> Remark | None:
    """What a pass said of that kind."""
    return next((found for found in remarks_of(op) if found.kind is kind), None)


def remarks_of(op: Operation) -> Iterator[Remark]:
    """All that passes said of an op."""
    known = {kind.value: kind for kind in Kind}
    for name, said in _said_of(op).items():
        if name in known and isinstance(said, DictionaryAttr):
            yield _read(known[name], dict(said.data))


def remarks_in(op: Operation) -> list[tuple[Operation, Remark]]:
    """All that passes said of an op and of what is in it."""
    return [(inner, found) for inner in nested_ops(op) for found in remarks_of(inner)]


def _said_of(op: Operation) -> dict[str, Attribute]:
    found = op.attributes.get(_REMARKS)
    return dict(found.data) if isinstance(found, DictionaryAttr) else {}


def _read(kind: Kind, said: dict[str, Attribute]) -> Remark:
    """Texts come from anywhere: what is not as we write it is left out."""
    reason = said.get(_REASON)
    values = {name: value.value.data for name, value in said.items() if isinstance(value, IntegerAttr)}
    return Remark(kind, reason.data if isinstance(reason, StringAttr) else "", values)
