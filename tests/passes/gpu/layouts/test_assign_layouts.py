"""Layouts of whole kernels: what is coalesced, what the instructions want, and where conversions stand."""

from __future__ import annotations

import re

import pytest
from xdsl.context import Context

import deuteron as triton
import deuteron.language as tl
from deuteron.backend.cuda.target import architecture
from deuteron.errors import CompilationError
from deuteron.frontend import lower_function
from deuteron.ir.text import parse_module, print_module
from deuteron.ir.ttg.convert import ConvertLayoutOp
from deuteron.ir.ttg.layout import layout_of
from deuteron.ir.verifier import verify_ttgir
from deuteron.layout.distributed import mma_v2_accumulator, mma_v2_operand, slice_axis
from deuteron.machine.gpu import GPUConfig
from deuteron.passes import run_passes
from deuteron.passes.gpu.layouts.assign_layouts import AssignLayouts
from deuteron.passes.tile import tile_passes

HINT = (("tt.divisibility", 16),)


def assign(kernel, pointer_type="*fp32", num_warps=4, hinted=(), **constexprs):
    signature = {
        name: "constexpr" if name in constexprs else pointer_type if name.endswith("_ptr") else "i32"
        for name in kernel.arg_names
    }
    module = lower_function(kernel, signature, constexprs, {name: HINT for name in hinted})
    run_passes(module, tile_passes())
    AssignLayouts(GPUConfig(architecture(80).machine, num_warps)).apply(Context(), module)
    verify_ttgir(module, "assign-layouts")
    return module


def ops(module, name):
    return [op for op in module.walk() if op.name == name]


@triton.jit
def copy(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


@pytest.mark.parametrize(("hinted", "vector"), [(("x_ptr", "out_ptr", "n"), 4), ((), 1)])
def test_vectors_are_as_wide_as_alignment_allows(hinted, vector):
    module = assign(copy, hinted=hinted, BLOCK=512)
    (load,) = ops(module, "tt.load")
    run = sum(basis == (1 << bit,) for bit, basis in enumerate(layout_of(load.result.type).of("register")))
    assert 1 << run >= vector and layout_of(load.result.type).of("lane")[0] == (vector,)
    assert not ops(module, "ttg.convert_layout")


@triton.jit
def transpose(x_ptr, out_ptr):
    i, j = tl.arange(0, 64), tl.arange(0, 64)
    x = tl.load(x_ptr + i[:, None] * 64 + j[None, :])
    tl.store(out_ptr + i[None, :] * 64 + j[:, None], tl.trans(x) + 0.0)


def test_both_sides_of_a_transpose_are_coalesced_and_the_tile_is_converted_at_most_once():
    module = assign(transpose, hinted=("x_ptr", "out_ptr"))
    (load,), (store,) = ops(module, "tt.load"), ops(module, "tt.store")
    assert layout_of(load.result.type).of("register")[:2] == ((0, 1), (0, 2))
    assert layout_of(store.value.type).of("register")[:2] == ((1, 0), (2, 0))
    assert len(ops(module, "ttg.convert_layout")) <= 1


@triton.jit
def multiply(a_ptr, b_ptr, out_ptr, K, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    acc = tl.zeros([BLOCK, BLOCK], tl.float32)
    for k in range(0, K, BLOCK):
        a = tl.load(a_ptr + i[:, None] * K + k + i[None, :])
        b = tl.load(b_ptr + (k + i)[:, None] * BLOCK + i[None, :])
        acc = tl.dot(a, b, acc)
    total = tl.sum(acc, axis=1)
    tl.store(out_ptr + i, total.to(tl.float16))


def test_a_dot_in_a_loop_keeps_its_accumulator_where_the_instruction_wants_it():
    module = assign(multiply, "*fp16", hinted=("a_ptr", "b_ptr", "out_ptr", "K"), BLOCK=64)
    (dot,), (loop,), (reduce,) = (ops(module, name) for name in ("tt.dot", "scf.for", "tt.reduce"))
    accumulator = mma_v2_accumulator((64, 64), [2, 2])
    assert layout_of(dot.result.type) == layout_of(loop.body.block.args[1].type) == accumulator
    assert layout_of(dot.a.type) == mma_v2_operand((64, 64), [2, 2], 0, 16)
    assert layout_of(dot.b.type) == mma_v2_operand((64, 64), [2, 2], 1, 16)
    assert layout_of(reduce.res[0].type) == slice_axis(accumulator, 1)
    in_loop = [op for op in loop.walk() if isinstance(op, ConvertLayoutOp)]
    assert [conversion.src.owner.name for conversion in in_loop] == ["tt.load", "tt.load"]


@triton.jit
def chain(q_ptr, k_ptr, v_ptr, out_ptr):
    i = tl.arange(0, 64)
    tile = i[:, None] * 64 + i[None, :]
    p = tl.dot(tl.load(q_ptr + tile), tl.load(k_ptr + tile))
    tl.store(out_ptr + tile, tl.dot((p - tl.max(p, 1)[:, None]).to(tl.float16), tl.load(v_ptr + tile)).to(tl.float16))


def test_the_operand_of_a_chained_dot_is_not_moved():
    """All warps along M: the accumulator of the first dot is operand a of the second, register by register."""
    module = assign(chain, "*fp16", hinted=("q_ptr", "k_ptr", "v_ptr", "out_ptr"))
    first, second = ops(module, "tt.dot")
    assert layout_of(first.result.type) == mma_v2_accumulator((64, 64), [4, 1])
    assert second.a.owner.name == "arith.truncf" or isinstance(second.a.owner, ConvertLayoutOp)
    assert layout_of(second.a.type) == layout_of(first.result.type)


@triton.jit
def carried(x_ptr, out_ptr, n):
    i = tl.arange(0, 128)
    pointers = x_ptr + i
    total = tl.zeros([128], tl.float32)
    k = 0
    while k < n:
        total += tl.load(pointers)
        pointers += 128
        k += 1
    if n > 3:
        total = total * 2
    tl.store(out_ptr + i, total)


def test_carried_tiles_and_branches_need_no_conversions():
    assert not ops(assign(carried), "ttg.convert_layout")


@triton.jit
def carried_and_transposed(x_ptr, out_ptr, n):
    i = tl.arange(0, 64)
    tile = i[:, None] * 64 + i[None, :]
    x = tl.load(x_ptr + tile)
    for _ in range(n):
        x = tl.trans(x)
    tl.store(out_ptr + tile, x)


def test_what_a_loop_carries_is_converted_at_the_head_of_its_body():
    module = assign(carried_and_transposed, hinted=("x_ptr", "out_ptr"))
    (loop,) = ops(module, "scf.for")
    assert isinstance(loop.body.block.first_op, ConvertLayoutOp)
    assert loop.body.block.first_op.src is loop.body.block.args[1]


@triton.jit
def columns_one_by_one(x_ptr, out_ptr, n):
    i = tl.arange(0, 32)
    places = i[:, None] * 32 + i[None, :]
    x = tl.load(x_ptr + places)
    out = tl.zeros((32, 32), tl.float32)
    for j in range(n):
        column = tl.sum(tl.where(i[None, :] == j, x, 0.0), axis=1)
        out = tl.where(i[None, :] == j, column[:, None], out)
        x -= column[:, None]
    tl.store(out_ptr + places, out)


def test_what_a_loop_leaves_is_at_home_where_it_is_stored():
    """It is zeros before, and what shape ops make of others: four columns in a thread, as they are stored."""
    module = assign(columns_one_by_one, num_warps=1, hinted=("x_ptr", "out_ptr"))
    loop = ops(module, "scf.for")[0]
    loaded, left = layout_of(ops(module, "tt.load")[0].results[0].type), [layout_of(result.type) for result in loop.res]
    assert loaded.of("register")[:2] == ((0, 1), (0, 2))
    assert left == [loaded, loaded]
    assert all(conversion.parent_op() is loop for conversion in ops(module, "ttg.convert_layout"))


def test_ttgir_round_trips_as_text():
    module = assign(multiply, "*fp16", BLOCK=64)
    text = print_module(module)
    assert print_module(parse_module(text)) == text
    assert re.search(r'"ttg.num-warps" = 4', text)


def test_a_parameter_that_is_a_tile(check):
    with pytest.raises(CompilationError, match=r"error: parameter 'x' of kernel 'k' is a tile"):
        check([AssignLayouts(GPUConfig(architecture(80).machine))], "%n: i32, %x: tensor<4xf32>", "")
