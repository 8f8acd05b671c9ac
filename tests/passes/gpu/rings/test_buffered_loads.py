"""Loads that are copied into buffers: which dots read, and where they load in an iteration that may not come."""

from itertools import product

import numpy as np
import pytest
from ir_text import parse_kernel, value_named

from deuteron.interpreter import run_module
from deuteron.ir.builder import Builder
from deuteron.ir.tt.memory import LoadOp
from deuteron.passes.gpu.rings.buffered_loads import fed_to_dots, masked
from deuteron.passes.rewrite import Values, erase

CACHE = "boundaryCheck = array<i32>, cache = 1 : i32, evict = 1 : i32, isVolatile = false"
DOT = "inputPrecision = 0 : i32, maxNumImpreciseAcc = 0 : i32"
HALF, SINGLE = "tensor<16x16xf16>", "tensor<16x16xf32>"


def load(name: str, pointers: str, shape: str, has_mask: bool = False) -> str:
    types = [f"{shape.format('!tt.ptr<i32>')}", *([shape.format("i1"), shape.format("i32")] if has_mask else [])]
    operands = [pointers, *(["%mask", "%other"] if has_mask else [])]
    segments = "1, 1, 1" if has_mask else "1, 0, 0"
    return f"""%{name} = "tt.load"({", ".join(operands)}) <{{operandSegmentSizes = array<i32: {segments}>, {CACHE}}}>
      : ({", ".join(types)}) -> {shape.format("i32")}"""


@pytest.mark.parametrize(("shape", "has_mask"), list(product(["{}", "tensor<8x{}>"], [False, True])))
def test_nothing_is_loaded_where_the_iteration_does_not_come(shape, has_mask):
    """The pointers point nowhere then, which the interpreter would say."""
    is_tile = "tensor" in shape
    pointers = f'%p = "tt.splat"(%a) : (!tt.ptr<i32>) -> {shape.format("!tt.ptr<i32>")}' if is_tile else ""
    mask = f'%mask = "tt.splat"(%m) : (i1) -> {shape.format("i1")}' if is_tile else ""
    other = f'%other = "arith.constant"() <{{value = dense<5> : {shape.format("i32")}}}> : () -> {shape.format("i32")}'
    scalar = '%other = "arith.constant"() <{value = 5 : i32}> : () -> i32'
    name, mask_name = ("%p", "%mask") if is_tile else ("%a", "%m")
    body = load("x", name, shape, has_mask).replace("%mask", mask_name)
    module = parse_kernel(
        "%a: !tt.ptr<i32>, %m: i1, %runs: i1", "\n".join([pointers, mask, other if is_tile else scalar, body])
    )
    one = value_named(module, "x").owner
    b = Builder.before(one)
    pointer, mask_of_load = masked(b, one, Values(), value_named(module, "runs"))
    assert masked(b, one, Values(), None) == (one.ptr, one.mask)
    b.insert(LoadOp(pointer, mask_of_load, value_named(module, "other")))
    erase(one)
    for m, runs in product([False, True], repeat=2):
        is_loaded = runs and (m or not has_mask)
        given = np.arange(4, dtype=np.int32) if is_loaded else None
        run_module(module, [given, m, runs], (1, 1, 1))


def test_fed_to_dots():
    """Not through another load, nor by what is added to; through what has no region."""
    module = parse_kernel(
        f"%p: tensor<16x16x!tt.ptr<f16>>, %h: {HALF}, %s: {SINGLE}, %n: i32",
        f"""
        %x = "tt.load"(%p) <{{operandSegmentSizes = array<i32: 1, 0, 0>, {CACHE}}}>
          : (tensor<16x16x!tt.ptr<f16>>) -> {HALF}
        %y = "tt.trans"(%x) <{{order = array<i32: 1, 0>}}> : ({HALF}) -> {HALF}
        %z = "arith.addf"(%s, %s) <{{fastmath = #arith.fastmath<none>}}> : ({SINGLE}, {SINGLE}) -> {SINGLE}
        %d = "tt.dot"(%y, %h, %z) <{{{DOT}}}> : ({HALF}, {HALF}, {SINGLE}) -> {SINGLE}
        use %d : {SINGLE}""",
    )
    fed = fed_to_dots(module)
    assert {value.name_hint for value in fed} == {"x", "y", "h"}
