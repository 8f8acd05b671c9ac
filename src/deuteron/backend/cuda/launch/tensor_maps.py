"""The tensor maps that a kernel of ttgir takes: one for each tensor, box and swizzle that its TMA copies are of.

    maps = tensor_maps_of(func)      {op: TensorMap(...)}      equal maps are one parameter of the kernel

What the maps are made of are expressions of the kernel's arguments: descriptors that are not have been rewritten to
pointers before.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Operation

from deuteron.analysis.addresses.argument_expressions import expression_of
from deuteron.backend.tensor_map import TensorMap
from deuteron.backend.ttir import signature_type
from deuteron.errors import CompilationError
from deuteron.ir.location import from_attribute, import_path
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.descriptor import DescriptorReduceKind, TensorDescType, descriptor_of
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.ttng.tma import AsyncTMAReduceOp, TMAOp

BITWISE = (DescriptorReduceKind.AND, DescriptorReduceKind.OR, DescriptorReduceKind.XOR)


def tensor_maps_of(func: FuncOp) -> dict[Operation, TensorMap]:
    """The map that each copy goes through, in the order of the ops."""
    return {op: _tensor_map(op) for op in nested_ops(func, TMAOp)}


def _tensor_map(op: TMAOp) -> TensorMap:
    made, box = descriptor_of(op), op.box
    location, call_chain = from_attribute(made.location)
    found = [expression_of(value) for value in (made.base, *made.shape, *made.strides[:-1])]
    if None in found:
        message = f"{op.name}: the tensor descriptor depends on more than the kernel's arguments. Use pointers."
        raise CompilationError(message, location, call_chain)
    rank = len(made.shape)
    return TensorMap(
        element=_element(op),
        box=(*[1] * (rank - len(box.shape)), *box.shape),
        swizzle=box.swizzle,
        padding="nan" if made.pads_with_nan else "zero",
        base=found[0],
        sizes=tuple(found[1 : rank + 1]),
        strides=tuple(found[rank + 1 :]),
        place=f"{import_path(location.file)}:{location.line}" if location else "an unknown place",
        is_conditional=made.is_conditional,
        is_inferred=made.is_inferred,
    )


def _element(op: TMAOp) -> str:
    """The element type in a signature. Bitwise reductions are of unsigned integers: an H200 has none of signed ones of
    64 bits.
    """
    type: TensorDescType = op.desc.type
    element = type.block.element_type
    if not isinstance(element, IntegerType):
        return signature_type(element)
    is_bitwise = isinstance(op, AsyncTMAReduceOp) and op.kind.value.data in BITWISE
    return f"{'i' if type.is_signed and not is_bitwise else 'u'}{element.width.data}"
