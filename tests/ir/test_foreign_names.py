"""Names of values in texts that MLIR writes, and xDSL takes otherwise."""

import numpy as np

import deuteron
from deuteron.compiler import IRSource

TEXT = """
module {
  tt.func public @k(%_0: !tt.ptr<i32>, %_1: i32) {
    %_2 = arith.constant 3 : i32
    %_3 = arith.muli %_1, %_2 : i32
    %_4 = arith.addi %_1, %_1 : i32
    tt.store %_0, %_3 : !tt.ptr<i32>
    tt.return
  }
}
"""


def test_an_underline_and_a_number():
    """As MLIR calls what Python assigns to `_`; one of these values is erased."""
    kernel = deuteron.compile(IRSource.from_text(TEXT, "ttir"), target="cpu")
    out = np.zeros(1, np.int32)
    kernel[(1,)](out, 5)
    assert out[0] == 15
