"""Which loads go through ring buffers when warps are specialised, and the rings that they go through.

    for ...:                              Bundle((a, b))    read by one product: they arrive together
      a, b = load, load                   Ring((type of a, type of b), 3 buffers of each)
      dot(a, b)

    load -> operand of a product          through a ring, if all that reads the tile is in the block of the load
    a block of a tensor                   the same, by TMA
    bundles of the same types             share a ring, wherever they are: those of two loops, or in front of a loop
    a ring that no loop fills, an argument that the kernel stores to, a tile that cannot be copied
                                          loaded as it is

A ring has `num_stages` buffers for each bundle of an iteration, as far as they fit into shared memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from deuteron.analysis.axis_analysis import AxisInfoAnalysis
from deuteron.analysis.descriptor_buffers import load_buffer
from deuteron.analysis.scratch import buffer_bytes
from deuteron.analysis.written_arguments import is_apart, written_arguments
from deuteron.ir.tt.descriptor import DescriptorLoadOp
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.tt.memory import LoadOp
from deuteron.ir.ttg.layout import MemDescType
from deuteron.ir.ttg.memdesc_index import buffers_type
from deuteron.ir.ttg.shared import LocalAllocOp
from deuteron.ir.ttg.views import is_view
from deuteron.ir.ttng.warp_group_dot import WarpGroupDotOp
from deuteron.ir.types import is_tile
from deuteron.passes.gpu.pipelining.pipelined_loads import (
    buffer_type,
    feeds_product,
    obstacle_to_copies,
)

Load = LoadOp | DescriptorLoadOp


@dataclass(eq=False)
class Bundle:
    """Loads of a block that are read together; `readers` are the ops of the block that read one of them."""

    loads: list[Load]
    types: list[MemDescType]
    readers: set[Operation]

    @property
    def block(self) -> Block:
        return self.loads[0].parent

    @property
    def first_reader(self) -> Operation:
        return next(op for op in self.block.ops if op in self.readers)

    @property
    def loop(self) -> scf.ForOp | None:
        """The innermost loop around it."""
        return loop_around(self.loads[0])


@dataclass(eq=False)
class Ring:
    """Buffers that take turns, each with room for a bundle of these types."""

    types: tuple[MemDescType, ...]
    bundles: list[Bundle] = field(default_factory=list)

    @property
    def bundles_at_once(self) -> int:
        """How many bundles a block has at most."""
        blocks = [bundle.block for bundle in self.bundles]
        return max(blocks.count(block) for block in blocks)

    @property
    def num_bytes(self) -> int:
        """Of one buffer for each load of a bundle."""
        return sum(buffer_bytes(buffers_type(type, 2)) for type in self.types)

    @property
    def is_of_blocks(self) -> bool:
        """Whether TMA fills it."""
        return isinstance(self.bundles[0].loads[0], DescriptorLoadOp)


def loop_around(op: Operation) -> scf.ForOp | None:
    """The innermost loop that an op is in."""
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, scf.ForOp):
        parent = parent.parent_op()
    return parent


def find_rings(func: FuncOp, info: AxisInfoAnalysis) -> list[Ring]:
    """The rings that loops of products fill."""
    written, rings = written_arguments(func), {}
    for block in _blocks(func):
        for kind, may_be_copied in ((LoadOp, _may_be_copied), (DescriptorLoadOp, _may_be_copied_by_tma)):
            loads = [op for op in block.ops if isinstance(op, kind) and may_be_copied(op, written, info)]
            for bundle in _bundles(loads, info):
                rings.setdefault((kind, *bundle.types), Ring(tuple(bundle.types))).bundles.append(bundle)
    return [ring for ring in rings.values() if any(_multiplies_in_loop(bundle) for bundle in ring.bundles)]


def loads_besides(rings: Sequence[Ring]) -> list[Load]:
    """The loads of products that are beside those of the rings, and go through none."""
    found = {load for ring in rings for bundle in ring.bundles for load in bundle.loads}
    blocks = {bundle.block for ring in rings for bundle in ring.bundles}
    loads = [op for block in blocks for op in block.ops if isinstance(op, Load) and is_tile(op.result.type)]
    return [load for load in loads if load not in found and feeds_product(load.result)]


def _blocks(func: FuncOp) -> list[Block]:
    return [block for op in func.walk() for region in op.regions for block in region.blocks]


def _may_be_copied(load: LoadOp, written: set[SSAValue | None], info: AxisInfoAnalysis) -> bool:
    return (
        is_tile(load.result.type)
        and not load.is_volatile.value.data
        and is_apart(load, written)
        and feeds_product(load.result)
        and obstacle_to_copies(load, buffer_type(load, info), info) is None
    )


def _may_be_copied_by_tma(load: DescriptorLoadOp, written: set[SSAValue | None], info: AxisInfoAnalysis) -> bool:
    return is_apart(load, written) and feeds_product(load.result)


def _type_of(load: Load, info: AxisInfoAnalysis) -> MemDescType:
    return buffer_type(load, info) if isinstance(load, LoadOp) else load_buffer(load)


def _bundles(loads: Sequence[Load], info: AxisInfoAnalysis) -> list[Bundle]:
    """A load joins those with which it has a reader, unless one of these readers comes before it."""
    bundles: list[Bundle] = []
    for load in loads:
        type = _type_of(load, info)
        readers = readers_of(load, type)
        if any(reader.parent is not load.parent for reader in readers):
            continue
        mates = [bundle for bundle in bundles if bundle.readers & readers and _is_before(load, bundle.first_reader)]
        if mates:
            mates[0].loads.append(load)
            mates[0].types.append(type)
            mates[0].readers |= readers
        else:
            bundles.append(Bundle([load], [type], readers))
    return bundles


def readers_of(load: Load, buffer: MemDescType) -> set[Operation]:
    """The ops that will read the buffer: those that take the tile, or an allocation of its type, or a view of that."""
    readers, pending = set(), [load.result]
    while pending:
        for use in pending.pop().uses:
            user = use.operation
            is_buffer = isinstance(user, LocalAllocOp) and user.result.type == buffer
            if is_buffer or is_view(user):
                pending += user.results
            else:
                readers.add(user)
    return readers


def _is_before(op: Operation, other: Operation) -> bool:
    return op is not other and next(inner for inner in op.parent.ops if inner in (op, other)) is op


def _multiplies_in_loop(bundle: Bundle) -> bool:
    return bundle.loop is not None and any(isinstance(op, WarpGroupDotOp) for op in bundle.block.ops)
