"""Both halves of a product come from one instruction, where both are taken, and only there."""

from __future__ import annotations

import numpy as np
import pytest
from backend.cuda.launching import emulate, instructions_with

import deuteron
import deuteron.language as tl
from deuteron.backend.cuda.assembler.pair_products import pair_products


def text(*lines: str) -> str:
    return "\n".join(line if line.endswith(":") or line.startswith("//") else f"\t{line}" for line in lines)


HIGH, LOW = "mul.hi.u32 \t%r3, %r1, %r2;", "mul.lo.s32 \t%r4, %r1, %r2;"


@pytest.mark.parametrize(
    "lines",
    [
        (HIGH, LOW),
        (LOW, "add.s32 \t%r9, %r4, 1;", HIGH),
        (HIGH, "mul.lo.s32 \t%r4, %r2, %r1;"),
        (HIGH, "add.s32 \t%r9, %r1, %r2;", "st.global.b32 \t[%rd1], %r1;", LOW, "mov.b32 \t%r1, %r8;"),
    ],
)
def test_halves_of_one_product_are_joined(lines):
    joined = pair_products(text(*lines))
    assert "mul.wide.u32 \tproduct, %r1, %r2; mov.b64 \t{%r4, %r3}, product;" in joined
    assert "mul.hi" not in joined and "mul.lo" not in joined
    assert joined.count("\n") == len(lines) - 1


def test_signed_halves():
    assert "mul.wide.s32" in pair_products(text("mul.hi.s32 \t%r3, %r1, -7;", "mul.lo.s32 \t%r4, %r1, -7;"))


@pytest.mark.parametrize(
    "lines",
    [
        (HIGH, "mul.lo.s32 \t%r4, %r1, %r5;"),
        (HIGH, "$L__BB0_1:", LOW),
        ("// begin inline asm", HIGH, "// end inline asm", LOW),
        (HIGH, "xor.b32 \t%r1, %r1, %r8;", LOW),
        (HIGH, "@%p1 mov.b32 \t%r2, %r8;", LOW),
        (HIGH, "ld.global.nc.b32 %r1, [%rd1];", LOW),
        (HIGH, "mov.b64 \t{%r9, %r1}, %rd1;", LOW),
        ("mul.hi.u32 \t%r1, %r1, %r2;", LOW),
        (HIGH, "add.s32 \t%r9, %r4, 1;", LOW),
        (LOW, "mov.b32 \t%r3, 1;", HIGH),
        (HIGH, "@%p1 bra \t$L__BB0_2;", LOW),
        ("@%p1 mul.hi.u32 \t%r3, %r1, %r2;", LOW),
        (HIGH, "mul.lo.s32 \t%r3, %r1, %r2;"),
        ("mul.hi.u32 \t%r3, %r1, %r2;",),
    ],
)
def test_others_are_left(lines):
    assert pair_products(text(*lines)) == text(*lines)


def test_two_pairs_of_the_same_factors():
    again = "mul.hi.u32 \t%r5, %r1, %r2;", "mul.lo.s32 \t%r6, %r1, %r2;"
    assert pair_products(text(HIGH, LOW, *again)).count("mul.wide") == 2


@deuteron.jit
def halves(x, y, high, low, carried, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a, b = tl.load(x + i).to(tl.uint32, bitcast=True), tl.load(y + i).to(tl.uint32, bitcast=True)
    tl.store(high + i, tl.umulhi(a, b).to(tl.int32, bitcast=True))
    tl.store(low + i, (a * b).to(tl.int32, bitcast=True))
    for _ in range(n):
        a, b = tl.umulhi(a, b) ^ b, a * b + 1
    tl.store(carried + i, (a ^ b).to(tl.int32, bitcast=True))


def test_the_product_is_right(rng):
    x, y = (rng.integers(-(2**31), 2**31, 64).astype(np.int32) for _ in range(2))
    high, low, carried = (np.zeros(64, np.int32) for _ in range(3))
    kernel = emulate(halves, x, y, high, low, carried, 5, BLOCK=64)
    a, b = x.view(np.uint32).astype(np.uint64), y.view(np.uint32).astype(np.uint64)
    np.testing.assert_array_equal(high.view(np.uint32), a * b >> np.uint64(32))
    np.testing.assert_array_equal(low.view(np.uint32), a * b & np.uint64(0xFFFFFFFF))
    for _ in range(5):
        a, b = a * b >> np.uint64(32) ^ b, (a * b + np.uint64(1)) & np.uint64(0xFFFFFFFF)
    np.testing.assert_array_equal(carried.view(np.uint32), a ^ b)
    assert instructions_with(kernel, "mul.wide.u32")


@deuteron.jit
def halves_of_changed(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a, b, c = tl.load(x + 2 * i), tl.load(y + 2 * i), tl.load(x + 2 * i + 1)
    for _ in range(n):
        c = c ^ tl.umulhi(a, b)
        b = b ^ (c >> 3)
        c = c ^ (a * b)
    tl.store(out + i, b ^ c)


def test_a_factor_that_a_loop_changes_between_the_halves(rng):
    """One register has both, which a load gives first, and the loop changes in its place."""
    x, y = (rng.integers(0, 2**32, 256).astype(np.uint32) for _ in range(2))
    out = np.zeros(128, np.uint32)
    emulate(halves_of_changed, x, y, out, 5, BLOCK=128)
    a, b, c = (part.astype(np.uint64) for part in (x[::2], y[::2], x[1::2]))
    for _ in range(5):
        c ^= a * b >> np.uint64(32)
        b ^= c >> np.uint64(3)
        c ^= a * b & np.uint64(0xFFFFFFFF)
    np.testing.assert_array_equal(out, b ^ c)
