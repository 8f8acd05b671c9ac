"""Which stores by TMA wait for those of earlier iterations, which may have written the same block."""

import pytest

import deuteron
import deuteron.language as tl
from deuteron.analysis.aliasing.tma_stores import stores_that_wait
from deuteron.frontend import lower_function
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.descriptor import DescriptorStoreOp
from deuteron.ir.tt.function import functions_in
from deuteron.machine.tile import TileConfig
from deuteron.passes import run_passes
from deuteron.passes.tile import tile_passes


@deuteron.jit
def blocks(out, n, STEP: tl.constexpr, FACTOR: tl.constexpr):
    desc = tl.make_tensor_descriptor(out, [n, 64], [64, 1], [64, 64])
    for k in tl.range(0, n, STEP, loop_unroll_factor=1):
        desc.store([k * FACTOR, 0], tl.zeros((64, 64), tl.int32) + k)


@pytest.mark.parametrize(
    ("step", "factor", "waits"),
    [
        (64, 1, False),
        (1, 64, False),
        (32, 1, True),
        (4, 1 << 30, True),  # 2**32 is 0
        (2, 1 << 30, False),
        (65537, 65535, True),  # 2**32 - 1 is -1
        (16, (1 << 28) + 2, True),
        (16, (1 << 28) + 4, False),
    ],
)
def test_blocks_of_iterations(step, factor, waits):
    types = {"out": "*i32", "n": "i32", "STEP": "constexpr", "FACTOR": "constexpr"}
    module = lower_function(blocks, types, {"STEP": step, "FACTOR": factor}, {})
    run_passes(module, tile_passes(TileConfig(tma_bytes=1 << 16)))
    (func,), stores = functions_in(module), nested_ops(module, DescriptorStoreOp)
    assert stores_that_wait(func, stores) == (stores if waits else [])
