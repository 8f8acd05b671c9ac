"""tt.elementwise_inline_asm: the assembly once for every pack of a thread's registers, in a scope of its own.

Operands have the width of their register: narrow elements are put together, or extended by zeros.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, Operation

from deuteron.backend.gpu.context import Context, Rule
from deuteron.backend.gpu.elements import bits_type, from_bits, to_bits
from deuteron.backend.gpu.fragment import Fragment, Operand
from deuteron.backend.gpu.rules.map_elementwise import in_groups
from deuteron.backend.gpu.words import pack, unpack, word_type
from deuteron.backend.llvm.builder import Touches
from deuteron.backend.llvm.module import escaped
from deuteron.backend.llvm.types import Value, is_float
from deuteron.ir.tt.inline_asm import element_bits
from deuteron.ptx.inline import REGISTER_BITS, Constraints, parse_constraints, per_register

_TYPES = {"h": "i16", "r": "i32", "l": "i64", "f": "float", "d": "double"}


def elementwise_inline_asm(ctx: Context, op: Operation, *operands: Operand) -> list[Operand]:
    tiles = [operand for operand in operands if isinstance(operand, Fragment)]
    if tiles:
        return in_groups(tiles[0].layout, op.pack, tiles, lambda values: _run(ctx, op, values))
    values = _run(ctx, op, [value for operand in operands for value in [operand] * op.pack])
    return values[:: op.pack]


def _run(ctx: Context, op: Operation, values: Sequence[Value]) -> list[Value]:
    """The results of one pack; `values` has the pack of each argument."""
    constraints, count = parse_constraints(op.constraints.data), op.pack
    words = []
    for number, arg in enumerate(op.args):
        words += _words(ctx, values[number * count : (number + 1) * count], arg.type)
    inputs = [_in_register(ctx, word, letter) for word, letter in zip(words, constraints.inputs, strict=True)]
    outputs = iter(_assembly(ctx, op, constraints, inputs))
    return [element for result in op.res for element in _elements(ctx, outputs, result.type, count)]


def _assembly(ctx: Context, op: Operation, constraints: Constraints, inputs: Sequence[Value]) -> list[Value]:
    """The outputs as integers."""
    b, types = ctx.b, [_TYPES[letter] for letter in constraints.outputs]
    is_pure = op.pure.value.data and not constraints.touches_memory
    touches = Touches.NOTHING if is_pure else Touches.MEMORY
    returned = types[0] if len(types) == 1 else "{ " + ", ".join(types) + " }"
    # A newline before the end of the scope: the template may end with a comment.
    text = escaped("{ " + op.asm_string.data + "\n}")
    result = b.assembly(touches, returned, text, constraints.text, *inputs, attributes="convergent nounwind")
    values = [result] if len(types) == 1 else [b.extractvalue(result, n, type) for n, type in enumerate(types)]
    bits = [f"i{REGISTER_BITS[letter]}" for letter in constraints.outputs]
    return [b.bitcast(value, type) for value, type in zip(values, bits, strict=True)]


def _words(ctx: Context, elements: Sequence[Value], type: Attribute) -> list[Value]:
    step = per_register(element_bits(type), len(elements))
    bits = [to_bits(ctx.b, element, type) for element in elements]
    groups = [bits[begin : begin + step] for begin in range(0, len(bits), step)]
    groups[-1] += groups[-1][-1:] * (step - len(groups[-1]))
    return [_joined(ctx, group) for group in groups]


def _joined(ctx: Context, group: list[Value]) -> Value:
    """Of three bytes four: a word has a power of two of them."""
    if len(group) == 1:
        return group[0]
    whole = 1 << (len(group) - 1).bit_length()
    return pack(ctx.b, group + group[-1:] * (whole - len(group)))[0]


def _in_register(ctx: Context, word: Value, letter: str) -> Value:
    wide, b = f"i{REGISTER_BITS[letter]}", ctx.b
    return b.bitcast(b.zext(word, wide), _TYPES[letter]) if is_float(_TYPES[letter]) else b.zext(word, wide)


def _elements(ctx: Context, outputs, type: Attribute, count: int) -> list[Value]:
    """The elements of a result out of its registers, the next ones of the outputs."""
    bits, step, found = bits_type(type), per_register(element_bits(type), count), []
    for _ in range(0, count, step):
        if step == 1:
            found.append(ctx.b.trunc(next(outputs), bits))
            continue
        whole = 1 << (step - 1).bit_length()
        found += unpack(ctx.b, [ctx.b.trunc(next(outputs), word_type(bits, whole))], bits, whole)[:step]
    return [from_bits(ctx.b, value, type) for value in found[:count]]


RULES: dict[str, Rule] = {"tt.elementwise_inline_asm": elementwise_inline_asm}
