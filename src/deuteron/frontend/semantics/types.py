"""From types of the language to types of tile IR.

    int32, uint32                        i32                  signedness goes: it is in the ops from here on
    pointer_type(float16)                !tt.ptr<f16>
    block_type(float32, (64, 32))        tensor<64x32xf32>

Nothing leads back: a Tensor keeps its type of the language beside the SSA value.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, Operation

from deuteron.frontend.context import Context
from deuteron.frontend.values import Tensor
from deuteron.ir import types as ir
from deuteron.language.types import block_type, dtype

_FLOATS: dict[str, Attribute] = {declared.dtype_name: type for type, declared in ir.FLOAT_TYPES.items()}
_INTEGERS: dict[int, Attribute] = {1: ir.i1, 8: ir.i8, 16: ir.i16, 32: ir.i32, 64: ir.i64}


def ir_type(type: dtype) -> Attribute:
    """The type in tile IR."""
    if type.is_block():
        return ir.tile(ir_type(type.scalar), type.shape)
    if type.is_ptr():
        return ir.PointerType(ir_type(type.element_ty))
    return _FLOATS[type.name] if type.is_floating() else _INTEGERS[type.int_bitwidth]


def type_of(dtype: dtype, shape: Sequence[int]) -> dtype:
    """The type of a tile of that shape; the dtype itself for shape ()."""
    return block_type(dtype, shape) if shape else dtype


def tensor(ctx: Context, op: Operation, type: dtype) -> Tensor:
    """Insert an op; its only result as a value of that type."""
    return Tensor(ctx.builder.value(op), type)
