"""About how many registers of a thread tiles fill at once.

    %a = tt.load of 64 registers          64
    %b = tt.trans %a                      64      the same registers
    scf.for ... {                                 what a loop takes from before it lives until its end
      %c = tt.load of 32 registers        96
    }

Addresses, and what is only added to them, are left out, for threads compute them where they need them, and so is what
is known by its place alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.tt.memory import AddPtrOp
from deuteron.ir.ttg.private import PrivateLoadOp
from deuteron.ir.types import bit_width_of, i32, is_pointer, is_tile
from deuteron.passes.gpu.slices.costs import bits_in_thread
from deuteron.passes.gpu.slices.groups import SHAPES, is_made_anew


def live_registers(func: FuncOp) -> int:
    """The most, after any op of a function."""
    return max(live_registers_at(func).values())


def live_registers_at(func: FuncOp) -> dict[Operation, int]:
    """After each op of a function."""
    ops = nested_ops(func)
    places = {op: place for place, op in enumerate(ops)}
    changes = [0] * (len(ops) + 1)
    known: dict[SSAValue, bool] = {}
    sizes: dict[int, int] = {}  # by the types' ids: values have few types, and keep them
    for begin, value in _values_of(ops):
        if id(value.type) not in sizes:
            sizes[id(value.type)] = _registers_of(value)
        size = sizes[id(value.type)]
        if size and not _is_offset(value) and not is_made_anew(value, known):
            changes[places[begin]] += size
            changes[max((places[end] for end in _ends(value)), default=places[begin])] -= size
    return dict(zip(ops, accumulate(changes), strict=False))


def live_registers_in(block: Block) -> dict[Operation, int]:
    """After each op of a block, of what one of its ops computes for another one: what it takes from outside or has in
    memory, or only gives on, may be in memory meanwhile.
    """
    places = {op: place for place, op in enumerate(block.ops)}
    changes = [0] * (len(places) + 1)
    known: dict[SSAValue, bool] = {}
    for op, place in places.items():
        for value in () if isinstance(op, PrivateLoadOp) else op.results:
            size = _registers_of(value)
            if size and not _is_offset(value) and not is_made_anew(value, known):
                users = map(block.find_ancestor_op_in_block, _users_of(value))
                changes[place] += size
                changes[max((places[user] for user in users), default=place)] -= size
    return dict(zip(places, accumulate(changes), strict=False))


def _values_of(ops: Sequence[Operation]) -> Iterable[tuple[Operation, SSAValue]]:
    """Each with the op from which on it lives."""
    for op in ops:
        yield from ((op, argument) for region in op.regions for block in region.blocks for argument in block.args)
        yield from ((_last_inside(op), result) for result in op.results)


def _registers_of(value: SSAValue) -> int:
    """Of a thread; of scalars and addresses none are counted."""
    if not is_tile(value.type) or is_pointer(value.type):
        return 0
    return bits_in_thread(value) // bit_width_of(i32)


def _is_offset(value: SSAValue) -> bool:
    uses = list(value.uses)
    return bool(uses) and all(isinstance(use.operation, AddPtrOp) for use in uses)


def _ends(value: SSAValue) -> Iterable[Operation]:
    """The ops until which a value lives, whatever shape it is given on the way."""
    block = value.owner if isinstance(value.owner, Block) else value.owner.parent
    for use in value.uses:
        if isinstance(use.operation, SHAPES):
            yield from _ends(use.operation.results[0])
        is_inside = use.operation.parent is not block
        yield _last_inside(block.find_ancestor_op_in_block(use.operation)) if is_inside else use.operation


def _users_of(value: SSAValue) -> Iterator[Operation]:
    """What computes with it, whatever shape it is given on the way: not what only gives it on."""
    for use in value.uses:
        if isinstance(use.operation, SHAPES):
            yield from _users_of(use.operation.results[0])
        elif not isinstance(use.operation, scf.YieldOp):
            yield use.operation


def _last_inside(op: Operation) -> Operation:
    while op.regions and op.regions[-1].blocks and op.regions[-1].blocks[-1].last_op:
        op = op.regions[-1].blocks[-1].last_op
    return op
