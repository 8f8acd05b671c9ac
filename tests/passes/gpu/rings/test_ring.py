"""Positions in a ring: where what reads and what fills begin, and which bundle comes next."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import TensorType

from deuteron.ir.arith import constant_value
from deuteron.ir.builder import Builder
from deuteron.ir.tt.descriptor import DescriptorLoadOp, TensorDescType
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.ttg.layout import MemDescType, SharedLinearEncodingAttr
from deuteron.ir.ttg.ring import RingNextOp
from deuteron.ir.ttng.mbarrier import InitBarrierOp
from deuteron.ir.types import f16, i32
from deuteron.layout.shared import row_major
from deuteron.passes.gpu.rings.buffered_loads import BufferedLoad
from deuteron.passes.gpu.rings.ring import Ring

BOX = TensorType(f16, [64, 32])
BUFFER = MemDescType(TensorType(f16, [64, 32], SharedLinearEncodingAttr(row_major((64, 32)))))


def ring(num_slots: int, **given: int) -> tuple[Ring, Builder, FuncOp]:
    func = FuncOp("k", [TensorDescType(BOX), i32])
    b = Builder.at_end(func.body.block)
    load = b.insert(DescriptorLoadOp(func.args[0], [func.args[1], func.args[1]]))
    return Ring(b, [BufferedLoad(load, BUFFER)], num_slots, **given), b, func


@pytest.mark.parametrize("num_slots", [1, 2, 3])
def test_positions_count_bundles(num_slots: int):
    """A slot, and the parity of the round; also of bundles before the first."""
    made, b, _ = ring(num_slots)
    for bundle in range(-num_slots, 4 * num_slots):
        index, phase = map(constant_value, made.position(b, bundle))
        assert (index, phase) == (bundle % num_slots, np.floor_divide(bundle, num_slots) % 2)
    assert [constant_value(value) for value in made.first_read(b)] == [0, 0]
    assert [constant_value(value) for value in made.first_filled(b)] == [0, 1]


def test_the_next_position_is_a_step_of_the_ring():
    made, b, _ = ring(3)
    index, phase = made.following(b, made.first_read(b))
    assert isinstance(index.owner, RingNextOp) and index.owner is phase.owner and index.owner.num_slots == 3


def test_one_arrival_fills_a_slot_and_every_warp_of_all_ctas_empties_it():
    _, _, func = ring(2, consumers=8, num_ctas=2)
    counts = [op.count.value.data for op in func.walk() if isinstance(op, InitBarrierOp)]
    assert counts == [1, 16, 1, 16]
