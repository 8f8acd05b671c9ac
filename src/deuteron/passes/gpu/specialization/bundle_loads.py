"""Which loads go through rings when warps are specialised, and which of them share a slot, and a ring.

    for ...:                              Bundle((a, b))    read by one dot: they arrive together, in one slot
      a, b = load, load                   RingPlan((type of a, type of b), (the bundle,))
      dot(a, b)

    load -> operand of a dot              through a ring, if all that reads the tile is in the block of the load
    a box of a tensor                     the same, by TMA
    bundles of the same types             share a ring, wherever they are: those of two loops, or before a loop; but not
                                          one that is read again after a loop which reads others
    a ring that no loop fills, an argument that the kernel stores to, a tile that cannot be copied
                                          loaded as it is

A ring has `num_stages` slots for each bundle of an iteration, as far as they fit into shared memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product

from xdsl.dialects import scf
from xdsl.ir import Block, Operation

from deuteron.analysis.aliasing.program_order import Writers
from deuteron.analysis.axis.axis_analysis import AxisInfoAnalysis
from deuteron.analysis.shared_memory.scratch import buffer_bytes
from deuteron.ir.around import ops_around
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.descriptor import DescriptorLoadOp
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.tt.memory import LoadOp
from deuteron.ir.ttg.memdesc_index import buffers_type
from deuteron.ir.ttg.shared import LocalAllocOp
from deuteron.ir.ttg.views import is_view
from deuteron.ir.ttng.warp_group_dot import WarpGroupDotOp
from deuteron.ir.types import is_tile
from deuteron.machine.gpu import GPU
from deuteron.passes.gpu.clusters.multicast import sharing_ctas
from deuteron.passes.gpu.rings.buffered_loads import (
    BufferedLoad,
    Load,
    fed_to_dots,
    is_filled_by_tma,
    obstacle_to_copies,
)


@dataclass(eq=False)
class Bundle:
    """Loads of a block that are read together; `readers` are the ops of the block that read one of them."""

    loads: list[BufferedLoad]
    readers: set[Operation]

    @property
    def block(self) -> Block:
        return self.loads[0].load.parent

    @property
    def first_reader(self) -> Operation:
        return next(op for op in self.block.ops if op in self.readers)

    @property
    def loop(self) -> scf.ForOp | None:
        """The innermost loop around it."""
        return loop_around(self.loads[0].load)

    def is_kept_for(self, others: Sequence[Bundle]) -> bool:
        """Whether it is read again after a loop or a branch that reads some of the others."""
        readers = [op for op in self.block.ops if op in self.readers]
        around = {op for other in others if other.block is not self.block for op in ops_around(other.first_reader)}
        op = readers[0]
        while op is not readers[-1] and op not in around:
            op = op.next_op
        return op is not readers[-1]


@dataclass(eq=False)
class RingPlan:
    """The bundles that share a ring: their loads are of one kind, and have buffers of the same types."""

    bundles: list[Bundle] = field(default_factory=list)

    @property
    def loads(self) -> list[BufferedLoad]:
        """Of all bundles."""
        return [one for bundle in self.bundles for one in bundle.loads]

    @property
    def bundles_at_once(self) -> int:
        """How many bundles a block has at most."""
        blocks = [bundle.block for bundle in self.bundles]
        return max(blocks.count(block) for block in blocks)

    @property
    def slot_bytes(self) -> int:
        """Of one buffer for each load of a bundle."""
        return sum(buffer_bytes(buffers_type(one.buffer, 2)) for one in self.bundles[0].loads)

    @property
    def is_filled_by_tma(self) -> bool:
        return is_filled_by_tma(self.bundles[0].loads)

    @property
    def is_read_in_turn(self) -> bool:
        """Whether no op waits for two slots: it would be in the place of both, and of one slot wait for itself."""
        return len({bundle.first_reader for bundle in self.bundles}) == len(self.bundles)

    def filling_ctas(self, num_ctas: int) -> int:
        """How many CTAs of a cluster fill the ring together, that of each of them."""
        loads = self.loads if self.is_filled_by_tma else []
        return max((sharing_ctas(one.load, one.buffer, num_ctas) for one in loads), default=1)


def loop_around(op: Operation) -> scf.ForOp | None:
    """The innermost loop that an op is in."""
    return next((around for around in ops_around(op) if isinstance(around, scf.ForOp)), None)


def plan_rings(func: FuncOp, machine: GPU) -> list[RingPlan]:
    """The rings that loops of dots fill."""
    fed = fed_to_dots(func)
    operands = [op for op in nested_ops(func, Load) if is_tile(op.result.type) and op.result in fed]
    if not operands:
        return []
    info, writers, plans = AxisInfoAnalysis(func, deferred=True), Writers(func), {}
    for block, kind in product(_blocks(func), (LoadOp, DescriptorLoadOp)):
        loads = [BufferedLoad.of(op, info) for op in operands if op.parent is block and isinstance(op, kind)]
        free = [one for one in loads if obstacle_to_copies(one, info, machine) is None]
        for bundle in _bundles([one for one in free if writers.are_apart(one.load)]):
            key = (kind, *(one.buffer for one in bundle.loads))
            plans.setdefault(key, RingPlan()).bundles.append(bundle)
    found = [plan for shared in plans.values() for plan in _without_kept(shared)]
    return [plan for plan in found if plan.is_read_in_turn and any(map(_multiplies_in_loop, plan.bundles))]


def _without_kept(plan: RingPlan) -> list[RingPlan]:
    """With rings of their own for bundles that are kept while others are read, as often as a loop goes around: a ring
    comes back to their slots.
    """
    kept = [bundle for bundle in plan.bundles if bundle.is_kept_for(plan.bundles)]
    others = [bundle for bundle in plan.bundles if bundle not in kept]
    return [RingPlan(bundles) for bundles in (others, *([bundle] for bundle in kept)) if bundles]


def loads_besides(plans: Sequence[RingPlan]) -> list[Load]:
    """The loads of dots that are beside those of the rings, and go through none."""
    found = {one.load for plan in plans for one in plan.loads}
    blocks = {bundle.block for plan in plans for bundle in plan.bundles}
    loads = [op for block in blocks for op in block.ops if isinstance(op, Load) and is_tile(op.result.type)]
    fed = {value for block in blocks for value in fed_to_dots(block.parent_op())}
    return [load for load in loads if load not in found and load.result in fed]


def _blocks(func: FuncOp) -> list[Block]:
    return [block for op in nested_ops(func) for region in op.regions for block in region.blocks]


def _bundles(loads: Sequence[BufferedLoad]) -> list[Bundle]:
    """A load joins those with which it has a reader, unless one of these readers comes before it."""
    bundles: list[Bundle] = []
    for one in loads:
        readers = readers_of(one)
        if any(reader.parent is not one.load.parent for reader in readers):
            continue
        mates = [bundle for bundle in bundles if bundle.readers & readers and _is_before(one.load, bundle.first_reader)]
        if mates:
            mates[0].loads.append(one)
            mates[0].readers |= readers
        else:
            bundles.append(Bundle([one], readers))
    return bundles


def readers_of(one: BufferedLoad) -> set[Operation]:
    """The ops that will read the buffer: those that take the tile, or an allocation of its type, or a view of that."""
    readers, pending = set(), [one.load.result]
    while pending:
        for use in pending.pop().uses:
            user = use.operation
            is_buffer = isinstance(user, LocalAllocOp) and user.result.type == one.buffer
            if is_buffer or is_view(user):
                pending += user.results
            else:
                readers.add(user)
    return readers


def _is_before(op: Operation, other: Operation) -> bool:
    return op is not other and next(inner for inner in op.parent.ops if inner in (op, other)) is op


def _multiplies_in_loop(bundle: Bundle) -> bool:
    return bundle.loop is not None and any(isinstance(op, WarpGroupDotOp) for op in bundle.block.ops)
