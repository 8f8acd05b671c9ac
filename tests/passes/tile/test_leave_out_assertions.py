"""Assertions of kernels that are not compiled for debugging are left out, traps stay."""

from __future__ import annotations

import pytest

import deuteron as triton
import deuteron.language as tl
from deuteron.compiler import ASTSource
from deuteron.passes.tile.leave_out_assertions import LeaveOutAssertions


def test_what_always_counts_stays(check):
    check(
        [LeaveOutAssertions()],
        "%c: i1",
        """
        // CHECK-NOT: "fits"
        // CHECK:     "tt.assert"(%c) <{message = "trap"
        "tt.assert"(%c) <{message = "fits"}> : (i1) -> ()
        "tt.assert"(%c) <{message = "trap", always}> : (i1) -> ()""",
    )


@triton.jit
def gathered(x, rows, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    row = tl.load(rows + i // 4)
    tl.device_assert((row >= 0) & (row < 100), "no such row")
    tl.store(out + i, tl.load(x + 4 * row + i % 4))


@pytest.mark.parametrize("target", ["cpu", "cuda:90"])
@pytest.mark.parametrize("debug", [False, True])
def test_only_kernels_for_debugging_assert(target, debug):
    source = ASTSource(gathered, {"x": "*fp32", "rows": "*i64", "out": "*fp32"}, {"BLOCK": 128})
    compiled = triton.compile(source, target=target, options={"debug": debug})
    assert ("tt.assert" in str(compiled.asm["ttir"])) == debug
