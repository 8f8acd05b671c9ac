"""What ops are taken to cost, in instructions of a thread."""

import pytest
from xdsl.dialects import test
from xdsl.dialects.builtin import TensorType, f16, f32, f64

from deuteron.ir.tt.dot import DotOp
from deuteron.ir.tt.extern import ExternElementwiseOp
from deuteron.ir.ttg.layout import with_layout
from deuteron.layout.distributed import mma_v2_accumulator, mma_v2_operand
from deuteron.passes.gpu.slices.costs import cost_of, dot_slices


@pytest.mark.parametrize(
    ("symbol", "type", "cost"),
    [
        *[(f"__nv_{name}f", f32, 8) for name in ("tanh", "exp", "exp2", "rsqrt", "nearbyint", "fmax")],
        *[("__nv_isnanf", f32, 8), ("__nv_fast_sinf", f32, 8), ("__nv_floor", f64, 16)],
        *[("__nv_lgammaf", f32, 60), ("__nv_erfcinv", f64, 400), ("__nv_pow", f64, 400)],
        *[("__nv_powf", f32, 60), ("__nv_erff", f32, 60), ("__nv_tanh", f64, 120), ("__nv_exp", f64, 120)],
    ],
)
def test_functions_of_libdevice(symbol, type, cost):
    """A tanh of 15 instructions counted as 60: attention with capped scores was in loops over slices, and took 1.6
    times as long.
    """
    (operand,) = test.TestOp(result_types=[type]).results
    assert cost_of(ExternElementwiseOp([operand], type, symbol)) == cost


@pytest.mark.parametrize(("axis", "slices"), [(0, 2), (1, 1)])
def test_columns_that_are_fewer_than_an_instruction_has_are_one_slice(axis, slices):
    """They were none, of which there is no logarithm: a fault of the compiler in long kernels."""
    shapes, layouts = ((32, 16), (16, 2), (32, 2)), [mma_v2_operand([32, 16], [1, 1], 0, 16)]
    layouts += [mma_v2_operand([16, 2], [1, 1], 1, 16), mma_v2_accumulator([32, 2], [1, 1])]
    tiles = zip((f16, f16, f32), shapes, layouts, strict=True)
    types = [with_layout(TensorType(element, shape), layout) for element, shape, layout in tiles]
    assert dot_slices(DotOp(*test.TestOp(result_types=types).results), axis) == slices
