"""The shared memory of blocks of tensors: TMA fills all that a descriptor may have, whatever else is done with it."""

from math import prod

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from ir_text import parse_kernel
from xdsl.dialects.builtin import TensorType

from deuteron.analysis.shared_memory.descriptor_buffers import block_buffer, block_bytes, load_buffer
from deuteron.ir.builder import Builder
from deuteron.ir.tt.descriptor import DescriptorLoadOp
from deuteron.ir.ttg.layout import MemDescType, SharedLinearEncodingAttr, layout_of
from deuteron.ir.ttg.shared import LocalAllocOp
from deuteron.ir.ttng.tma import box_of
from deuteron.ir.types import bf16, f8e4m3, f16, f32, f64, i8, i32, i64
from deuteron.layout.linear import OFFSET
from deuteron.layout.shared import mma_shared
from deuteron.layout.tensor_box import box_places

BYTES = {i8: 1, f8e4m3: 1, f16: 2, bf16: 2, f32: 4, i32: 4, f64: 8, i64: 8}


@given(
    st.sampled_from(list(BYTES)), st.lists(st.sampled_from([1, 2, 4, 8, 16, 64, 128, 256, 512]), min_size=1, max_size=5)
)
def test_copies_fill_every_block(element, shape):
    assume(shape[-1] * BYTES[element] >= 16 and prod(shape) <= 1 << 15)
    buffer = block_buffer(TensorType(element, shape))
    box = box_of(buffer)
    assert box is not None
    assert block_bytes(buffer) == prod(shape) * BYTES[element]
    layout, found = layout_of(buffer), np.zeros(shape, int)
    for place, offset in box_places(layout, box):
        assert layout(**{OFFSET: offset}) == place
        found[tuple(slice(at, at + extent) for at, extent in zip(place, box.shape, strict=True))] += 1
    assert (found == 1).all()


@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
def test_a_load_goes_into_an_allocation_that_copies_can_fill(order):
    """Of two, where the first is transposed on its way, into the second."""
    module = parse_kernel("%d: !tt.tensordesc<64x64xf16>, %n: i32", "")
    block = module.body.block.first_op.body.block
    b = Builder.before(block.last_op)
    load = b.insert(DescriptorLoadOp(block.args[0], [block.args[1], block.args[1]], [64, 64]))
    types = [
        MemDescType(TensorType(f16, [64, 64], SharedLinearEncodingAttr(mma_shared([64, 64], axis, 2), 1024)))
        for axis in order
    ]
    for type in types:
        b.insert(LocalAllocOp(type, load.result))
    assert load_buffer(load) == types[order.index(1)]
