"""Operands that programs find packed: which they are, and that programs in any order compute what each alone would."""

from __future__ import annotations

import ctypes

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects import scf

import deuteron
import deuteron.language as tl
from deuteron.backend.cpu import backend, countdown
from deuteron.backend.cpu.launch.pool_layout import WATCH
from deuteron.backend.cpu.lowering import plan_function
from deuteron.backend.cpu.plan.prepare import kernel_of
from deuteron.backend.cpu.plan.products import reuse as module
from deuteron.backend.cpu.plan.products.reuse import reuse_operands
from deuteron.backend.cpu.target import cpu_target
from deuteron.backend.llvm.compile import emit_object, optimise
from deuteron.backend.llvm.loader import load_object
from deuteron.backend.llvm.targets import resolve_cpu
from deuteron.ir.tt.program import GetProgramIdOp
from tests.backend.cpu.conftest import lower, tile_ir
from tests.backend.cpu.products.amx_machine import amx_machine

M, N, K = 128, 96, 208  # of blocks of 32 x 32 x 16: 4 x 3 programs, 13 steps


@deuteron.jit
def matmul(a, b, c, M, N, K, num_steps, ORDER: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """num_steps: of the first program along m; each further one has one less."""
    if ORDER == "m first":
        pid_m, pid_n = tl.program_id(0) % tl.cdiv(M, BM), tl.program_id(0) // tl.cdiv(M, BM)
    elif ORDER == "n first":
        pid_m, pid_n = tl.program_id(0) // tl.cdiv(N, BN), tl.program_id(0) % tl.cdiv(N, BN)
    else:  # groups of 2 along m
        group, within = tl.program_id(0) // (2 * tl.cdiv(N, BN)), tl.program_id(0) % (2 * tl.cdiv(N, BN))
        pid_m, pid_n = 2 * group + within % 2, within // 2
    rows, columns, ks = pid_m * BM + tl.arange(0, BM), pid_n * BN + tl.arange(0, BN), tl.arange(0, BK)
    a_ptrs, b_ptrs = a + rows[:, None] * K + ks[None, :], b + ks[:, None] * N + columns[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for step in range(num_steps - pid_m):
        left = tl.load(a_ptrs, mask=(rows[:, None] < M) & (ks[None, :] < K - step * BK), other=0.0)
        right = tl.load(b_ptrs, mask=(ks[:, None] < K - step * BK) & (columns[None, :] < N), other=0.0)
        acc = tl.dot(left, right, acc)
        a_ptrs += BK
        b_ptrs += BK * N
    tl.store(c + rows[:, None] * N + columns[None, :], acc, mask=(rows[:, None] < M) & (columns[None, :] < N))


def check(rng, order: str, type: type, m: int = M, n: int = N, k: int = K, blocks=(32, 32, 16), fewer: bool = False):
    bm, bn, bk = blocks
    a, b = rng.integers(-4, 5, (m, k)).astype(type), rng.integers(-4, 5, (k, n)).astype(type)
    out = np.full((m, n), 77, np.float32)
    steps = -(-k // bk)
    given = steps if fewer else steps + -(-m // bm)  # a loop that goes on behind k adds nothing
    matmul[(-(-m // bm) * -(-n // bn),)](a, b, out, m, n, k, given, ORDER=order, BM=bm, BN=bn, BK=bk)
    for first in range(0, m, bm):
        end = max(0, min(k, (given - first // bm) * bk))
        wanted = a[first : first + bm, :end].astype(np.float64) @ b[:end].astype(np.float64)
        np.testing.assert_array_equal(out[first : first + bm], wanted)


ORDERS = ("m first", "n first", "in groups")


@pytest.mark.parametrize("threads", ["1", "3"])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("type", [np.float32, ml_dtypes.bfloat16], ids=["fp32", "bf16"])
def test_programs_in_any_order(rng, monkeypatch, order, type, threads):
    monkeypatch.setenv("DEUTERON_NUM_THREADS", threads)
    check(rng, order, type)
    check(rng, order, type, fewer=True)  # what one program has not packed the next one packs
    check(rng, order, type, m=100, n=70, k=99)


def one_b(a, b, c):
    """A program has 32 rows, all the same 32 columns, in three steps."""
    rows, columns, ks = tl.program_id(0) * 32 + tl.arange(0, 32), tl.arange(0, 32), tl.arange(0, 16)
    acc = tl.zeros((32, 32), tl.float32)
    for k in range(0, 48, 16):
        acc = tl.dot(tl.load(a + rows[:, None] * 48 + k + ks), tl.load(b + (k + ks)[:, None] * 32 + columns), acc)
    tl.store(c + rows[:, None] * 32 + columns, acc)


def test_what_the_calls_of_a_launch_before_have_packed_is_found(rng):
    """As it was then: B is other numbers between two calls, which nobody may do but a test."""
    arrays = [rng.integers(-4, 5, shape).astype(np.float32) for shape in ((128, 48), (48, 32), (128, 32))]
    lowered, name = lower(tile_ir(one_b, arrays, {}), interruptible=True), resolve_cpu("native")
    loaded = load_object(emit_object(optimise(lowered.llir, *name), *name), ["kernel"])
    held, watch = [ctypes.c_void_p(array.ctypes.data) for array in arrays], (ctypes.c_uint64 * len(WATCH))()
    addresses = (ctypes.c_void_p * 4)(*map(ctypes.addressof, held), ctypes.addressof(watch))
    sizes, scratch = (ctypes.c_uint32 * 3)(4, 1, 1), np.zeros(lowered.scratch_bytes + 64, np.uint8)
    run = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, *[ctypes.c_uint64] * 2, ctypes.c_void_p)
    a, b, c = arrays
    before = a @ b
    for begin, end, is_first in ((0, 2, True), (2, 3, False), (3, 4, True)):
        watch[WATCH.index("has_packed")] = not is_first
        aligned = -(-scratch.ctypes.data // 64) * 64
        run(loaded.address("kernel"))(ctypes.addressof(addresses), ctypes.addressof(sizes), begin, end, aligned)
        assert watch[WATCH.index("has_packed")] == 1
        b[:] = 1
    np.testing.assert_array_equal(c, np.concatenate([before[:96], (a @ b)[96:]]))


@pytest.mark.parametrize("room", [0, 9_000, 20_000])
def test_there_is_no_room_for_all_steps(rng, monkeypatch, tmp_path, room):
    second_cache_bytes = cpu_target(*resolve_cpu("native")).second_cache_bytes
    monkeypatch.setattr(module, "ROOM_OF_B", room / second_cache_bytes)
    monkeypatch.setenv("DEUTERON_CACHE_DIR", str(tmp_path))
    matmul.device_caches.clear()
    for order in ORDERS:
        check(rng, order, np.float32, fewer=True)
    matmul.device_caches.clear()


@pytest.mark.parametrize("type", [np.float32, ml_dtypes.bfloat16], ids=["fp32", "bf16"])
@pytest.mark.parametrize("budget", [0, 40_000, 100_000, 250_000])
def test_strips_of_a_loop_end_elsewhere_in_each_program(rng, monkeypatch, tmp_path, type, budget):
    """One thread that knows how long programs take runs them in one call, so that they find what others have packed."""
    monkeypatch.setattr(countdown, "BUDGET", budget)
    monkeypatch.setenv("DEUTERON_NUM_THREADS", "1")
    monkeypatch.setenv("DEUTERON_CACHE_DIR", str(tmp_path))
    matmul.device_caches.clear()
    for order in ORDERS:
        for _ in range(3):
            check(rng, order, type, fewer=True)
    matmul.device_caches.clear()


def test_on_tiles(rng, monkeypatch, tmp_path):
    monkeypatch.setenv("DEUTERON_CACHE_DIR", str(tmp_path))
    with amx_machine(monkeypatch) as machine, machine.used():
        monkeypatch.setattr(backend, "may_use_tiles", lambda: True)
        matmul.device_caches.clear()
        for order in ORDERS:
            check(rng, order, ml_dtypes.bfloat16, blocks=(32, 32, 32), fewer=True)
    matmul.device_caches.clear()


@deuteron.jit
def persistent(a, b, c, num_tiles, BLOCK: tl.constexpr):
    """A program for all tiles of a matrix of 2 by `num_tiles // 2`, and 256 deep."""
    ks, i = tl.arange(0, 32), tl.arange(0, BLOCK)
    for tile in range(num_tiles):
        row, column = tile % 2, tile // 2
        acc = tl.zeros((BLOCK, BLOCK), tl.float32)
        for k in range(0, 256, 32):
            left = tl.load(a + (row * BLOCK + i)[:, None] * 256 + (k + ks)[None, :])
            right = tl.load(b + (k + ks)[:, None] * BLOCK * num_tiles + column * BLOCK + i[None, :])
            acc = tl.dot(left, right, acc)
        tl.store(c + (row * BLOCK + i)[:, None] * BLOCK * num_tiles + column * BLOCK + i[None, :], acc)


def test_a_loop_over_tiles(rng):
    a, b = rng.integers(-4, 5, (64, 256)).astype(np.float32), rng.integers(-4, 5, (256, 192)).astype(np.float32)
    out = np.zeros((64, 192), np.float32)
    persistent[(1,)](a, b, out, 6, BLOCK=32)
    np.testing.assert_array_equal(out[:, :96], (a @ b)[:, :96])


@deuteron.jit
def two_products(a, b, c, num_tiles, K1: tl.constexpr, K2: tl.constexpr):
    """Of rows of `a` with one matrix: the first K1 and the last K2 of each 64 columns, in two sums."""
    first, last, i = tl.arange(0, K1), 64 - K2 + tl.arange(0, K2), tl.arange(0, 32)
    for row in range(num_tiles):
        one, other = tl.zeros((32, 32), tl.float32), tl.zeros((32, 32), tl.float32)
        for k in range(0, 576, 64):
            rows = a + (row * 32 + i)[:, None] * 576 + k
            one = tl.dot(tl.load(rows + first[None, :]), tl.load(b + (k + first)[:, None] * 32 + i[None, :]), one)
            other = tl.dot(tl.load(rows + last[None, :]), tl.load(b + (k + last)[:, None] * 32 + i[None, :]), other)
        out = c + (row * 32 + i)[:, None] * 64 + i[None, :]
        tl.store(out, one)
        tl.store(out + 32, other)


@pytest.mark.parametrize("type", [np.float32, ml_dtypes.bfloat16], ids=["fp32", "bf16"])
@pytest.mark.parametrize(("k1", "k2"), [(16, 32), (32, 16), (16, 64)])
def test_products_of_which_different_numbers_of_steps_fit(rng, type, k1, k2):
    a, b = rng.integers(-4, 5, (96, 576)).astype(type), rng.integers(-4, 5, (576, 32)).astype(type)
    out = np.zeros((96, 64), np.float32)
    two_products[(1,)](a, b, out, 3, K1=k1, K2=k2)
    within = np.arange(576) % 64
    for part, columns in ((out[:, :32], within < k1), (out[:, 32:], within >= 64 - k2)):
        np.testing.assert_array_equal(part, a[:, columns].astype(np.float32) @ b[columns].astype(np.float32))


def test_arrays_that_overlap(rng):
    """What one tile has stored the next one multiplies, which is of the same columns."""
    a = rng.integers(-1, 2, (64, 256)).astype(np.float32)
    b = rng.integers(-1, 2, (256, 192)).astype(np.float32)
    wanted = b.copy()
    for tile in range(6):
        rows, columns = slice(tile % 2 * 32, tile % 2 * 32 + 32), slice(tile // 2 * 32, tile // 2 * 32 + 32)
        wanted[rows, columns] = a[rows] @ wanted[:, columns]
    persistent[(1,)](a, b, b[:64], 6, BLOCK=32)
    np.testing.assert_array_equal(b, wanted)


@pytest.fixture
def reused(lower_python, monkeypatch):
    """How many scalars are in the key of each B that is reused."""
    monkeypatch.setattr(module, "ROOM_OF_A", 0)

    def find(kernel, edit=lambda module: None, cpu="x86-64-v3", type=np.float32, **constexprs) -> list[int]:
        arguments = [*[np.zeros(1, type)] * 3, 64]
        lowered = lower_python(kernel, arguments, constexprs)
        edit(lowered)
        plan = plan_function(kernel_of(lowered, cpu_target(cpu, "")))
        return [len(each.key) for each in reuse_operands(plan, 1 << 20)]

    return find


@deuteron.jit
def by_column(a, b, c, n, WRITES: tl.constexpr, LOADED: tl.constexpr):
    column, i, total = tl.program_id(0), tl.arange(0, 32), tl.zeros((32, 32), tl.float32)
    start = tl.load(c) if LOADED == "before" else 0
    for k in range(0, n, 32):
        place = tl.atomic_add(c + 1, 1.0) if LOADED == "counted" else tl.load(c + 2) if LOADED == "in it" else 0.0
        right = tl.load(b + (k + i)[:, None] * n + column * 32 + i[None, :]) + place + start
        total = tl.dot(tl.load(a + i[:, None] * n + (k + i)[None, :]), right, total)
        if WRITES == "in the loop":
            tl.store(b + k, 1.0)
    tl.store(c if WRITES == "c" else b, tl.sum(total))


@deuteron.jit
def by_rows(a, b, c, n, BEFORE: tl.constexpr):
    """Rows of weights are transposed in the product."""
    column, i, total = tl.program_id(0), tl.arange(0, 32), tl.zeros((32, 32), tl.float32)
    for k in range(0, n, 32):
        rows = tl.load(b + (column * 32 + i)[:, None] * n + (k + i)[None, :])
        columns = (rows * 2).trans() if BEFORE else rows.trans() * 2
        total = tl.dot(tl.load(a + i[:, None] * n + (k + i)[None, :]), columns, total)
    tl.store(c + i[:, None] * 32 + i[None, :], total)


@pytest.mark.parametrize("cpu", ["znver5", "emeraldrapids"])
@pytest.mark.parametrize("is_before", [False, True])
def test_rows_that_are_transposed_in_the_product(reused, cpu, is_before):
    assert reused(by_rows, cpu=cpu, type=ml_dtypes.bfloat16, BEFORE=is_before) == [1]


def test_what_is_reused(reused):
    assert reused(by_column, WRITES="c", LOADED="no") == [1]
    assert reused(by_column, WRITES="b", LOADED="no") == []
    assert reused(by_column, WRITES="in the loop", LOADED="no") == []
    assert reused(by_column, WRITES="c", LOADED="in it") == []
    assert reused(by_column, WRITES="c", LOADED="counted") == []
    assert reused(by_column, WRITES="c", LOADED="before") == [2]


def test_the_number_of_the_program_is_read_in_the_loop(reused):
    """As in IR that no pass has taken it out of the loop of."""

    def read_in_loop(module):
        (loop,) = (op for op in module.walk() if isinstance(op, scf.ForOp))
        first = loop.body.block.first_op
        moved = {op for op in loop.parent_block().ops if isinstance(op, GetProgramIdOp)}
        for op in list(loop.parent_block().ops):
            if op in moved or moved & {operand.owner for operand in op.operands}:
                moved.add(op)
                if op.is_before_in_block(loop):
                    op.detach()
                    loop.body.block.insert_op_before(op, first)

    assert reused(by_column, WRITES="c", LOADED="no") == [1]
    assert reused(by_column, read_in_loop, WRITES="c", LOADED="no") == []
