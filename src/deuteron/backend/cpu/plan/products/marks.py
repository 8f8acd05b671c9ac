"""Marks on ops of a prepared function: products that the processor has, and copies that are operands of them.

tt.dot %a, %b {cpu.product = "bf16 pairs", cpu.b_is_transposed, cpu.steps = 4, cpu.columns = 32}
tt.broadcast %x {cpu.kept_as = "i16", cpu.steps = 4}
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntAttr, StringAttr, UnitAttr
from xdsl.ir import Operation, SSAValue

from deuteron.backend.cpu.products.products import NATIVE_PRODUCTS, NativeProduct

_PRODUCT = "cpu.product"
_TRANSPOSED = "cpu.b_is_transposed"
_KEPT_AS = "cpu.kept_as"
_STEPS = "cpu.steps"
_COLUMNS = "cpu.columns"
_BF16 = "i16"  # as native products have it


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


def is_only_multiplied(value: SSAValue) -> bool:
    """Whether a tile of bf16 has become operands of native products and nothing else, which take subnormal numbers
    for 0.
    """
    uses = list(value.uses)
    made = [use.operation.results for use in uses]
    return bool(uses) and all(len(results) == 1 and operand_type(results[0]) == _BF16 for results in made)


def mark_steps(op: Operation, steps: int, columns: int = 0) -> None:
    """Say of how many steps of a loop products are computed together, and how many columns the panels of B have.

    Of a dot, or of the copy that is its operand.
    """
    op.attributes[_STEPS] = IntAttr(steps)
    op.attributes[_COLUMNS] = IntAttr(columns)


def steps_of(op: Operation) -> int:
    marked = op.attributes.get(_STEPS)
    return marked.data if marked is not None else 1


def columns_of(op: Operation) -> int:
    """Of the panels; 0: there are none."""
    marked = op.attributes.get(_COLUMNS)
    return marked.data if marked is not None else 0
