"""What PTX text is parsed into: a module of variables and functions, a function of instructions with operands.

    @%p1 ld.global.v2.b32 {%r1, %r2}, [%rd4+8];
    Instruction("ld.global.v2.b32", (Vector((Register(3), Register(4))), Memory(Register(7), 8)), guard=Register(0),
    ...)

Registers are numbers: the index into `Function.registers`, unique after scopes are flattened.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from deuteron.errors import Location


@dataclass(frozen=True)
class Register:
    """A virtual register by number."""

    index: int


@dataclass(frozen=True)
class Immediate:
    """A number; where `kind` is f32 or f64, `value` is the bit pattern of a float."""

    value: int
    kind: str | None = None


@dataclass(frozen=True)
class Special:
    """A special register: `%tid.x`, `%laneid`."""

    name: str


@dataclass(frozen=True)
class Symbol:
    """The address of a variable, or the name of a function or label, plus an offset."""

    name: str
    offset: int = 0


@dataclass(frozen=True)
class Memory:
    """`[base+offset]`, with the coordinates of a tensor where there are any: `[map, {%r1, %r2}]`."""

    base: Operand
    offset: int = 0
    coordinates: Vector | None = None


@dataclass(frozen=True)
class Vector:
    """`{a, b, ...}`; an element is None where PTX has `_`."""

    elements: tuple[Operand | None, ...]


@dataclass(frozen=True)
class Pair:
    """Two destinations: `%r1|%p2`."""

    first: Operand | None
    second: Operand | None


@dataclass(frozen=True)
class Negated:
    """`!%p1`."""

    operand: Register


Operand = Register | Immediate | Special | Symbol | Memory | Vector | Pair | Negated | None


@dataclass(eq=False)
class Instruction:
    """One instruction, with the guard of `@%p` or `@!%p`, its PTX line and its source line from `.loc`."""

    opcode: str
    operands: tuple[Operand, ...]
    line: int
    guard: Register | None = None
    guard_negated: bool = False
    source: Location | None = None
    words: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The instruction as it is written in PTX, on one line."""
        size = 0 if self.words[0] != "@" else 3 if self.words[1] == "!" else 2
        rest = re.sub(r" ?([,;\]\[{}+|!()-]) ?", r"\1", " ".join(self.words[size + 1 :])).replace(",", ", ")
        parts = ["".join(self.words[:size]), self.words[size], rest] if size else [self.words[0], rest]
        return " ".join(parts).replace(" ;", ";")


@dataclass(frozen=True)
class Variable:
    """A variable of a state space. `dims` is () for a scalar; the size of `[]` is 0."""

    name: str
    space: str
    type: str
    alignment: int
    dims: tuple[int, ...] = ()
    initial: tuple[Immediate | Symbol, ...] = ()
    is_extern: bool = False

    @property
    def size(self) -> int:
        count = 1
        for dim in self.dims:
            count *= dim
        return count * TYPE_BYTES[self.type]


TYPE_BYTES = {
    "pred": 1,
    **{f"{kind}{bits}": bits // 8 for kind in "bus" for bits in (8, 16, 32, 64)},
    "b128": 16,
    "f16": 2,
    "bf16": 2,
    "f32": 4,
    "f64": 8,
    "f16x2": 4,
    "bf16x2": 4,
}


@dataclass(eq=False)
class Function:
    """An entry or a function. `labels` give the index of an instruction; `registers` the type of each register."""

    name: str
    is_entry: bool
    params: list[Variable] = field(default_factory=list)
    returns: list[Variable] = field(default_factory=list)
    directives: dict[str, tuple[int, ...]] = field(default_factory=dict)
    registers: list[str] = field(default_factory=list)
    register_names: list[str] = field(default_factory=list)
    variables: dict[str, Variable] = field(default_factory=dict)
    instructions: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)


@dataclass(eq=False)
class Module:
    """A PTX module; `target` as in `.target sm_90a`."""

    version: str = ""
    target: str = ""
    variables: dict[str, Variable] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    files: dict[int, str] = field(default_factory=dict)
