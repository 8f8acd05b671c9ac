"""A tile at lowering: its layout, and one LLVM value for each register of a thread.

    Fragment(layout, (%a, %b))                      a tile with two elements in each thread
    x.map(lambda v: b.fneg(v))                      -x
    x.zip_map(b.fadd, y)                            x + y, both in one layout

Which elements a thread's registers are says the layout: `layout(register=r, lane=l, warp=w)`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import xor

from deuteron.backend.llvm.types import Value
from deuteron.layout.linear import REGISTER, LinearLayout


@dataclass(frozen=True)
class Fragment:
    """The registers of a tile in each thread; as many as the layout has."""

    layout: LinearLayout
    registers: tuple[Value, ...]

    def __post_init__(self) -> None:
        expected = self.layout.in_size(REGISTER)
        assert len(self.registers) == expected, f"{len(self.registers)} registers for a layout of {expected}"

    def map(self, emit: Callable[[Value], Value]) -> Fragment:
        return Fragment(self.layout, tuple(emit(value) for value in self.registers))

    def zip_map(self, emit: Callable[..., Value], *others: Fragment) -> Fragment:
        columns = zip(self.registers, *(other.registers for other in others), strict=True)
        return Fragment(self.layout, tuple(emit(*values) for values in columns))


Operand = Fragment | Value  # a tile or a scalar


def registers_of(operand: Operand) -> tuple[Value, ...]:
    """The registers of a tile; a scalar is one register."""
    return operand.registers if isinstance(operand, Fragment) else (operand,)


def with_registers(like: Operand, registers) -> Operand:
    """A tile in the same layout, or a scalar if `like` is one."""
    registers = tuple(registers)
    return Fragment(like.layout, registers) if isinstance(like, Fragment) else registers[0]


def positions(layout: LinearLayout) -> list[tuple[int, ...]]:
    """The coordinates of each register, in the thread whose lane and warp are 0."""
    found = [(0,) * len(layout.shape)]
    for basis in layout.of(REGISTER):
        found += [tuple(map(xor, position, basis)) for position in found]
    return found


def register_at(layout: LinearLayout) -> dict[tuple[int, ...], int]:
    """The first register with each coordinates (as in `positions`)."""
    found: dict[tuple[int, ...], int] = {}
    for register, position in enumerate(positions(layout)):
        found.setdefault(position, register)
    return found
