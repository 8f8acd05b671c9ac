"""The position in each ring, carried through loops and branches to the ops that use a slot, from loop to loop.

"scf.for" ... ({                              "scf.for" ... (0, 0) ({
^bb0(%k: i32):                                ^bb0(%k: i32, %index: i32, %phase: i32):
  a reader of a bundle                 ->       visit(reader, (%index, %phase))
                                                %i1, %p1 = "ttg.ring_next"(%index, %phase)
  "scf.yield"()                                 "scf.yield"(%i1, %p1)
})                                            })
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from deuteron.ir.builder import Builder
from deuteron.ir.types import i32
from deuteron.passes.carried_values import carry, new_argument
from deuteron.passes.gpu.rings.ring import Position, Ring
from deuteron.passes.rewrite import replace


class Positions:
    """Calls `visit(op, ring, position)` at the ops that use a slot of each of their rings, each time the next one."""

    def __init__(self, rings: dict[Operation, Sequence[Ring]], visit: Callable[[Operation, Ring, Position], None]):
        self._rings, self._visit = rings, visit
        self._inside: dict[Operation, list[Ring]] = {}
        for op, used in rings.items():
            for ring in used:
                self._note(op.parent_op(), ring)

    def begin(self, block: Block, first: Callable[[Ring, Builder], Position]) -> None:
        b = Builder.before(block.first_op)
        rings = dict.fromkeys(ring for used in self._rings.values() for ring in used)
        self._block(block, {ring: first(ring, b) for ring in rings})

    def _note(self, op: Operation | None, ring: Ring) -> None:
        while isinstance(op, scf.ForOp | scf.IfOp):
            inside = self._inside.setdefault(op, [])
            if ring not in inside:
                inside.append(ring)
            op = op.parent_op()

    def _block(self, block: Block, positions: dict[Ring, Position]) -> None:
        for op in list(block.ops):
            for ring in self._rings.get(op, ()):
                position = positions[ring]
                positions[ring] = ring.following(Builder.before(op), position)
                self._visit(op, ring, position)
            if op in self._inside:
                follow = self._loop if isinstance(op, scf.ForOp) else self._branches
                values = follow(op, self._inside[op], positions)
                positions.update(zip(self._inside[op], zip(values[::2], values[1::2], strict=True), strict=True))

    def _loop(self, loop: scf.ForOp, inside: list[Ring], positions: dict[Ring, Position]) -> Sequence[SSAValue]:
        inner = {ring: (new_argument(loop, i32, "index"), new_argument(loop, i32, "phase")) for ring in inside}
        self._block(loop.body.block, inner)
        new = carry(loop, _flat(inside, positions), _flat(inside, inner))
        return new.results[-2 * len(inside) :]

    def _branches(self, branch: scf.IfOp, inside: list[Ring], positions: dict[Ring, Position]) -> Sequence[SSAValue]:
        for region in branch.regions:
            if not region.blocks:
                region.add_block(Block())
                Builder.at_end(region.block, branch.location).insert(scf.YieldOp())
            inner = dict(positions)
            self._block(region.block, inner)
            region.block.last_op.operands = [*region.block.last_op.operands, *_flat(inside, inner)]
        regions = [branch.detach_region(region) for region in list(branch.regions)]
        types = [*branch.result_types, *[i32] * (2 * len(inside))]
        new = Builder.before(branch).insert(scf.IfOp(branch.cond, types, *regions, dict(branch.attributes)))
        replace(branch, new.results[: len(branch.results)])
        return new.results[-2 * len(inside) :]


def _flat(rings: Sequence[Ring], positions: dict[Ring, Position]) -> list[SSAValue]:
    return [value for ring in rings for value in positions[ring]]
