"""Signed fields that begin beyond the highest bit, which ptxas makes -1 where it knows them, begin at that bit."""

from __future__ import annotations

import numpy as np
import pytest

import deuteron
import deuteron.language as tl
from deuteron.backend.cuda.assembler.clamp_fields import clamp_fields
from deuteron.compiler import ASTSource


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("bfe.s32 %r1, %r2, 35, 4;", "bfe.s32 %r1, %r2, 31, 4;"),
        ("bfe.s32 \t%r1, %r2, 0x20,4;", "bfe.s32 \t%r1, %r2, 31,4;"),
        ("@%p1 bfe.s32 %r1,%r2,-1,%r3;", "@%p1 bfe.s32 %r1,%r2,31,%r3;"),
        ("@!p bfe.s32 a, b, 255 , 4;", "@!p bfe.s32 a, b, 31 , 4;"),
    ],
)
def test_a_number_beyond(before, after):
    assert clamp_fields(f"{{ {before} }}") == f"{{ {after} }}"


@pytest.mark.parametrize(
    "same",
    ["bfe.s32 %r1, %r2, 31, 4;", "bfe.s32 %r1, %r2, 256, 4;", "bfe.u32 %r1, %r2, 35, 4;", "bfe.s64 %d, %e, %r1, 4;"],
)
def test_what_stays(same):
    assert clamp_fields(same) == same


def test_a_guard_is_that_of_the_field():
    """A block has none."""
    found = clamp_fields("@%p1 bfe.s32 %r1, %r2, %r3, 4;")
    assert found.startswith("{ .reg .b32") and found.endswith("; @%p1 bfe.s32 %r1, %r2, %clamped_begin, 4; }")


@deuteron.jit
def field(x_ptr, begin_ptr, length_ptr, out_ptr, asm: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    args = [tl.load(x_ptr + i), tl.load(begin_ptr + i), tl.load(length_ptr + i)]
    tl.store(out_ptr + i, tl.inline_asm_elementwise(asm, "=r,r,r,r", args, tl.int32, is_pure=True, pack=1))


ASM = "{ .reg .pred p; setp.ne.s32 p, $1, 7; mov.b32 $0, $1; @p bfe.s32 $0, $1, $2, $3; }"


def test_fields_of_all_places(rng, monkeypatch):
    """As the definition has them, bit by bit, of the clamped text on the emulator."""
    monkeypatch.setenv("DEUTERON_EMULATE", "1")
    monkeypatch.setenv("DEUTERON_TARGET", "cuda:90")
    x = rng.integers(-(2**31), 2**31, 1024).astype(np.int32)
    x[::9] = 7
    begin, length = (rng.integers(0, 80, 1024).astype(np.int32) for _ in range(2))
    out = np.full(1024, 99, np.int32)
    field[(1,)](x, begin, length, out, ASM, 1024)
    bits = np.arange(32)
    places = begin[:, None] + bits
    taken = np.where((bits < length[:, None]) & (places < 32), places, np.minimum(begin + length - 1, 31)[:, None])
    found = (x.astype(np.int64)[:, None] >> taken & 1) << bits
    expected = np.where(length == 0, 0, found.sum(1)).astype(np.uint32).view(np.int32)
    np.testing.assert_array_equal(out, np.where(x == 7, x, expected))


def test_the_text_for_gpus_has_them():
    types = {name: "*i32" for name in ("x_ptr", "begin_ptr", "length_ptr", "out_ptr")}
    source = ASTSource(field, types, {"asm": ASM, "N": 128})
    assert "min.u32 %clamped_begin" in deuteron.compile(source, target="cuda:90").asm["ptx"]
