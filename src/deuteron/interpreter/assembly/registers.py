"""The registers of an inline assembly template while its instructions become ops: each holds an integer of its width.

    x = r.read(operand, "f32")          the bits as a float
    r.write(operand, y, "f32")

A predicate is an i1. Values have one shape, that of the tiles. What is not known is refused, by name, with a way out.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from xdsl.dialects.arith import OrIOp, ShLIOp, ShRUIOp
from xdsl.ir import Attribute, Operation, SSAValue

from deuteron.errors import CompilationError
from deuteron.ir.arith import SelectOp
from deuteron.ir.builder import Builder
from deuteron.ir.casts import ExtSIOp, ExtUIOp, TruncIOp
from deuteron.ir.location import from_attribute
from deuteron.ir.tt.convert import BitcastOp
from deuteron.ir.tt.program import GlobalTimerOp
from deuteron.ir.tt.shape import SplatOp
from deuteron.ir.types import bf16, bit_width_of, f16, f32, f64, i1, i8, i16, i32, i64, tile, with_element_type
from deuteron.ptx.syntax import Function, Immediate, Instruction, Negated, Operand, Register, Special, Vector

INTEGERS: dict[str, Attribute] = {
    f"{kind}{bits}": type for kind in "bsu" for bits, type in ((8, i8), (16, i16), (32, i32), (64, i64))
}
FLOATS: dict[str, Attribute] = {"f16": f16, "bf16": bf16, "f32": f32, "f64": f64}
TYPES: dict[str, Attribute] = {**INTEGERS, **FLOATS, "pred": i1}
PAIRS = {"f16x2": "f16", "bf16x2": "bf16", "s16x2": "s16", "u16x2": "u16", "f32x2": "f32"}
_CLOCKS = ("%globaltimer", "%clock", "%clock64")
BITS = {1: i1, 8: i8, 16: i16, 32: i32, 64: i64}

Rule = Callable[["Registers", list[str], Sequence[Operand]], None]


class Registers:
    """The state of one template: `values` by the number of the register."""

    def __init__(self, op: Operation, builder: Builder, function: Function, shape: tuple[int, ...]):
        self._op, self._b, self._function, self._shape = op, builder, function, shape
        self.values: dict[int, SSAValue] = {}
        self.instruction: Instruction | None = None

    # -- ops ---

    def type(self, element: Attribute) -> Attribute:
        return tile(element, self._shape)

    def op(self, op_class: type[Operation], *operands: SSAValue) -> SSAValue:
        """The result of an op whose class takes its operands alone."""
        return self._b.value(op_class(*operands))

    def cast(self, op_class: type[Operation], value: SSAValue, element: Attribute) -> SSAValue:
        return self._b.value(op_class(value, with_element_type(value.type, element)))

    def value(self, op: Operation) -> SSAValue:
        return self._b.value(op)

    def effect(self, op: Operation) -> None:
        self._b.insert(op)

    def constant(self, number: bool | int | float, element: Attribute) -> SSAValue:
        return self._b.constant(number, self.type(element))

    def bits(self, value: SSAValue, element: Attribute) -> SSAValue:
        """The same bits as another type of the same width."""
        is_same = with_element_type(value.type, element) == value.type
        return value if is_same else self._b.value(BitcastOp(value, element))

    def resized(self, value: SSAValue, bits: int, is_signed: bool = False) -> SSAValue:
        """An integer in another width."""
        has = bit_width_of(value.type)
        if has == bits:
            return value
        widen = ExtSIOp if is_signed else ExtUIOp
        return self.cast(TruncIOp if has > bits else widen, value, BITS[bits])

    def select(self, condition: SSAValue, x: SSAValue, y: SSAValue) -> SSAValue:
        return self.op(SelectOp, condition, x, y)

    # -- operands ---

    def read(self, operand: Operand, type: str) -> SSAValue:
        """The lowest bits of an operand as a PTX type."""
        element = TYPES[type]
        if isinstance(operand, Immediate):
            return self._immediate(operand, element)
        if isinstance(operand, Negated):
            return self.select(self.read(operand.operand, "pred"), self.constant(0, i1), self.constant(1, i1))
        if isinstance(operand, Vector):
            each = f"b{bit_width_of(element) // len(operand.elements)}"
            return self.bits(self.joined([self.read(part, each) for part in operand.elements]), element)
        if isinstance(operand, Special):
            return self.bits(self.resized(self._special(operand), bit_width_of(element)), element)
        if not isinstance(operand, Register):
            raise self.refusal("an operand that is no register or number")
        if operand.index not in self.values:
            raise self.refusal("a register that nothing has been written to")
        return self.bits(self.resized(self.values[operand.index], bit_width_of(element)), element)

    def _special(self, operand: Special) -> SSAValue:
        """A special register in 64 bits: nanoseconds of the clock, read once for all elements; the only processor."""
        if operand.name == "%smid":
            return self.constant(0, i64)
        if operand.name not in _CLOCKS:
            raise self.refusal(f"the special register '{operand.name}'")
        clock = self._b.value(GlobalTimerOp())
        return self._b.value(SplatOp(clock, self._shape)) if self._shape else clock

    def _immediate(self, operand: Immediate, element: Attribute) -> SSAValue:
        if element not in FLOATS.values():
            return self.constant(operand.value, element)
        if operand.kind is None:
            raise self.refusal("a whole number as a float")
        format, integer = ("<f", "<I") if operand.kind == "f32" else ("<d", "<Q")
        return self.constant(struct.unpack(format, struct.pack(integer, operand.value))[0], element)

    def write(self, operand: Operand, value: SSAValue, type: str) -> None:
        """Put a value of a PTX type into a register, extended by its sign where that is wider; where the instruction
        has a guard, only if it holds.
        """
        if operand is None:
            return
        if not isinstance(operand, Register):
            raise self.refusal("a destination that is no register")
        width = _bits_of(self._function.registers[operand.index])
        value = self.resized(self.bits(value, BITS[bit_width_of(value.type)]), width, type.startswith("s"))
        guard, before = self.instruction.guard, self.values.get(operand.index)
        if guard is not None and before is not None:
            holds = self.read(guard, "pred")
            first, second = (before, value) if self.instruction.guard_negated else (value, before)
            value = self.select(holds, first, second)
        self.values[operand.index] = value

    def parts(self, operand: Operand, type: str) -> list[SSAValue]:
        """The one value of a scalar type, the two of a pair, the lower one first."""
        if type not in PAIRS:
            return [self.read(operand, type)]
        element = TYPES[PAIRS[type]]
        return [self.bits(half, element) for half in self.split(self.read(operand, _whole(type)), 2)]

    def write_parts(self, operand: Operand, values: Sequence[SSAValue], type: str) -> None:
        if len(values) == 1:
            self.write(operand, values[0], type)
        else:
            halves = [self.bits(value, BITS[bit_width_of(value.type)]) for value in values]
            self.write(operand, self.joined(halves), _whole(type))

    def split(self, value: SSAValue, count: int) -> list[SSAValue]:
        """An integer in equal parts, the lowest first."""
        bits, type = bit_width_of(value.type) // count, BITS[bit_width_of(value.type)]
        shifted = [self.op(ShRUIOp, value, self.constant(n * bits, type)) if n else value for n in range(count)]
        return [self.resized(part, bits) for part in shifted]

    def joined(self, parts: Sequence[SSAValue]) -> SSAValue:
        """Integers of one width in one integer, the first in the lowest bits."""
        bits = bit_width_of(parts[0].type)
        whole = self.resized(parts[0], bits * len(parts))
        for number, part in enumerate(parts[1:], 1):
            wide = self.resized(part, bits * len(parts))
            whole = self.op(OrIOp, whole, self.op(ShLIOp, wide, self.constant(number * bits, BITS[bits * len(parts)])))
        return whole

    # -- what is not known ---

    def only(self, modifiers: Sequence[str], *known: str) -> None:
        """Refuse an instruction with other modifiers than these."""
        for modifier in modifiers:
            if modifier not in known:
                raise self.refusal(f"'.{modifier}' here")

    def refusal(self, what: str) -> CompilationError:
        return CompilationError(
            f"tl.inline_asm_elementwise: '{self.instruction.text}' is not known where there is no PTX, for {what}. "
            "Write it in the language, or compile for a GPU; docs/inline_asm.md lists what is known.",
            *from_attribute(self._op.location),
        )


def _whole(pair: str) -> str:
    """The bits of a pair."""
    return f"b{2 * bit_width_of(TYPES[PAIRS[pair]])}"


def _bits_of(type: str) -> int:
    return 1 if type == "pred" else bit_width_of(TYPES[type]) if type in TYPES else 32
