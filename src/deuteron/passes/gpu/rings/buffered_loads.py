"""Loads that can be copied into shared memory, instead of going through registers, and the buffers that they go into.

tt.load               cp.async, if neighbours in memory are neighbours in shared memory, and masks leave 0
tt.descriptor_load    TMA
the buffer            is that which a dot reads, if the tile is stored for one; else one that dots read well
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue

from deuteron.analysis.addresses.access_vectors import access_vectors, copy_vectors
from deuteron.analysis.axis.axis_analysis import AxisInfoAnalysis
from deuteron.analysis.shared_memory.descriptor_buffers import load_buffer
from deuteron.ir.builder import Builder
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.descriptor import DescriptorLoadOp
from deuteron.ir.tt.memory import LoadOp, StoreOp
from deuteron.ir.tt.shape import SplatOp
from deuteron.ir.ttg.layout import MemDescType, SharedLinearEncodingAttr, layout_of
from deuteron.ir.ttg.shared import LocalAllocOp
from deuteron.ir.types import byte_width_of, element_type_of, i1, is_tile, shape_of, with_element_type
from deuteron.layout.shared import PLAIN_ALIGNMENT, SWIZZLE_ALIGNMENT, mma_shared, row_major
from deuteron.machine.gpu import GPU
from deuteron.passes.rewrite import Values

STAGES_HINT = "tt.num_stages"
DOTS = ("tt.dot", "ttg.sliced_dot", "ttng.warp_group_dot")

Load = LoadOp | DescriptorLoadOp


@dataclass(frozen=True)
class BufferedLoad:
    """A load, and the type of the buffers that it is copied into."""

    load: Load
    buffer: MemDescType

    @staticmethod
    def of(load: Load, info: AxisInfoAnalysis) -> BufferedLoad:
        return BufferedLoad(load, _buffer_of(load, info) if isinstance(load, LoadOp) else load_buffer(load))

    @property
    def is_read_in_place(self) -> bool:
        """Whether the buffer is what every allocation that takes the tile would be."""
        takers = (use.operation for use in self.load.result.uses)
        return all(op.result.type == self.buffer for op in takers if isinstance(op, LocalAllocOp))


def is_filled_by_tma(loads: Sequence[BufferedLoad]) -> bool:
    """Whether loads that share a ring, all of one kind, are copied by TMA."""
    return isinstance(loads[0].load, DescriptorLoadOp)


def _buffer_of(load: LoadOp, info: AxisInfoAnalysis) -> MemDescType:
    """That of the allocation which takes the tile; else the one from which dots read best."""
    for use in load.result.uses:
        if isinstance(use.operation, LocalAllocOp) and use.operation.parent_block() is load.parent_block():
            return use.operation.result.type
    shape, contiguity = shape_of(load.result.type), info.of(load.ptr).contiguity
    order = sorted(range(len(shape)), key=lambda axis: (-min(contiguity[axis], shape[axis]), -axis))
    element = element_type_of(load.result.type)
    layout = mma_shared(shape, order[0], byte_width_of(element)) if len(shape) == 2 else row_major(shape, order)
    encoding = SharedLinearEncodingAttr(layout, SWIZZLE_ALIGNMENT if len(shape) == 2 else PLAIN_ALIGNMENT)
    return MemDescType(TensorType(element, shape, encoding))


def obstacle_to_copies(one: BufferedLoad, info: AxisInfoAnalysis, machine: GPU) -> str | None:
    """What keeps a load from being copied into shared memory, in words.

    A tile that is transposed on its way there would be copied word by word.
    """
    load, copy_bytes = one.load, machine.async_copy_bytes
    if isinstance(load, DescriptorLoadOp):
        return None
    if not copy_bytes:
        return "nothing copies into shared memory by itself"
    if not load.gives_zeros:
        return "it is not 0 where it is masked off"
    layout, size = layout_of(load.ptr.type), byte_width_of(load.result.type)
    mask = info.of_mask(load.mask)
    accesses = access_vectors(layout, info.of(load.ptr), mask, size)
    copies = copy_vectors(layout, layout_of(one.buffer), info.of(load.ptr), mask, size, copy_bytes)
    if copies is not None and len(copies) == len(accesses):
        return None
    if copies is None and size * len(accesses[0]) < min(copy_bytes):
        return f"a copy takes {min(copy_bytes)} bytes or more, an access {size * len(accesses[0])}"
    return "neighbours in memory are not neighbours in shared memory"


def stages_of(loop: Operation, otherwise: int) -> int:
    """How many stages a loop is to have: what it is asked for, else the kernel's."""
    hint = loop.attributes.get(STAGES_HINT)
    return otherwise if hint is None else hint.value.data


def has_dots(op: Operation) -> bool:
    """Whether there are dots in a kernel or loop: what they hold in registers is not known here."""
    return any(inner.name in DOTS for inner in nested_ops(op))


def fed_to_dots(op: Operation) -> set[SSAValue]:
    """The values in an op that become operands of dots through ops without regions, from the last op backwards: asked
    of each load forwards, a kernel of many loads took time by the square of their number.
    """
    found: set[SSAValue] = set()
    for inner in reversed(nested_ops(op)):
        if inner.name in DOTS:
            found.update(inner.operands[:2])
        elif found and not inner.regions and not isinstance(inner, LoadOp) and not found.isdisjoint(inner.results):
            found.update(inner.operands)
    return found


def masked(
    b: Builder, access: LoadOp | StoreOp, values: Values, runs: SSAValue | None
) -> tuple[SSAValue, SSAValue | None]:
    """Pointers and mask of an access in an iteration; where it does not run, nothing is loaded or stored."""
    pointer, mask = values.of(access.ptr), values.of(access.mask) if access.mask is not None else None
    if runs is None:
        return pointer, mask
    type = with_element_type(pointer.type, i1)
    everywhere = b.value(SplatOp.create(operands=[runs], result_types=[type])) if is_tile(type) else runs
    return pointer, everywhere if mask is None else b.value(arith.AndIOp(mask, everywhere))
