"""Products on the tiles of AMX: the code for them, and, on a machine with AMX or in its place, what they compute."""

from __future__ import annotations

import ctypes
import re

import llvmlite.binding
import ml_dtypes
import numpy as np
import pytest

import deuteron.language as tl
from deuteron.backend.cpu import backend
from deuteron.backend.cpu.lowering import plan_function
from deuteron.backend.cpu.plan.items import Dot, For
from deuteron.backend.cpu.plan.prepare import kernel_of
from deuteron.backend.cpu.plan.products.direct import read_directly
from deuteron.backend.cpu.products.amx import emit_configuration, emit_release, emit_tile_matmul
from deuteron.backend.cpu.products.blocking import MatmulShape, Operands, tile_columns
from deuteron.backend.cpu.products.products import BF16_TILES, BYTE_TILES
from deuteron.backend.cpu.target import cpu_target
from deuteron.backend.llvm import targets
from deuteron.backend.llvm.compile import emit_assembly, emit_object, optimise
from deuteron.backend.llvm.loader import load_object
from deuteron.backend.llvm.module import Module
from deuteron.backend.metadata import KernelMetadata
from deuteron.errors import LaunchError
from deuteron.options import Target
from tests.backend.cpu.products.amx_machine import amx_machine

PRODUCTS = {product.name: product for product in (BF16_TILES, BYTE_TILES)}


@pytest.fixture
def machine(monkeypatch):
    with amx_machine(monkeypatch) as machine:
        yield machine


def _tile_matmul(shape: MatmulShape, product) -> str:
    module = Module("m", "")
    b = module.function("f", "void", [("ptr noalias", name) for name in "abc"], linkage="external")
    emit_configuration(b)
    emit_tile_matmul(b, shape, Operands(*b.parameters), product)
    emit_release(b)
    b.ret()
    return module.text()


def _lanes(elements: np.ndarray, product) -> np.ndarray:
    """Rows of whole numbers as a product takes them."""
    return elements.astype(ml_dtypes.bfloat16 if product is BF16_TILES else np.int8)


def _panels(b: np.ndarray, product) -> np.ndarray:
    """Panels of columns, in which neighbours along k are next to each other."""
    k, n = b.shape
    columns = tile_columns(n)
    lanes = _lanes(b, product).reshape(k // product.group, product.group, n // columns, columns)
    return np.ascontiguousarray(lanes.transpose(2, 0, 3, 1))


@pytest.mark.parametrize("product", PRODUCTS.values(), ids=PRODUCTS)
@pytest.mark.parametrize(
    "m, n, lanes", [(16, 16, 16), (32, 32, 32), (48, 16, 16), (64, 96, 48), (16, 64, 8), (32, 16, 4)]
)
def test_tile_matmul(rng, machine, product, m, n, lanes):
    """Whole numbers, with others between the rows, where nothing may be read or written."""
    k = lanes * product.group
    a, b = rng.integers(-128, 128, (m, k)), rng.integers(-128, 128, (k, n))
    c = rng.integers(-9, 9, (m, n + 3)).astype(np.float32 if product is BF16_TILES else np.int32)
    expected = c.copy()
    expected[:, :n] += a @ b
    rows = np.full((m, k + 2 * product.group), 77)
    rows[:, :k] = a
    shape = MatmulShape(m, n, lanes, lanes + 2, tile_columns(n), n + 3, lanes * tile_columns(n))
    text = optimise(_tile_matmul(shape, product), *machine.cpu)
    loaded = load_object(emit_object(text, *machine.cpu), ["f"])
    arrays = _lanes(rows, product), _panels(b, product), c
    ctypes.CFUNCTYPE(None)(loaded.address("f"))(*(ctypes.c_void_p(x.ctypes.data) for x in arrays))
    np.testing.assert_array_equal(c, expected)


@pytest.mark.parametrize("product", PRODUCTS.values(), ids=PRODUCTS)
@pytest.mark.parametrize("opt_level", [0, 3])
def test_code(product, opt_level):
    """A block is four tiles of C; no tile of A or B is loaded twice for it, and the products read what they should."""
    cpu = "sapphirerapids", ""
    shape = MatmulShape(64, 64, 32, 32, 32, 64, 32 * 32)
    assembly = emit_assembly(optimise(_tile_matmul(shape, product), *cpu, opt_level), *cpu, opt_level)
    used = re.findall(r"^\t(ldtilecfg|tile\w+|tdp\w+)\b[ \t]*(.*)", assembly, re.MULTILINE)
    assert [name for name, _ in (used[0], used[-1])] == ["ldtilecfg", "tilerelease"]
    instruction = {BF16_TILES: "tdpbf16ps", BYTE_TILES: "tdpbssd"}[product]
    expected = [f"%tmm{6 + j}, %tmm{4 + i}, %tmm{2 * i + j}" for j in range(2) for i in range(2)]
    assert [operands for name, operands in used if name.startswith("tdp")] == expected
    assert instruction in dict(used)
    assert sorted(operands[-1] for name, operands in used if name == "tileloadd") == list("01234567")


def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, B_IS_T: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    ks = tl.arange(0, BK)
    acc_type: tl.constexpr = tl.int32 if a.dtype.element_ty == tl.int8 else tl.float32
    acc = tl.zeros((BM, BN), acc_type)
    for start in range(0, K, BK):
        inside = start + ks < K
        left = tl.load(a + rows[:, None] * K + (start + ks)[None, :], inside[None, :] & (rows[:, None] < M), 0)
        if B_IS_T:
            at = columns[:, None] * K + (start + ks)[None, :]
            right = tl.trans(tl.load(b + at, inside[None, :] & (columns[:, None] < N), 0))
        else:
            at = (start + ks)[:, None] * N + columns[None, :]
            right = tl.load(b + at, inside[:, None] & (columns[None, :] < N), 0)
        acc = tl.dot(left, right, acc, out_dtype=acc_type)
    tl.store(c + rows[:, None] * N + columns[None, :], acc, (rows[:, None] < M) & (columns[None, :] < N))


@pytest.mark.share(2)
@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.int8])
@pytest.mark.parametrize("b_is_transposed", [False, True])
@pytest.mark.parametrize("tile", [(32, 32, 64), (16, 64, 64), (64, 16, 128), (32, 32, 32), (16, 32, 16)])
def test_matmul(rng, machine, compare, dtype, b_is_transposed, tile):
    """Sizes that no tile divides; the products of several steps of the loop are computed together."""
    M, N, K = 37, 45, int(rng.integers(1, 700))
    a, b = rng.integers(-9, 10, (M, K)).astype(dtype), rng.integers(-9, 10, (K, N)).astype(dtype)
    b = np.ascontiguousarray(b.T) if b_is_transposed else b
    c = np.full((M, N), 77, np.int32 if dtype == np.int8 else np.float32)
    BM, BN, BK = tile
    constexprs = {"BM": BM, "BN": BN, "BK": BK, "B_IS_T": b_is_transposed}
    with machine.used():
        compare(matmul, [a, b, c, M, N, K], constexprs, (-(-M // BM), -(-N // BN)), ("native",), 0)


def attention(q, k, v, o, steps, N: tl.constexpr, D: tl.constexpr):
    i, d = tl.arange(0, N), tl.arange(0, D)
    at = i[:, None] * D + d[None, :]
    query, total, acc = tl.load(q + at), tl.zeros((N,), tl.float32), tl.zeros((N, D), tl.float32)
    for step in range(steps):
        scores = tl.dot(query, tl.trans(tl.load(k + step * N * D + at)))
        p = tl.exp(scores - 8.0)
        total += tl.sum(p, 1)
        acc = tl.dot(p.to(tl.bfloat16), tl.load(v + step * N * D + at), acc * 0.5)
    tl.store(o + at, acc / total[:, None])


def test_attention(rng, machine, compare):
    """Products that a loop does not only add up, of operands that are computed."""
    q, k, v = (rng.standard_normal((rows, 64)).astype(ml_dtypes.bfloat16) for rows in (32, 96, 96))
    arrays = [q, k, v, np.full((32, 64), 77, np.float32), 3]
    compare(attention, arrays, {"N": 32, "D": 64}, cpus=("native",), tolerance=1e-2)


def test_tiles_are_configured_for_kernels_that_use_them(lower_python, lower_module):
    """Once, around the loop over programs, and for what is left of steps that have half a tile; another kernel leaves
    them alone.
    """
    x = np.zeros((64, 64), ml_dtypes.bfloat16)
    arguments = [x, x, np.zeros((64, 64), np.float32), 64, 64, 64]
    for rows, depth, configured in ((32, 64, 1), (32, 16, 3), (8, 64, 0)):
        constexprs = {"BM": rows, "BN": 32, "BK": depth, "B_IS_T": False}
        module = lower_python(matmul, arguments, constexprs)
        text = lower_module(module, "sapphirerapids").llir
        counts = [text.count(f"@llvm.x86.{name}(") for name in ("ldtilecfg", "tilerelease")]
        assert counts == [configured, bool(configured)]


def rows_by(a, b, c, N, HOW: tl.constexpr, BK: tl.constexpr):
    """c = a @ b, of 32 by 32, a of rows of N elements; how a's tiles are addressed."""
    i, ks, total = tl.arange(0, 32), tl.arange(0, BK), tl.zeros((32, 32), tl.float32)
    ptrs = a + i[:, None] * N + ks[None, :]
    for k in range(N // BK):
        if HOW == "pointers":
            left = tl.load(ptrs)
        elif HOW == "masked":
            left = tl.load(ptrs, mask=ks[None, :] < N - k * BK)
        elif HOW == "written" or HOW == "numbers":
            left = tl.load(a + i[:, None] * N + (k * BK + ks)[None, :])
        elif HOW == "apart":
            left = tl.load(a + i[:, None] * N + (k // 2 * BK + ks)[None, :])
        elif HOW == "irregular":
            left = tl.load(a + (i * i % 32)[:, None] * N + (k * BK + ks)[None, :])
        elif HOW == "transposed":
            left = tl.load(a + i[:, None] + (k * BK + ks)[None, :] * 32)
        right = tl.load(b + (k * BK + ks)[:, None] * 32 + i[None, :])
        total = tl.dot(left, right, total)
        ptrs += BK
        if HOW == "written":
            tl.store(a, 3.0)
    tl.store(c + i[:, None] * 32 + i[None, :], total)


@pytest.mark.parametrize("depth", [16, 32])
@pytest.mark.parametrize("how", ["pointers", "numbers", "masked", "apart", "irregular", "transposed", "written"])
def test_rows_in_memory(rng, machine, lower_python, compare, how, depth):
    """Tiles read A where it is, whatever its rows' distance; a copy is made where that is not what it takes, or may not
    be, which is found out before the loop.
    """
    n = depth * int(rng.integers(1, 12))
    a, b = (rng.integers(-9, 10, shape).astype(ml_dtypes.bfloat16) for shape in ((32, n), (n, 32)))
    arguments, constexprs = [a, b, np.full((32, 32), 77, np.float32), n], {"HOW": how, "BK": depth}
    with machine.used():
        compare(rows_by, arguments, constexprs, cpus=["native"])
    plan = plan_function(kernel_of(lower_python(rows_by, arguments, constexprs), cpu_target("sapphirerapids", "")))
    read_directly(plan)
    dots = [
        item.direct
        for loop in plan.body.items
        if isinstance(loop, For)
        for item in loop.body.items
        if isinstance(item, Dot)
    ]
    kinds = {"pointers": True, "numbers": True, "masked": False, "irregular": False}
    assert [direct and direct.is_sure for direct in dots] == [kinds.get(how)]


def test_tiles_that_the_system_refuses_are_not_used(monkeypatch):
    """`native` is then a processor without; a kernel for a named one is refused before it runs."""
    monkeypatch.setattr(llvmlite.binding, "get_host_cpu_features", lambda: Features("+avx512f,+amx-tile,+amx-bf16"))
    for is_given, features in ((False, "+avx512f,-amx-tile,-amx-bf16"), (True, "+avx512f,+amx-tile,+amx-bf16")):
        monkeypatch.setattr(targets, "may_use_tiles", lambda is_given=is_given: is_given)
        assert targets._host_cpu().features == features


class Features(str):
    def flatten(self) -> str:
        return str(self)


def test_a_kernel_with_tiles_is_loaded_where_they_may_be_used(monkeypatch):
    metadata = KernelMetadata("m", "m", Target("cpu", "sapphirerapids", 1), {}, (), uses_tiles=True)
    monkeypatch.setattr(backend, "may_use_tiles", lambda: False)
    with pytest.raises(LaunchError, match="'m' is compiled for 'sapphirerapids' with AMX"):
        backend.CPUBackend().load({"obj": b""}, metadata)


def test_pairs_of_bf16_are_not_used_beside_tiles(lower_python, lower_module):
    """A product that no tiles fit is of fp32 there; of bytes it is not."""
    for dtype, cpu, instruction in (
        (ml_dtypes.bfloat16, "sapphirerapids", "llvm.fmuladd"),
        (ml_dtypes.bfloat16, "znver5", "dpbf16ps"),
        (np.int8, "sapphirerapids", "vpdpbusd"),
    ):
        x = np.zeros((64, 64), dtype)
        module = lower_python(matmul, [x, x, x, 64, 64, 64], {"BM": 8, "BN": 32, "BK": 32, "B_IS_T": False})
        assert instruction in lower_module(module, cpu).llir
