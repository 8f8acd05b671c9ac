"""Where operands of dots go: into which layout of shared memory, before which op, and when not."""

import re

import numpy as np
import pytest
from backend.cuda.launching import aligned, emulate, instructions_with
from ir_text import generic_asm
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp

import deuteron
import deuteron.language as tl
from deuteron.backend.cuda.target import architecture
from deuteron.frontend import lower_function
from deuteron.ir.tt.dot import DotOp
from deuteron.ir.ttg.layout import layout_of
from deuteron.ir.ttg.shared import LocalAllocOp, LocalLoadOp
from deuteron.ir.ttg.sliced_dot import SlicedDotOp
from deuteron.ir.ttg.views import MemDescTransOp
from deuteron.ir.ttng.warp_group_dot import WarpGroupDotOp
from deuteron.ir.types import byte_width_of, is_tile
from deuteron.layout.wgmma import shared_matrix
from deuteron.machine.gpu import GPUConfig
from deuteron.passes import run_passes
from deuteron.passes.gpu.layouts.anchors import is_chained
from deuteron.passes.gpu.layouts.computed_operands import neighbours_along_k
from deuteron.passes.gpu.operands.load_once import LoadOnce
from deuteron.passes.gpu.operands.place_dot_operands import PlaceDotOperands
from deuteron.passes.tile import tile_passes


@deuteron.jit
def dot(a, b, out, LEFT: tl.constexpr, RIGHT: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(a + (i[:, None] * K + k[None, :] if LEFT else i[:, None] + k[None, :] * M))
    y = tl.load(b + (k[:, None] * N + j[None, :] if RIGHT else k[:, None] + j[None, :] * K))
    tl.store(out + i[:, None] * N + j[None, :], tl.dot(x, y))


@deuteron.jit
def transposed(a, b, out, N: tl.constexpr):
    square = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out + square, tl.dot(tl.trans(tl.load(a + square)), tl.load(b + square)))


@deuteron.jit
def chain(a, b, out, n, N: tl.constexpr, MASKED: tl.constexpr = False):
    square = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    q, acc = tl.load(a + square), tl.zeros((N, N), tl.float32)
    for start in range(n):
        k = tl.load(b + start * N * N + square)
        p = tl.dot(q, tl.trans(k)) * 0.5
        if MASKED and start == n - 1:
            p = tl.where(square % N < n, p, 0.0)
        acc = tl.dot(p.to(k.dtype), k, acc)
    tl.store(out + square, acc)


@deuteron.jit
def weights(a, b, out, BY_K: tl.constexpr, EXP: tl.constexpr, N: tl.constexpr):
    i, k = tl.arange(0, N), tl.arange(0, 64)
    x = tl.load(a + i[:, None] * 64 + k[None, :])
    y = tl.load(b + (k[:, None] + i[None, :] * 64 if BY_K else k[:, None] * N + i[None, :])).to(tl.float16)
    y = tl.exp(y.to(tl.float32)).to(tl.float16) if EXP else y * 2
    tl.store(out + i[:, None] * N + i[None, :], tl.dot(x.to(tl.float16), y))


def place(kernel, type: str, num_warps: int = 4, capability: int = 90, **constants) -> ModuleOp:
    result = "*i32" if type == "i8" else "*fp32"
    signature = {"a": f"*{type}", "b": f"*{type}", "out": result} | ({"n": "i32"} if kernel is chain else {})
    signature |= dict.fromkeys(constants, "constexpr")
    module = lower_function(kernel, signature, constants, {})
    run_passes(module, [*tile_passes(), PlaceDotOperands(GPUConfig(architecture(capability).machine, num_warps))])
    return module


def ops(module: ModuleOp, kind: type) -> list:
    return [op for op in module.walk() if isinstance(op, kind)]


def forms(module: ModuleOp) -> list[tuple[int, int]]:
    """The axis along which each operand of each dot by wgmma is contiguous, and the swizzle."""
    values = [value for dot in ops(module, WarpGroupDotOp) for value in dot.descriptors]
    found = [shared_matrix(layout_of(value.type), byte_width_of(value.type.tile)) for value in values]
    return [(form.fast_axis, form.span) for form in found]


@pytest.mark.parametrize(
    ("type", "left", "right", "expected"),
    [
        ("fp16", True, True, [(1, 64), (1, 128)]),
        ("bf16", False, False, [(0, 128), (0, 64)]),
        ("fp32", True, False, [(1, 128), (0, 128)]),
        # along K, whatever they are in memory
        ("fp32", False, True, [(1, 128), (0, 128)]),
        ("i8", True, True, [(1, 32), (0, 32)]),
        ("fp8e4nv", False, False, [(1, 32), (0, 32)]),
    ],
)
def test_elements_are_neighbours_as_in_memory_where_they_can_be(type, left, right, expected):
    assert forms(place(dot, type, LEFT=left, RIGHT=right, M=64, N=64, K=32)) == expected


@pytest.mark.parametrize(("n", "num_warps", "expected"), [(16, 4, (1, 32)), (8, 4, (0, 64)), (32, 8, (1, 32))])
def test_rows_of_b_are_as_long_as_an_instruction_is_wide(n, num_warps, expected):
    assert forms(place(dot, "fp16", num_warps, LEFT=True, RIGHT=True, M=64, N=n, K=32))[1] == expected


@pytest.mark.parametrize(
    ("sizes", "num_warps", "capability"),
    [
        ((64, 64, 32), 4, 80),
        ((64, 64, 32), 2, 90),
        ((32, 64, 32), 4, 90),
        ((64, 8, 32), 8, 90),
    ],
)
def test_dots_that_are_not_for_warpgroups_load_both_operands(sizes, num_warps, capability):
    constants = dict(zip("MNK", sizes, strict=True))
    module = place(dot, "fp16", num_warps, capability, LEFT=True, RIGHT=True, **constants)
    names = [op.name for op in module.walk() if op.name.startswith(("ttg", "tt.dot"))]
    assert names == ["ttg.local_alloc"] * 2 + ["ttg.local_load"] * 2 + ["tt.dot"]


def test_dots_that_are_too_large_or_without_an_instruction_stay():
    large = place(dot, "fp16", LEFT=True, RIGHT=True, M=256, N=256, K=256)
    small = place(dot, "fp16", LEFT=True, RIGHT=True, M=4, N=8, K=16)
    assert not ops(large, LocalAllocOp) and not ops(small, LocalAllocOp)


@pytest.mark.parametrize(
    ("by_k", "exp", "stored"),
    [
        (True, False, {"i8"}),  # b is computed in registers, too
        (False, False, {"i8", "f16"}),  # threads would read single bytes
        (True, True, {"i8", "f16"}),  # dear: once, and not by each warp that has the same columns
    ],
)
def test_what_is_stored_of_operands_that_are_computed(by_k, exp, stored):
    module = place(weights, "i8", capability=80, BY_K=by_k, EXP=exp, N=32)
    assert {str(op.result.type.tile.element_type) for op in ops(module, LocalAllocOp)} == stored


@deuteron.jit
def squares(a, b, out, TWICE: tl.constexpr, N: tl.constexpr):
    square = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    x, y = tl.load(a + square).to(tl.float16), tl.load(b + square).to(tl.float16)
    tl.store(out + square, tl.dot(x * 2 * x if TWICE else x * x, y))


@pytest.mark.parametrize("is_twice", [False, True])
def test_what_is_computed_in_steps_may_use_a_value_twice(is_twice):
    size = 64
    a, b = (np.random.default_rng(seed).integers(-3, 4, (size, size)).astype(np.float32) for seed in range(2))
    out, wide = np.full((size, size), np.nan, np.float32), a.astype(np.float64)
    emulate(squares, a, b, out, TWICE=is_twice, N=size, num_warps=4)
    np.testing.assert_array_equal(out, (1 + is_twice) * wide**2 @ b)


@pytest.mark.parametrize("capability", [80, 90])
def test_a_transposition_becomes_one_of_the_descriptor(capability):
    module = place(transposed, "fp16", capability=capability, N=64)
    assert len(ops(module, MemDescTransOp)) == 1
    assert not any(list(op.results[0].uses) for op in module.walk() if op.name == "tt.trans")


def test_what_a_loop_does_not_change_is_put_there_before_it():
    module = place(chain, "fp16", N=64)
    outside, inside = ops(module, LocalAllocOp)
    assert outside.parent_op().name == "tt.func" and inside.parent_op().name == "scf.for"
    first, second = ops(module, WarpGroupDotOp)
    assert is_tile(second.a.type) and first.b.owner.src is second.b  # p in registers; k once for both dots


def test_mma_sync_takes_dots_from_registers():
    module = place(chain, "fp16", capability=80, N=64)
    assert len(ops(module, LocalAllocOp)) == 2 and len(ops(module, LocalLoadOp)) == 3


def test_dots_stay_in_registers_through_branches():
    module = place(chain, "fp16", N=64, MASKED=True)
    assert ops(module, scf.IfOp) and is_tile(ops(module, WarpGroupDotOp)[1].a.type)
    module = place(chain, "fp16", capability=80, N=64, MASKED=True)
    assert len(ops(module, LocalAllocOp)) == 2 and len(ops(module, LocalLoadOp)) == 3
    assert is_chained(ops(module, DotOp)[0]) and is_chained(ops(module, DotOp)[1])


@deuteron.jit
def ieee(a, b, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x, y = tl.load(a + i[:, None] * K + k[None, :]), tl.load(b + k[:, None] * N + j[None, :])
    tl.store(out + i[:, None] * N + j[None, :], tl.dot(x, y, input_precision="ieee"))


@pytest.mark.parametrize(("sizes", "parts"), [((64, 64, 32), 4), ((128, 128, 32), 16), ((16, 16, 16), 1)])
def test_multiply_adds_read_slices_that_fit_into_registers(sizes, parts):
    module = place(ieee, "fp32", **dict(zip("MNK", sizes, strict=True)))
    depths = [dot.depth.value.data for dot in ops(module, SlicedDotOp)]
    assert depths == ([sizes[2] // parts] if parts > 1 else [])
    assert len(ops(module, LocalAllocOp)) == (2 if parts > 1 else 0) and not ops(module, LocalLoadOp)


@deuteron.jit
def bytes_of_two(a, b, scales, out, K, M: tl.constexpr, N: tl.constexpr):
    """Weights of 4 bits as `[N, K // 2]`, with scales of groups of 32 along K."""
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, 64)
    acc = tl.zeros((M, N), tl.float32)
    for start in range(0, K, 64):
        x = tl.load(a + i[:, None] * K + start + k[None, :])
        y = tl.load(b + j[None, :] * (K // 2) + (start // 2 + k[:, None] // 2)) >> (k % 2 * 4)[:, None] & 15
        scale = tl.load(scales + j[None, :] * (K // 32) + (start + k[:, None]) // 32)
        acc = tl.dot(x, ((y.to(tl.float32) - 8) * scale).to(tl.float16), acc)
    tl.store(out + i[:, None] * N + j[None, :], acc)


@pytest.mark.parametrize("rows", [16, 64])
def test_packed_neighbours_along_k_are_copied_and_stored_along_k(rows):
    rng = np.random.default_rng(3)
    x, packed = rng.standard_normal((rows, 192)).astype(np.float16), rng.integers(0, 256, (64, 96), np.uint8)
    scales, out = rng.standard_normal((64, 6)).astype(np.float32), aligned(np.zeros((rows, 64), np.float32))
    arguments = [aligned(array) for array in (x, packed, scales)]
    kernel = emulate(bytes_of_two, *arguments, out, 192, M=rows, N=64, grid=(1,), num_warps=4, target="cuda:90")
    weights = np.stack([packed & 15, packed >> 4], -1).reshape(64, 192).astype(np.float32) - 8
    weights = (weights * scales.repeat(32, 1)).astype(np.float16).astype(np.float64)
    np.testing.assert_allclose(out, x.astype(np.float64) @ weights.T, rtol=1e-3, atol=1e-2)
    assert not instructions_with(kernel, "ld.global.b8")
    assert not instructions_with(kernel, "st.shared.b16") and not instructions_with(kernel, "st.shared.b8")


@deuteron.jit
def words_of_eight(a, b, out, ACROSS: tl.constexpr):
    """Weights of 4 bits in words along N, as AWQ has them, or along K, as GPTQ."""
    i, j, k = tl.arange(0, 16), tl.arange(0, 32), tl.arange(0, 64)
    x = tl.load(a + i[:, None] * 64 + k[None, :])
    if ACROSS:
        words = tl.load(b + k[:, None] * 4 + j[None, :] // 8) >> (j % 8 * 4)[None, :]
    else:
        words = tl.load(b + k[:, None] // 8 * 32 + j[None, :]) >> (k % 8 * 4)[:, None]
    tl.store(out + i[:, None] * 32 + j[None, :], tl.dot(x, (words & 15).to(tl.float16)))


@pytest.mark.parametrize(("across", "expected"), [(True, 2), (False, 8)])
def test_threads_hold_as_many_neighbours_along_k_as_a_word_has(across, expected):
    """Of words along N they would read rows of 16 bytes that are 128 apart: four in one bank."""
    signature = {"a": "*fp16", "b": "*i32", "out": "*fp32", "ACROSS": "constexpr"}
    module = lower_function(words_of_eight, signature, {"ACROSS": across}, {})
    placing = PlaceDotOperands(GPUConfig(architecture(90).machine, 4))
    run_passes(module, [*tile_passes(), LoadOnce(), placing])
    (found,) = ops(module, DotOp)
    assert neighbours_along_k(found) == expected


@deuteron.jit
def levels(x, first, out, n, N: tl.constexpr):
    """Products with one of three states, each of them read in a branch that some steps take."""
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    a = tl.load(first + at)
    b, c = a * 2, a * 3
    for step in range(n):
        tile = tl.load(x + step * N * N + at)
        total = tl.zeros((N, N), tl.float32)
        if step & 1:
            total += tl.dot(tile, a)
        if step & 2:
            total += tl.dot(tile, b)
        else:
            total += tl.dot(tile, c)
            total += tl.dot(tile * 2, c)
        a, b, c = a * 0.5 + tile, a - b, c * 0.5
        tl.store(out + step * N * N + at, total)


@pytest.mark.parametrize("target", ["cuda:80", "cuda:90"])
def test_what_branches_alone_read_is_stored_there(rng, target):
    x, first = rng.integers(-2, 3, (5, 64, 64)).astype(np.float32), rng.integers(-2, 3, (64, 64)).astype(np.float32)
    out = aligned(np.zeros_like(x))
    kernel = emulate(levels, aligned(x), aligned(first), out, len(x), N=64, target=target)
    a, b, c = first.astype(np.float64), first * 2.0, first * 3.0
    for step, tile in enumerate(x):
        last = tile @ b if step & 2 else 3 * (tile @ c)
        np.testing.assert_allclose(out[step], (step & 1) * (tile @ a) + last, rtol=2e-3, atol=0.5)
        a, b, c = a * 0.5 + tile, a - b, c * 0.5
    text = generic_asm(kernel, "ttgir")
    stored = re.findall(r'^( *)%.*"ttg.local_alloc"\(%', text, re.MULTILINE)
    branch = re.search(r'^( *)%.*"scf.if"', text, re.MULTILINE)[1]
    assert len(stored) >= 3 and all(len(indent) > len(branch) for indent in stored)
