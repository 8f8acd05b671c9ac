"""Short loops of loads are written out, others stay loops, and all do the same."""

import numpy as np
import pytest
from backend.cuda.launching import compile_for
from ir_text import generic_asm

import deuteron
import deuteron.language as tl
from deuteron.interpreter import run_module
from deuteron.passes import run_passes
from deuteron.passes.tile.unroll_short_loops import UnrollShortLoops

X = np.zeros(1 << 14, np.float32)


@deuteron.jit
def kernel(x, o, n, KIND: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i = tl.arange(0, N)
    total = tl.zeros((N,), tl.float32)
    if KIND == "loads":
        for k in range(K):
            total += tl.load(x + k * n + i)
    elif KIND == "halves":
        for k in range(K):
            total += tl.load(x.to(tl.pointer_type(tl.float16)) + k * n + i)
    elif KIND == "windows":
        for y in range(K):
            for k in range(0, 2 * K, 2):
                total += tl.load(x + y * n + k + i)
    elif KIND == "functions":
        for k in range(K):
            total += tl.cos(tl.load(x + k * n + i))
    elif KIND == "reductions":
        for k in range(K):
            total += tl.sum(tl.load(x + k * n + i))
    elif KIND == "in a loop of n":
        for c in range(n):
            for k in range(K):
                total += tl.load(x + c * 64 + k + i)
    elif KIND == "no loads":
        for k in range(K):
            total = total * n + k
    elif KIND == "asked for":
        for k in tl.range(K, num_stages=2):
            total += tl.load(x + k * n + i)
    elif KIND == "kept":
        for k in tl.range(K, loop_unroll_factor=1):
            total += tl.load(x + k * n + i)
    elif KIND == "a loop of n in it":
        for k in range(K):
            for c in range(n):
                total += tl.load(x + c * 64 + k + i)
    tl.store(o + i, total)


def test_what_is_narrower_than_a_register_takes_one():
    """5 by 5 taps of 4 pixels in bf16: 1,527 instructions, 255 registers and spills became 353 instructions."""
    assert counts("halves", size=1024, taps=12) == (0, 12)
    assert counts("halves", size=1024, taps=13) == (1, 1)


def counts(kind, size=256, taps=3, num_warps=4):
    compiled = compile_for("cuda:90", kernel, X, X, 100, KIND=kind, N=size, K=taps, num_warps=num_warps)
    text = generic_asm(compiled, "ttir")
    return text.count('"scf.for"'), text.count('"tt.load"')


@pytest.mark.parametrize(
    ("kind", "loops", "loads"),
    [
        ("loads", 0, 3),
        ("windows", 0, 9),
        ("reductions", 0, 3),
        ("in a loop of n", 1, 3),
        ("no loads", 1, 0),
        ("asked for", 1, 1),
        ("kept", 1, 1),
        ("a loop of n in it", 2, 1),
    ],
)
def test_which_are_written_out(kind, loops, loads):
    assert counts(kind) == (loops, loads)


@pytest.mark.parametrize(
    ("size", "taps", "num_warps", "loops"),
    [(1024, 12, 4, 0), (1024, 13, 4, 1), (4096, 3, 4, 0), (256, 200, 4, 1), (4096, 12, 16, 0), (1024, 4, 1, 1)],
)
def test_what_is_long_stays(size, taps, num_warps, loops):
    """12 tiles of 1024 are 96 registers of each of 128 threads, as 12 of 4096 are of each of 512."""
    assert counts("loads", size, taps, num_warps)[0] == loops


def test_what_ops_take_counts():
    """128 cosines of a thread were 26,000 instructions that spilled, and took nine times as long as Triton's loop."""
    assert counts("functions", 2048, 8, 16)[0] == 0
    assert counts("functions", 2048, 24, 16)[0] == 1
    assert counts("loads", 2048, 24, 16)[0] == 0


ACCESS = "boundaryCheck = array<i32>, cache = 1 : i32, evict = 1 : i32"
LOAD = f"<{{{ACCESS}, isVolatile = false, operandSegmentSizes = array<i32: 1, 0, 0>}}>"
LOOP = f"""
    %lb = "arith.constant"() <{{value = LB : i32}}> : () -> i32
    %ub = "arith.constant"() <{{value = UB : i32}}> : () -> i32
    %st = "arith.constant"() <{{value = ST : i32}}> : () -> i32
    %r = "scf.for"(%lb, %ub, %st, %x) ({{
    ^bb1(%i: i32, %a: i32):
      %q = "tt.addptr"(%p, %i) : (!tt.ptr<i32>, i32) -> !tt.ptr<i32>
      %v = "tt.load"(%q) {LOAD} : (!tt.ptr<i32>) -> i32
      %m = "arith.muli"(%a, %a) : (i32, i32) -> i32
      %n = "arith.addi"(%m, %v) : (i32, i32) -> i32
      "scf.yield"(%n) : (i32) -> ()
    }}) : (i32, i32, i32, i32) -> i32
    "tt.store"(%o, %r) <{{{ACCESS}}}> : (!tt.ptr<i32>, i32) -> ()"""


@pytest.mark.parametrize(("begin", "end", "step"), [(0, 3, 1), (1, 9, 3), (0, 1, 5), (4, 4, 1), (7, 2, 1), (2, 14, 2)])
def test_the_same_iterations(parse_kernel, begin, end, step):
    body = LOOP.replace("LB", str(begin)).replace("UB", str(end)).replace("ST", str(step))
    plain, written_out = (parse_kernel("%x: i32, %p: !tt.ptr<i32>, %o: !tt.ptr<i32>", body) for _ in range(2))
    run_passes(written_out, [UnrollShortLoops()])
    data, outputs = np.arange(16, dtype=np.int32) ** 2, [np.full(1, 77, np.int32) for _ in range(2)]
    for module, out in zip((plain, written_out), outputs, strict=True):
        run_module(module, [3, data, out], (1, 1, 1))
    np.testing.assert_array_equal(*outputs)
    if range(begin, end, step):
        assert not any(op.name == "scf.for" for op in written_out.walk())
