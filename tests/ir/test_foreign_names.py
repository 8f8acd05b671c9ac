"""Names of values in texts that MLIR writes, and xDSL takes otherwise; hints of loops that Triton gives to LLVM."""

import numpy as np
from xdsl.dialects import scf

import deuteron
from deuteron.compiler import IRSource
from deuteron.ir.foreign import make_native
from deuteron.ir.text import parse_module

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


OF_A_LOOP = """
#loop_licm = #llvm.loop_licm<disable = true, versioningDisable = true>
#loop_annotation = #llvm.loop_annotation<licm = #loop_licm>
module {
  tt.func public @k(%p: !tt.ptr<i32>) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    scf.for %i = %c0 to %c1 step %c1 : i32 {
      tt.store %p, %c1 : !tt.ptr<i32>
    } {llvm.loop_annotation = #loop_annotation}
    tt.return
  }
}
"""


def test_a_loop_of_which_nothing_is_hoisted():
    """What `tl.range(disable_licm=True)` is in Triton's text."""
    module = parse_module(OF_A_LOOP)
    make_native(module)
    (loop,) = (op for op in module.walk() if isinstance(op, scf.ForOp))
    assert list(loop.attributes) == ["tt.disable_licm"]
