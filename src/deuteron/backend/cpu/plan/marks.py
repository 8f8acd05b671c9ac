"""Marks on ops of a prepared function: products that the processor has, and copies that are operands of them.

tt.dot %a, %b {cpu.product = "bf16 pairs", cpu.b_is_transposed}
tt.broadcast %x {cpu.kept_as = "i16"}
"""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr, UnitAttr
from xdsl.ir import Operation, SSAValue

from deuteron.backend.cpu.products import NATIVE_PRODUCTS, NativeProduct

_PRODUCT = "cpu.product"
_TRANSPOSED = "cpu.b_is_transposed"
_KEPT_AS = "cpu.kept_as"


def mark_product(op: Operation, product: NativeProduct, b_is_transposed: bool) -> None:
    """Say how a product is computed, and whether its second operand is the transpose of B."""
    op.attributes[_PRODUCT] = StringAttr(product.name)
    if b_is_transposed:
        op.attributes[_TRANSPOSED] = UnitAttr()


def mark_operand(op: Operation, product: NativeProduct) -> None:
    """Say that the result is kept in the format of a product, which alone reads it."""
    op.attributes[_KEPT_AS] = StringAttr(product.element)


def product_of(op: Operation) -> NativeProduct | None:
    """The native product that this one was marked for."""
    marked = op.attributes.get(_PRODUCT)
    return NATIVE_PRODUCTS[marked.data] if marked is not None else None


def b_is_transposed(op: Operation) -> bool:
    return _TRANSPOSED in op.attributes


def operand_type(value: SSAValue) -> str | None:
    """The LLVM type of the elements of a copy that was made here."""
    marked = value.owner.attributes.get(_KEPT_AS) if isinstance(value.owner, Operation) else None
    return marked.data if marked is not None else None
