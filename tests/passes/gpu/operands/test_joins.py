"""What operands of mma.sync are joined of stays in registers: nothing is stored again, no layout is converted."""

import pytest

import deuteron
import deuteron.language as tl
from deuteron.backend.cuda.target import architecture
from deuteron.frontend import lower_function
from deuteron.ir.casts import SIToFPOp
from deuteron.ir.tt.memory import LoadOp
from deuteron.ir.tt.shape import JoinOp
from deuteron.ir.ttg.async_copy import AsyncCopyGlobalToLocalOp
from deuteron.ir.ttg.convert import ConvertLayoutOp
from deuteron.ir.ttg.shared import LocalAllocOp
from deuteron.machine.gpu import GPUConfig
from deuteron.passes import run_passes
from deuteron.passes.gpu import gpu_passes
from deuteron.passes.tile import tile_passes


@deuteron.jit
def product(a_ptr, w_ptr, scales_ptr, out_ptr, K):
    rows, columns, ks, halves = tl.arange(0, 16), tl.arange(0, 64), tl.arange(0, 64), tl.arange(0, 32)
    acc = tl.zeros((16, 64), tl.float32)
    for k in range(0, K, 64):
        a = tl.load(a_ptr + rows[:, None] * K + k + ks[None, :])
        pairs = tl.load(w_ptr + columns[:, None] * (K // 2) + k // 2 + halves[None, :])
        low, high = (pairs << 4) >> 4, pairs >> 4
        w = tl.join(low.to(tl.float16), high.to(tl.float16)).reshape(64, 64)
        scale = tl.load(scales_ptr + columns * (K // 64) + k // 64)
        acc += tl.dot(a, w.T) * scale[None, :]
    tl.store(out_ptr + rows[:, None] * 64 + columns[None, :], acc)


def lower(capability: int):
    types = {"a_ptr": "*fp16", "w_ptr": "*i8", "scales_ptr": "*fp32", "out_ptr": "*fp32", "K": "i32"}
    hints = {name: (("tt.divisibility", 16),) for name in types}
    module = lower_function(product, types, {}, hints)
    run_passes(module, [*tile_passes(), *gpu_passes(GPUConfig(architecture(capability).machine, 4))])
    module.verify()
    return module


def ops_of(module, kind):
    return [op for op in module.walk() if isinstance(op, kind)]


@pytest.mark.parametrize("capability", [80, 90])
def test_halves_are_selected_and_converted_together(capability):
    module = lower(capability)
    assert not ops_of(module, JoinOp)
    assert len(ops_of(module, SIToFPOp)) == 1
    assert all(not op.operands for op in ops_of(module, LocalAllocOp)), "rings only: no tile is stored"
    in_loop = [op for op in ops_of(module, ConvertLayoutOp) if op.parent_op().name == "scf.for"]
    assert not in_loop


def test_scales_of_sums_are_copied_iterations_ahead():
    module = lower(90)
    assert not ops_of(module, LoadOp)
    assert len([op for op in ops_of(module, AsyncCopyGlobalToLocalOp) if op.parent_op().name == "scf.for"]) == 3
