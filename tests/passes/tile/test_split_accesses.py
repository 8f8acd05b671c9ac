"""Loads and stores at places that are chosen of strips are several on CPUs, and do what they did; others stay one."""

import re

import numpy as np
import pytest
from backend.cuda.launching import compile_for
from ir_text import generic_asm

import deuteron
import deuteron.language as tl
from deuteron.passes.tile.split_accesses import SplitAccesses

SPLIT = ["rolled", "no mask", "other", "loop", "two dimensions", "same place", "two conditions", "loaded condition"]
SPLIT += ["of three", "stored"]
WHOLE = ["of rows", "reversed", "loaded place", "of five", "volatile"]


@deuteron.jit
def kernel(x, places, o, n, s, KIND: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B)
    row = x + tl.program_id(0) * n
    rolled = tl.where(i < s, i + n - s, i - s)
    out = o + tl.program_id(0) * B + i
    mask = i < n
    if KIND == "rolled":
        v = tl.load(row + rolled, mask, other=0)
    elif KIND == "no mask":
        v = tl.load(row + tl.where(i >= s, i - s, i))
    elif KIND == "other":
        v = tl.load(row + rolled, mask, other=7)
    elif KIND == "loop":
        v = tl.zeros((B,), tl.float32)
        for k in range(3):
            v += tl.load(row + tl.where(i < k + s, i, i - s) + k, mask, other=0)
    elif KIND == "two dimensions":
        j = tl.arange(0, 4)
        v = tl.sum(tl.load(x + j[:, None] * n + rolled[None, :], mask[None, :], other=0), 0)
    elif KIND == "same place":
        v = tl.load(row + tl.where(i != s, i, 1), mask, other=0)
    elif KIND == "two conditions":
        v = tl.load(row + tl.where((i > 2) & (i <= s), i - 2, i), mask, other=0)
    elif KIND == "loaded condition":
        v = tl.load(row + tl.where(tl.load(places + i) > 9, i, i + 3), mask, other=0)
    elif KIND == "of rows":
        j = tl.arange(0, 4)
        at = tl.where(j < 2, j + 1, j - 1)[:, None] * n + i[None, :]
        v = tl.sum(tl.load(x + at, mask[None, :], other=0), 0)
    elif KIND == "reversed":
        v = tl.load(row + tl.where(i < s, s - i, i), mask, other=0)
    elif KIND == "loaded place":
        v = tl.load(row + tl.where(i < s, tl.load(places + i), i), mask, other=0)
    elif KIND == "of three":
        v = tl.load(row + tl.where(i < s, i, tl.where(i < 9, 0, i - 1)), mask, other=0)
    elif KIND == "of five":
        v = tl.load(
            row + tl.where(i < 6, tl.where(i < 3, i, 9), tl.where(i < 9, tl.where(i < 8, 2, 3), i)), mask, other=0
        )
    elif KIND == "stored":
        v = tl.load(row + i, mask, other=0)
        out = o + tl.program_id(0) * B + tl.where(i + s < n, i + s, i + s - n)
    elif KIND == "volatile":
        v = tl.load(row + rolled, mask, other=0, volatile=True)
    tl.store(out, v, mask)


def arguments():
    rng = np.random.default_rng(0)
    x = rng.integers(-9, 9, (5, 40)).astype(np.float32)
    return x, rng.integers(0, 20, 64).astype(np.int32), np.zeros((2, 64), np.float32), 40


def num_accesses(kind: str) -> int:
    """How many loads of x there are, or stores."""
    text = generic_asm(compile_for("cpu", kernel, *arguments(), 11, KIND=kind, B=64), "ttir")
    return len(re.findall(rf'"tt.{"store" if kind == "stored" else "load"}"\(.*ptr<f32>', text))


@pytest.mark.parametrize("kind", SPLIT)
def test_strips_are_accessed_apart(kind):
    assert num_accesses(kind) == {"loop": 6, "of three": 3}.get(kind, 2)


@pytest.mark.parametrize("kind", WHOLE)
def test_others_are_accessed_at_once(kind):
    assert num_accesses(kind) == 1


@pytest.mark.parametrize("kind", [*SPLIT, *WHOLE])
@pytest.mark.parametrize("s", [0, 11, 39, 40])
def test_elements_are_what_they_were(kind, s, monkeypatch):
    outs = []
    for is_interpreted in ("0", "1"):
        monkeypatch.setenv("DEUTERON_INTERPRET", is_interpreted)
        x, places, out, n = arguments()
        deuteron.jit(kernel.fn)[(2,)](x, places, out, n, s, KIND=kind, B=64)
        outs.append(out)
    np.testing.assert_array_equal(*outs)


def test_masks_are_those_of_the_choice(check):
    check(
        [SplitAccesses()],
        "%p: !tt.ptr<f32>, %s: i32",
        """
        // CHECK: [[C:%.*]] = "arith.cmpi"(%i, %ss) <{predicate = 6 : i64}>
        // CHECK: [[A:%.*]] = "tt.addptr"(%base, %i)
        // CHECK: [[B:%.*]] = "tt.addptr"(%base, %moved)
        // CHECK: [[D:%.*]] = "arith.cmpi"(%i, %ss) <{predicate = 9 : i64}>
        // CHECK: [[X:%.*]] = "tt.load"([[A]], [[C]])
        // CHECK: [[Y:%.*]] = "tt.load"([[B]], [[D]])
        // CHECK: "arith.select"([[C]], [[X]], [[Y]])
        // CHECK-NOT: "tt.load"
        %i = "tt.make_range"() <{start = 0 : i32, end = 64 : i32}> : () -> tensor<64xi32>
        %ss = "tt.splat"(%s) : (i32) -> tensor<64xi32>
        %base = "tt.splat"(%p) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
        %moved = "arith.addi"(%i, %ss) : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
        %c = "arith.cmpi"(%i, %ss) <{predicate = 6 : i64}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi1>
        %at = "arith.select"(%c, %i, %moved) : (tensor<64xi1>, tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
        %q = "tt.addptr"(%base, %at) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
        %x = "tt.load"(%q) <{operandSegmentSizes = array<i32: 1, 0, 0>, boundaryCheck = array<i32>,
            cache = 1 : i32, evict = 1 : i32, isVolatile = false}> : (tensor<64x!tt.ptr<f32>>) -> tensor<64xf32>
        use %x : tensor<64xf32>""",
    )
