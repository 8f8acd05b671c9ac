"""Inline assembly as the ops that do what its PTX does.

    tt.elementwise_inline_asm(%x) "tanh.approx.f32 $0, $1;" "=f,f"      ->      math.tanh(%x)

A pack is split into the tiles of its first elements, of its second ones ..., neighbours in row-major order. It knows
instructions that compute, in straight lines; branches, memory and threads it refuses.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.scf import YieldOp
from xdsl.ir import Attribute, Block, SSAValue

from deuteron.errors import CompilationError
from deuteron.interpreter.assembly.floating import ALL_RULES
from deuteron.interpreter.assembly.registers import BITS, Registers
from deuteron.ir.builder import Builder
from deuteron.ir.location import from_attribute
from deuteron.ir.tt.inline_asm import ElementwiseInlineAsmOp, element_bits
from deuteron.ir.tt.shape import JoinOp, ReshapeOp, SplatOp, SplitOp
from deuteron.ir.types import element_type_of, i1, is_pointer, is_tile, num_elements_of, shape_of
from deuteron.ptx.inline import REGISTER_BITS, num_registers, parse_constraints, per_register, template

# How many operands instructions have, their destination among them.
_OPERANDS = {
    (0,): "trap",
    (2,): "mov not neg abs brev popc clz bfind testp rcp sqrt rsqrt ex2 lg2 sin cos tanh",
    (2, 3): "cvt",
    (3,): "add sub mul div rem and or xor shl shr copysign",
    (3, 4): "min max setp",
    (4,): "fma mad selp slct shf prmt bfe sad dp4a dp2a",
    (5,): "lop3 bfi",
}
_OPERANDS_OF = {name: counts for counts, names in _OPERANDS.items() for name in names.split()}


def translated(op: ElementwiseInlineAsmOp, builder: Builder, args: Sequence[SSAValue]) -> list[SSAValue]:
    """The results of an op of assembly on these arguments, by ops that the builder inserts."""
    return _Translation(op, builder, args).results()


def as_block(op: ElementwiseInlineAsmOp) -> Block:
    """A block that does what an op does: its arguments are the op's, and it ends with the results."""
    block = Block(arg_types=[arg.type for arg in op.args])
    builder = Builder.at_end(block, op.location)
    builder.insert(YieldOp(*translated(op, builder, block.args)))
    return block


class _Translation:
    """One op while it is translated."""

    def __init__(self, op: ElementwiseInlineAsmOp, builder: Builder, args: Sequence[SSAValue]):
        self._op, self._b, self._args, self._pack = op, builder, args, op.pack
        constraints = parse_constraints(op.constraints.data)
        try:
            self._function = template(op.asm_string.data, constraints)
        except ValueError as error:
            raise CompilationError(f"tl.inline_asm_elementwise: {error}", *from_attribute(op.location)) from None
        self._shape = shape_of(op.res[0].type)
        self._count = num_elements_of(op.res[0].type) if self._shape else 1
        if self._count > self._pack and self._count % self._pack:
            raise CompilationError(
                f"tl.inline_asm_elementwise: where there is no PTX, pack={self._pack} has to divide the number of "
                f"elements, {self._count}. Use a power of two.",
                *from_attribute(op.location),
            )
        shape = self._shape if self._pack == 1 else (max(self._count // self._pack, 1),) if self._shape else ()
        self._registers = Registers(op, self._b, self._function, shape)
        self._letters = constraints.operands
        self._num_outputs = len(constraints.outputs)
        self._tied = constraints.tied

    def results(self) -> list[SSAValue]:
        self._enter_arguments()
        self._run()
        register, results = 0, []
        for result in self._op.res:
            count = num_registers(element_bits(result.type), self._pack)
            registers = range(register, register + count)
            results.append(self._result(result.type, registers) if result.first_use else self._nothing(result.type))
            register += count
        return results

    def _run(self) -> None:
        r = self._registers
        for instruction in self._function.instructions:
            r.instruction = instruction
            name, *modifiers = instruction.opcode.split(".")
            rule = ALL_RULES.get(name)
            if rule is None:
                raise r.refusal(f"'{name}'")
            count = len(instruction.operands)
            if count not in _OPERANDS_OF.get(name, (count,)):
                raise r.refusal(f"{count} operands")
            try:
                rule(r, modifiers, instruction.operands)
            except (
                ValueError,
                KeyError,
                IndexError,
                TypeError,
            ):  # types and operands that are not as a rule takes them apart
                raise r.refusal("its modifiers or operands") from None

    def _enter_arguments(self) -> None:
        register = self._num_outputs
        for arg in self._args:
            for word in self._words(arg):
                bits = REGISTER_BITS[self._letters[register]]
                self._registers.values[register] = self._registers.resized(word, bits)
                register += 1
        for number, output in self._tied:
            self._registers.values[output] = self._registers.values[self._num_outputs + number]

    def _words(self, arg: SSAValue) -> list[SSAValue]:
        """The registers of an argument, as integers."""
        r, bits = self._registers, element_bits(arg.type)
        if is_pointer(arg.type):
            r.instruction = self._function.instructions[0]
            raise r.refusal("pointers")
        elements = [self._integer(element, bits) for element in self._unpacked(arg)]
        step = per_register(bits, self._pack)
        groups = [elements[begin : begin + step] for begin in range(0, len(elements), step)]
        groups = [group + group[-1:] * (_power_of_two(len(group)) - len(group)) for group in groups]
        return [r.joined(group) for group in groups]

    def _integer(self, element: SSAValue, bits: int) -> SSAValue:
        if element_type_of(element.type) == i1:
            return self._registers.resized(element, bits)
        return self._registers.bits(element, BITS[bits])

    def _unpacked(self, arg: SSAValue) -> list[SSAValue]:
        """A tile for each place of a pack; where there are too few elements, the last one again."""
        if self._pack == 1 or not self._shape:
            return [arg] * self._pack
        flat = self._b.value(ReshapeOp(arg, (self._count,)))
        parts = self._split(flat, min(self._pack, self._count))
        return parts + parts[-1:] * (self._pack - len(parts))

    def _split(self, flat: SSAValue, count: int) -> list[SSAValue]:
        """Every `count`-th element, from the first, the second ..."""
        if count == 1:
            return [flat]
        half = self._b.insert(SplitOp(self._b.value(ReshapeOp(flat, (num_elements_of(flat.type) // 2, 2)))))
        even, odd = (self._split(self._tile(part), count // 2) for part in (half.lhs, half.rhs))
        return [part for pair in zip(even, odd, strict=True) for part in pair]

    def _tile(self, part: SSAValue) -> SSAValue:
        return part if is_tile(part.type) else self._b.value(SplatOp(part, (1,)))

    def _nothing(self, type: Attribute) -> SSAValue:
        """Of a result that nobody reads, which the template need not write: "griddepcontrol.wait; // dummy $0"."""
        return self._b.constant(0, type)

    def _result(self, type: Attribute, registers: range) -> SSAValue:
        r, bits = self._registers, element_bits(type)
        step, elements = per_register(bits, self._pack), []
        for register in registers:
            word = r.values.get(register)
            if word is None:
                r.instruction = self._function.instructions[-1]
                raise r.refusal(f"${register}, which is never written")
            whole = _power_of_two(step)
            elements += r.split(r.resized(word, bits * whole), whole)[:step]
        values = [self._element(element, element_type_of(type)) for element in elements[: self._pack]]
        return self._packed(values, type)

    def _element(self, value: SSAValue, type: Attribute) -> SSAValue:
        return self._registers.resized(value, 1) if type == i1 else self._registers.bits(value, type)

    def _packed(self, values: list[SSAValue], type: Attribute) -> SSAValue:
        if self._pack == 1 or not self._shape:
            return values[0]
        flat = self._joined(values[: min(self._pack, self._count)])
        return self._b.value(ReshapeOp(flat, self._shape))

    def _joined(self, values: list[SSAValue]) -> SSAValue:
        """The inverse of `_split`."""
        if len(values) == 1:
            return values[0]
        pair = JoinOp(self._joined(values[::2]), self._joined(values[1::2]))
        joined = self._b.value(pair)
        return self._b.value(ReshapeOp(joined, (num_elements_of(joined.type),)))


def _power_of_two(count: int) -> int:
    return 1 << (count - 1).bit_length()
