"""Every op class of tile IR is declared to the plan, and one that is not is an error before anything is compiled."""

from __future__ import annotations

import pytest
from xdsl.dialects import arith

from deuteron.backend.cpu.plan import ops
from deuteron.errors import CompilationError, InternalError
from deuteron.ir.arith import constant
from deuteron.ir.tt import dot, memory
from deuteron.ir.ttg.shared import LocalDeallocOp
from deuteron.ir.types import f32, i32, tile


def test_a_class_without_a_declaration_is_named():
    declarations = {op: declared for op, declared in ops.DECLARATIONS.items() if op is not dot.DotOp}
    with pytest.raises(InternalError, match=r"says nothing of tt\.dot"):
        ops.check_complete(declarations)


def test_an_op_of_another_dialect_is_refused_at_its_place():
    with pytest.raises(CompilationError, match=r"cannot compile 'ttg\.local_dealloc'"):
        ops.declared(LocalDeallocOp.create())


def test_what_is_lazy_depends_on_the_op():
    """A load of a tile is, one of a scalar is done where it stands."""
    number = constant(1, i32)
    assert ops.declared(number).is_lazy(number)
    assert not ops.DECLARATIONS[memory.StoreOp].is_lazy(number)


def test_steps_and_weights():
    x, y = constant(3, tile(i32, [8])), constant(0, tile(f32, [8]))
    product, total = arith.MuliOp(x.result, x.result), arith.AddfOp(y.result, y.result)
    assert ops.declared(product).step(product, [0, 1]) == 3
    assert ops.declared(product).step(product, [1, 1]) == "irregular"
    assert ops.declared(product).weight(product) < ops.declared(total).weight(total)
