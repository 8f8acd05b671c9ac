"""Makes structured control flow of branches between blocks, which Triton has for a `return` within a function.

    cf.cond_br %c, ^bb1, ^bb2            scf.if %c {
    ^bb1: tt.store ...                     tt.store ...
      tt.return                     ->   } else {
    ^bb2: ...                              ...
      tt.return                          }
                                         tt.return

The blocks are those of a function, or of the region of a `tt.map_elementwise`, which another terminator ends.
An `if` ends where all paths from its branch meet, at the latest where the region is left. A block that some of them
reach, not all, is copied into each. Branches that go back make no loops here: Triton has `scf.for` and `scf.while`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects import cf, scf
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.traits import IsTerminator
from xdsl.utils.exceptions import VerifyException

MAX_COPIES = 8  # how often a block may be copied


def structure(root: Operation) -> None:
    """Make one block of the blocks of each region in an op. Raises VerifyException where they are a loop."""
    regions = [region for op in root.walk() for region in op.regions if len(region.blocks) > 1]
    for region in reversed(regions):  # those inside of others first
        _structure_region(region)


def _structure_region(region: Region) -> None:
    entry = region.blocks[0]
    order = _topological(entry)
    body = Block(arg_types=[arg.type for arg in entry.args])
    walk = _Structuring(_meetings(order), _terminator(order))
    for old, new in zip(entry.args, body.args, strict=True):
        walk.values[old] = new
        new.name_hint, new.location = old.name_hint, old.location
    returned = walk.copy(entry, body, None)
    body.add_op(walk.terminator.create(operands=returned))
    body.last_op.location = region.parent.location
    region.move_blocks(Region())
    region.add_block(body)


def _terminator(blocks: Sequence[Block]) -> type[Operation]:
    """The op that leaves the region."""
    left = {type(block.last_op) for block in blocks if block.last_op is not None and not _successors(block)}
    if len(left) == 1 and (terminator := next(iter(left))).has_trait(IsTerminator):
        return terminator
    got = ", ".join(sorted(op.name for op in left)) or "nothing"
    raise VerifyException(f"blocks end with one kind of terminator, with cf.br or cf.cond_br, got {got}")


def _topological(entry: Block) -> list[Block]:
    """The blocks that are reached, each before its successors."""
    finished: list[Block] = []
    on_path: set[Block] = set()

    def visit(block: Block) -> None:
        if block in on_path:
            raise VerifyException("branches make a loop: only scf.for and scf.while are loops here")
        if block in finished:
            return
        on_path.add(block)
        for successor in _successors(block):
            visit(successor)
        on_path.discard(block)
        finished.append(block)

    visit(entry)
    return finished[::-1]


def _successors(block: Block) -> Sequence[Block]:
    return block.last_op.successors if block.last_op is not None else ()


def _meetings(order: Sequence[Block]) -> dict[Block, Block | None]:
    """Where all paths from a block meet again, the nearest such block; None: only where the region is left."""
    passed: dict[Block, list[Block]] = {}  # the blocks that every path from a block passes, the nearest first
    for block in reversed(order):
        ways = [passed[successor] for successor in _successors(block)]
        common = [other for other in ways[0] if all(other in way for way in ways)] if ways else []
        passed[block] = [block, *common]
    return {block: next(iter(blocks[1:]), None) for block, blocks in passed.items()}


@dataclass
class _Structuring:
    meetings: dict[Block, Block | None]
    terminator: type[Operation]
    values: dict[SSAValue, SSAValue] = field(default_factory=dict)
    copies: dict[Block, int] = field(default_factory=dict)

    def copy(self, block: Block, into: Block, end: Block | None) -> list[SSAValue]:
        """Copy what is executed from a block up to another one, or to the terminator; what is passed on there."""
        while True:
            self._copy_ops(block, into)
            last = block.last_op
            if isinstance(last, self.terminator):
                return self._of(last.operands)
            if isinstance(last, cf.BranchOp):
                block, passed = last.successor, self._of(last.arguments)
            elif isinstance(last, cf.ConditionalBranchOp):
                block, passed = self.meetings[block], self._branch(last, into, self.meetings[block])
            else:
                ends = f"{self.terminator.name}, cf.br or cf.cond_br"
                raise VerifyException(f"a block ends with {ends}, got {last.name if last is not None else 'nothing'}")
            if block is end:
                return passed
            self._enter(block, passed)

    def _enter(self, block: Block, passed: Sequence[SSAValue]) -> None:
        """A block is copied with these values for its arguments."""
        wanted, got = ([value.type for value in values] for values in (block.args, passed))
        if wanted != got:
            raise VerifyException(f"a branch passes ({_listed(got)}) to a block that takes ({_listed(wanted)})")
        self.values |= zip(block.args, passed, strict=True)

    def _copy_ops(self, block: Block, into: Block) -> None:
        self.copies[block] = self.copies.get(block, 0) + 1
        if self.copies[block] > MAX_COPIES:
            raise VerifyException(f"branches meet in a block that would be copied more than {MAX_COPIES} times")
        for op in block.ops:
            if op is not block.last_op:
                into.add_op(_clone(op, self.values))

    def _of(self, values: Sequence[SSAValue]) -> list[SSAValue]:
        return [self.values.get(value, value) for value in values]

    def _branch(self, branch: cf.ConditionalBranchOp, into: Block, end: Block | None) -> list[SSAValue]:
        """Add the `if` of a branch; its results."""
        regions = []
        for successor, arguments in (
            (branch.then_block, branch.then_arguments),
            (branch.else_block, branch.else_arguments),
        ):
            side, passed = Block(), self._of(arguments)
            if successor is not end:
                self._enter(successor, passed)
                passed = self.copy(successor, side, end)
            side.add_op(scf.YieldOp(*passed))
            side.last_op.location = branch.location
            regions.append(Region(side))
        types = [value.type for value in regions[0].block.last_op.operands]
        op = scf.IfOp(self._of([branch.cond])[0], types, *regions)
        op.location = branch.location
        into.add_op(op)
        return list(op.results)


def _listed(types: Sequence[Attribute]) -> str:
    return ", ".join(map(str, types))


def _clone(op: Operation, values: dict[SSAValue, SSAValue]) -> Operation:
    """A copy with the names and places of what it copies."""
    clone = op.clone(values)
    for old, new in zip(op.walk(), clone.walk(), strict=True):
        new.location = old.location
        for region, copy in zip(old.regions, new.regions, strict=True):
            for block, other in zip(region.blocks, copy.blocks, strict=True):
                for argument, copied in zip(block.args, other.args, strict=True):
                    copied.location = argument.location
    return clone
