"""What ops are taken to cost, in instructions of a thread."""

import pytest
from xdsl.dialects import test
from xdsl.dialects.builtin import f32, f64

from deuteron.ir.tt.extern import ExternElementwiseOp
from deuteron.passes.gpu.slices.costs import cost_of


@pytest.mark.parametrize(
    ("symbol", "type", "cost"),
    [
        *[(f"__nv_{name}f", f32, 8) for name in ("tanh", "exp", "exp2", "rsqrt", "nearbyint", "fmax", "cos")],
        *[("__nv_isnanf", f32, 8), ("__nv_fast_sinf", f32, 8), ("__nv_floor", f64, 16)],
        *[("__nv_powf", f32, 60), ("__nv_erff", f32, 60), ("__nv_tanh", f64, 120), ("__nv_exp", f64, 120)],
    ],
)
def test_functions_of_libdevice(symbol, type, cost):
    """A tanh of 15 instructions counted as 60: attention with capped scores was in loops over slices, and took 1.6
    times as long.
    """
    (operand,) = test.TestOp(result_types=[type]).results
    assert cost_of(ExternElementwiseOp([operand], type, symbol)) == cost
