"""What a rule decodes an instruction with: its modifiers, and its operands as functions of the group.

    def decode_add(d):
        type = d.type()                                    takes `.s32` off the modifiers
        a, b = d.source(1, type), d.source(2, type)        group -> array of int32
        write = d.destination(0, type)                     (group, array) -> None

Registers hold unsigned integers (predicates bools); sources view them as the type asked for, narrower types take the
low bits, and destinations extend a narrower result by its sign.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from deuteron.emulator.faults import UnknownInstruction
from deuteron.emulator.machine.group import Group
from deuteron.emulator.parts import Parts
from deuteron.emulator.specials import special
from deuteron.emulator.types import BITS, TYPES
from deuteron.emulator.variables import Layout
from deuteron.ptx.syntax import (
    Function,
    Immediate,
    Memory,
    Negated,
    Operand,
    Pair,
    Register,
    Special,
    Symbol,
    Vector,
)

Getter = Callable[[Group], np.ndarray]
Setter = Callable[[Group, np.ndarray], None]


class Decoding:
    """One instruction being decoded. `sources` and `destinations` collect the registers that the rule asks for;
    `low_bytes`: of those among the sources of which not all is read, how many bytes are.
    """

    def __init__(self, function: Function, layout: Layout, pc: int, modifiers: list[str]):
        self.function = function
        self.layout = layout
        self.pc = pc
        self.instruction = function.instructions[pc]
        self.operands = list(self.instruction.operands)
        self.modifiers = list(modifiers)
        self.sources: set[int] = set()
        self.destinations: set[int] = set()
        self.parts: Parts | None = None
        self.low_bytes: dict[int, int] = {}

    def error(self, message: str) -> UnknownInstruction:
        return UnknownInstruction(message, self.instruction.line, self.instruction.text)

    @property
    def carry(self) -> Register:
        """The carry flag: the last register, which every program has."""
        return Register(len(self.function.registers) - 1)

    def flag(self, *names: str) -> bool:
        """Whether one of these modifiers is there; takes it."""
        found = [name for name in names if name in self.modifiers]
        for name in found:
            self.modifiers.remove(name)
        return bool(found)

    def choice(self, *names: str, default: str | None = None) -> str:
        """The one of these modifiers that is there; takes it."""
        for name in self.modifiers:
            if name in names:
                self.modifiers.remove(name)
                return name
        if default is None:
            raise self.error(f"expected one of {', '.join(names)}")
        return default

    def type(self) -> str:
        """The last modifier, which is a type; takes it."""
        if not self.modifiers or self.modifiers[-1] not in TYPES:
            raise self.error("expected a type")
        return self.modifiers.pop()

    def guard(self) -> Getter | None:
        """The mask of threads that execute the instruction."""
        register = self.instruction.guard
        if register is None:
            return None
        index = register.index
        self.sources.add(index)
        if self.instruction.guard_negated:
            return lambda group: ~group.registers[index]
        return lambda group: group.registers[index]

    def operand(self, position: int) -> Operand:
        if position >= len(self.operands):
            raise self.error(f"has too few operands: {len(self.operands)}")
        return self.operands[position]

    def has(self, position: int) -> bool:
        return position < len(self.operands)

    def source(self, position: int, type: str) -> Getter:
        return self.get(self.operand(position), type)

    def destination(self, position: int, type: str) -> Setter:
        return self.set(self.operand(position), type)

    def immediate(self, position: int) -> int:
        operand = self.operand(position)
        if not isinstance(operand, Immediate):
            raise self.error("expected a constant")
        return operand.value

    def vector(self, position: int) -> tuple[Operand, ...]:
        """The elements of `{...}`; of a single operand a tuple of one."""
        operand = self.operand(position)
        return operand.elements if isinstance(operand, Vector) else (operand,)

    def moves_parts(self, size: int) -> Parts:
        """Say that each byte of the result comes from the same byte of the sources, whatever the others are."""
        destination, *sources = (self._registers_of(position) for position in range(len(self.operands)))
        self.parts = Parts(destination, tuple(sources), size, self.guard())
        return self.parts

    def computes_parts(self, type: str, count: int, cleared: np.ndarray | None = None, raised: int = 0) -> None:
        """Say that each byte of the result comes from the same and lower bytes of the first `count` sources, moved up
        by `raised` bytes, or that it is `cleared`."""
        destination, *sources = (self._registers_of(position) for position in range(count + 1))
        size = BITS[type]().itemsize
        if self._have_width(size, destination, *sources):
            self.parts = Parts(destination, tuple(sources), size, self.guard(), True, cleared, raised)

    def narrows_parts(self, result: str, source: str) -> None:
        """Say that the result is the lowest bytes of the source."""
        kept, size = BITS[result]().itemsize, BITS[source]().itemsize
        if self._have_width(kept, self._registers_of(0)) and self._have_width(size, self._registers_of(1)):
            rest = (None,) * (size // kept - 1)
            self.parts = Parts((*self._registers_of(0), *rest), (self._registers_of(1),), size, self.guard())

    def _have_width(self, size: int, *operands: tuple[int | None, ...]) -> bool:
        found = (index for operand in operands for index in operand if index is not None)
        return all(BITS[self.function.registers[index]]().itemsize == size for index in found)

    def _registers_of(self, position: int) -> tuple[int | None, ...]:
        return tuple(e.index if isinstance(e, Register) else None for e in self.vector(position))

    def get(self, operand: Operand, type: str) -> Getter:
        """A function that reads an operand as an array (or scalar) of the type."""
        if isinstance(operand, Register):
            return self._get_register(operand.index, type)
        if isinstance(operand, Immediate):
            return self._get_constant(_constant(operand, type))
        if isinstance(operand, Special):
            name, wanted = operand.name, TYPES[type]
            return lambda group: special(group.wave, name)[group.threads].astype(wanted)
        if isinstance(operand, Symbol):
            return self._get_symbol(operand, type)
        if isinstance(operand, Negated):
            inner = self.get(operand.operand, "pred")
            return lambda group: ~inner(group)
        raise self.error("has an operand that cannot be read")

    def _get_constant(self, constant: np.generic) -> Getter:
        return lambda group: np.full(group.size, constant)

    def scalar_or_source(self, position: int, type: str) -> Getter:
        """Like `source`, but a constant stays a scalar, which NumPy broadcasts: faster."""
        operand = self.operand(position)
        if isinstance(operand, Immediate):
            constant = _constant(operand, type)
            return lambda group: constant
        return self.get(operand, type)

    def _get_register(self, index: int, type: str) -> Getter:
        self.sources.add(index)
        held, wanted, bits = BITS[self.function.registers[index]], TYPES[type], BITS[type]
        if held == wanted:
            return lambda group: group.registers[index]
        if held == bits:
            return lambda group: group.registers[index].view(wanted)
        if held != np.bool_ and wanted != np.bool_ and held().itemsize > bits().itemsize:
            return lambda group: group.registers[index].astype(bits).view(wanted)
        raise self.error(f"reads a register of type {self.function.registers[index]} as {type}")

    def _get_symbol(self, symbol: Symbol, type: str) -> Getter:
        """The address of a variable in its own state space."""
        name, offset, wanted = symbol.name, symbol.offset, TYPES[type]
        if name in self.layout.shared:
            first = self.layout.shared[name] + offset
            return lambda group: (group.wave.shared.base(group.slots) + first).astype(wanted)
        if name in self.layout.local:
            address = self.layout.local[name] + offset
            return lambda group: np.full(group.size, address, wanted)
        return lambda group: np.full(group.size, group.wave.launch.address_of(name) + offset, wanted)

    def set(self, operand: Operand, type: str) -> Setter:
        """A function that writes an array of the type to an operand."""
        if operand is None:
            return lambda group, value: None
        if not isinstance(operand, Register):
            raise self.error("has a destination that is no register")
        index = operand.index
        self.destinations.add(index)
        held, made = BITS[self.function.registers[index]], TYPES[type]
        if held == made:
            return lambda group, value: group.registers.__setitem__(index, value)
        return _narrow_setter(index, held, made) if held().itemsize != made().itemsize else _view_setter(index, held)

    def masked_set(self, operand: Operand, type: str) -> Callable[[Group, np.ndarray, np.ndarray | None], None]:
        """Like `set`, for values of only those threads whose mask is on (None: of all)."""
        write = self.set(operand, type)
        if operand is None:
            return lambda group, value, mask: None
        index, made = operand.index, TYPES[type]

        def masked_write(group: Group, value: np.ndarray, mask: np.ndarray | None) -> None:
            if mask is None:
                write(group, value)
                return
            old = group.registers[index]
            whole = np.zeros(group.size, made)
            whole[mask] = value
            write(group, whole)
            group.merge(index, mask, old)

        return masked_write

    def destination_pair(self) -> tuple[Operand, Operand]:
        """The two destinations of `a|p`; the second is None where there is only one."""
        operand = self.operand(0)
        return (operand.first, operand.second) if isinstance(operand, Pair) else (operand, None)

    def address(self, position: int) -> Getter:
        """The addresses of `[base+offset]` as uint64."""
        operand = self.operand(position)
        if not isinstance(operand, Memory):
            raise self.error("expected an address")
        return self.address_of(operand)

    def address_of(self, operand: Memory) -> Getter:
        base, offset = operand.base, operand.offset
        if isinstance(base, Symbol):
            return self._get_symbol(Symbol(base.name, offset), "u64")
        if isinstance(base, Immediate):
            return self._get_constant(np.uint64(base.value + offset))
        narrow = isinstance(base, Register) and self.function.registers[base.index].endswith("32")
        read = self.get(base, "u32" if narrow else "u64")
        step = np.uint64(offset & (1 << 64) - 1)
        if narrow:
            small = np.uint32(offset & (1 << 32) - 1)
            return lambda group: (read(group) + small).astype(np.uint64)
        return lambda group: read(group) + step


def _view_setter(index: int, held: type) -> Setter:
    def write(group: Group, value: np.ndarray) -> None:
        group.registers[index] = value.view(held)

    return write


def _narrow_setter(index: int, held: type, made: type) -> Setter:
    """Into a wider register: extended by the sign of its type."""
    wide = np.dtype(f"i{held().itemsize}") if np.issubdtype(made, np.signedinteger) else held

    def write(group: Group, value: np.ndarray) -> None:
        group.registers[index] = value.astype(wide).view(held)

    return write


def _constant(operand: Immediate, type: str) -> np.generic:
    wanted = TYPES[type]
    if wanted is np.bool_:
        return np.bool_(operand.value)
    if operand.kind == "f64" and wanted is np.float32:
        return np.uint64(operand.value).view(np.float64).astype(np.float32)
    if operand.kind == "f32" and wanted is np.float64:
        return np.uint32(operand.value).view(np.float32).astype(np.float64)
    bits = BITS[type]
    return bits(operand.value & (1 << 8 * bits().itemsize) - 1).view(wanted)
