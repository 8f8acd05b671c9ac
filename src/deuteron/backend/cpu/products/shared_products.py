"""A matrix product that a kernel has several times is a function, which is compiled once.

    tt.dot %a, %b : 64x64x64                call void @product.0(ptr %a, ptr %b, ptr %c)
    tt.dot %c, %d : 64x64x64        ->      call void @product.0(ptr %c, ptr %d, ptr %e)
    tt.dot %p, %q : 64x32x64                ... its loops, where it is

One of 16x16x16 is 350 instructions of LLVM IR, of which each takes 0.1 ms. Those by tiles are no functions: they are a
few instructions. What is shared belongs to no line of the kernel.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import astuple

from deuteron.backend.cpu.plan.items import Dot, dots_of
from deuteron.backend.cpu.plan.region import Region
from deuteron.backend.cpu.products.blocking import Blocking, Given, MatmulShape, Operands
from deuteron.backend.cpu.products.microkernel import emit_matmul
from deuteron.backend.cpu.products.products import TileProduct, VectorProduct
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value
from deuteron.ir.types import shape_of

_ATTRIBUTES = 'noinline nounwind null_pointer_is_valid "no-builtins"'  # as of the kernel: see lowering.py


def matmul_shape(item: Dot) -> MatmulShape:
    """Of one matrix of a batch; along k in lanes."""
    (m, n), group = shape_of(item.op.result.type)[-2:], item.product.group if item.product else 1
    lda, ldb, ldc = (place.strides[-2] for place in (item.a, item.packed or item.b, item.result))
    panel = item.panels.pitch // item.panels.group if item.panels else 0
    return MatmulShape(m, n, shape_of(item.op.a.type)[-1] // group, lda // group, ldb, ldc, panel)


def repeated_products(body: Region) -> frozenset[Hashable]:
    """The kinds of products of which a kernel has several."""
    counts = Counter(map(kind_of, dots_of(body)))
    return frozenset(kind for kind, count in counts.items() if count > 1)


def kind_of(item: Dot) -> Hashable | None:
    """Products of one kind are the same code; None: those whose code is not shared."""
    if isinstance(item.product, TileProduct):
        return None
    return matmul_shape(item), item.product, item.result.slot.type, item.steps == 1, item.begins_sums or item.from_zero


def call_matmul(
    b: Builder,
    shape: MatmulShape,
    operands: Operands,
    product: VectorProduct,
    blocking: Blocking,
    given: Given,
) -> None:
    """`emit_matmul`, by a function for all products that are given as much."""
    values = [one for one in given if isinstance(one, Value)]
    of_given = "".join("v" if isinstance(one, Value) else str(one)[0] for one in given)
    sizes = "x".join(map(str, astuple(shape)))
    name = f"product.{sizes}.{type(product).__name__}.{product.total}.{of_given}"
    if not b.module.has_function(name):
        typed = [("ptr", "a"), ("ptr", "b"), ("ptr", "c"), *((value.type, "given") for value in values)]
        own = b.module.function(name, "void", typed, attributes=_ATTRIBUTES)
        first, second, third, *rest = own.parameters
        inside = Given(*(rest.pop(0) if isinstance(one, Value) else one for one in given))
        emit_matmul(own, shape, Operands(first, second, third), product, blocking, inside)
        own.ret()
    b.call("void", name, *operands, *values)
