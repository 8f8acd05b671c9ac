"""Loops in strips give what they give as they are, and end, with the programs, where whoever they ask says so."""

from __future__ import annotations

import ctypes
import random

import ml_dtypes
import numpy as np
import pytest

import deuteron.language as tl
from deuteron.backend.cpu import countdown
from deuteron.backend.cpu.launch.pool_layout import WATCH
from deuteron.backend.llvm.compile import emit_object, optimise
from deuteron.backend.llvm.loader import load_object
from deuteron.backend.llvm.targets import resolve_cpu
from tests.backend.cpu.conftest import _held, lower, tile_ir

I32, I64 = 2**31 - 1, 2**63 - 1


def run(kernel, args, grid: int, answers=lambda: 0, constexprs=None) -> int:
    """Run all programs of a grid on this thread; how often they looked."""
    lowered = lower(tile_ir(kernel, args, constexprs or {}), interruptible=True)
    name, features = resolve_cpu("native")
    loaded = load_object(emit_object(optimise(lowered.llir, name, features), name, features), ["kernel"])
    looks = []

    def look(watch):
        looks.append(watch)
        return answers()

    function = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(look)
    watch = (ctypes.c_void_p * len(WATCH))(ctypes.cast(function, ctypes.c_void_p).value)
    held = [_held(arg) for arg in args]
    addresses = (ctypes.c_void_p * (len(held) + 1))(*map(ctypes.addressof, held), ctypes.addressof(watch))
    scratch = np.zeros(lowered.scratch_bytes + 64, np.uint8)
    aligned = -(-scratch.ctypes.data // 64) * 64
    signature = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, *[ctypes.c_uint64] * 2, ctypes.c_void_p)
    sizes = (ctypes.c_uint32 * 3)(grid, 1, 1)
    signature(loaded.address("kernel"))(ctypes.addressof(addresses), ctypes.addressof(sizes), 0, grid, aligned)
    assert set(looks) <= {ctypes.addressof(watch)}
    return len(looks)


def walk(out, bounds, BLOCK: tl.constexpr):
    """What a loop of 64 or 32 bits sees: how many iterations, and a hash of the indices in their order."""
    start, stop, step = tl.load(bounds), tl.load(bounds + 1), tl.load(bounds + 2)
    count, total = 0, tl.zeros((BLOCK,), tl.int64)
    for i in range(start, stop, step):
        count += 1
        total = total * 3 + i
        for j in range(i % 5):
            total += j
    tl.store(out + tl.program_id(0) * 2, count)
    tl.store(out + tl.program_id(0) * 2 + 1, tl.sum(total))


def expected_of(start: int, stop: int, step: int, block: int) -> list[int]:
    count = total = 0
    for i in range(start, stop, step) if step > 0 else ():
        count, total = count + 1, total * 3 + i
        total += sum(range(int(np.fmod(i, 5))))
    return [count, (total * block + 2**63) % 2**64 - 2**63]


EXTREME = [
    *[(start, start + 7, 1) for start in (0, -3, -(2**31), I32 - 7)],
    *[(I32 - 100, I32, 7), (I32 - 1, I32, I32), (-(2**31), -(2**31) + 90, 13), (5, 5, 1), (9, 2, 3)],
    *[(-(2**31), I32, 2**30), (-(2**31), I32, I32), (0, 10, 0), (0, 10, -1)],
]


@pytest.mark.share(3)
@pytest.mark.parametrize("budget", [0, 1, 100, 100_000])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_a_loop_in_strips_has_the_same_iterations(monkeypatch, seed, budget, dtype):
    monkeypatch.setattr(countdown, "BUDGET", budget)
    rng = random.Random(seed)
    rows = EXTREME if dtype == np.int32 else [(a * 2**32, b * 2**32, c * 2**32) for a, b, c in EXTREME]
    rows = [*rows, *[(a := rng.randrange(-1000, 1000), a + rng.randrange(100), rng.randrange(1, 9)) for _ in range(3)]]
    for row in rows:
        out = np.full(6, -1, np.int64)
        looks = run(walk, [out, np.array(row, dtype)], 3, constexprs={"BLOCK": 16})
        assert out.tolist() == 3 * expected_of(*row, 16), row
        assert looks == 0 if budget == 100_000 else looks >= 1


def collatz(out, n):
    """A loop whose condition is computed, with one in it that has several exits."""
    x, steps = n + tl.program_id(0), 0
    while x != 1:
        x = x // 2 if x % 2 == 0 else 3 * x + 1
        y = 0
        while y * y < x:
            y += 1
            if y > 3:
                break
        steps += y
    tl.store(out + tl.program_id(0), steps)


def steps_of(x: int) -> int:
    steps = 0
    while x != 1:
        x = x // 2 if x % 2 == 0 else 3 * x + 1
        steps += min(4, next(y for y in range(10**6) if y * y >= x or y > 3))
    return steps


@pytest.mark.parametrize("budget", [0, 10, 1 << 20])
def test_a_while_loop_counts(monkeypatch, budget):
    monkeypatch.setattr(countdown, "BUDGET", budget)
    out = np.zeros(30, np.int32)
    looks = run(collatz, [out, 2], 30)
    assert out.tolist() == [steps_of(2 + x) for x in range(30)]
    assert looks == 0 if budget == 1 << 20 else looks > 200


def fill(out, n, BLOCK: tl.constexpr):
    value = tl.zeros((BLOCK,), tl.float32)
    for i in range(n):
        value += i
    tl.store(out + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), value + 1)


@pytest.mark.parametrize("n", [0, 1, 1000])
def test_who_is_told_to_end_begins_no_further_program(monkeypatch, n):
    """As often as there is a look the next launch ends at the one after it."""
    monkeypatch.setattr(countdown, "BUDGET", 0)
    ended = []
    for number in range(4):
        answers, out = iter([0] * number), np.zeros(20 * 8, np.float32)
        looks = run(fill, [out, n], 20, lambda answers=answers: next(answers, 1), {"BLOCK": 8})
        assert looks == number + 1
        done = out.reshape(20, 8)[:, 0] != 0
        assert (np.diff(done.astype(int)) <= 0).all()
        np.testing.assert_array_equal(out[: 8 * done.sum()], n * (n - 1) / 2 + 1)
        ended.append(int(done.sum()))
    assert ended == {0: [1, 2, 3, 4], 1: [0, 1, 1, 2], 1000: [0, 0, 0, 0]}[n]


def multiply(a, b, c, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = i[:, None] * BLOCK + i[None, :]
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for _ in range(n):
        total = tl.dot(tl.load(a + at), tl.load(b + at), total)
    tl.store(c + at, total)


def test_tiles_of_amx_are_configured_anew_after_a_look():
    """What looks may run any code of the process."""
    narrow, wide = np.zeros(32 * 32, ml_dtypes.bfloat16), np.zeros(32 * 32, np.float32)
    module = tile_ir(multiply, [narrow, narrow, wide, 3], {"BLOCK": 32})
    counts = [
        lower(module, "sapphirerapids", interruptible=flag).llir.count("call void @llvm.x86.ldtilecfg")
        for flag in (False, True)
    ]
    assert counts == [1, 3]  # of the loop, and of that over programs


def test_nothing_is_asked_for_where_the_caller_is_another_program():
    """What is compiled for a C program has loops as they are, and no further entry."""
    plain = lower(tile_ir(fill, [np.zeros(8, np.float32), 3], {"BLOCK": 8}))
    assert "strip" not in plain.llir
