"""The groups of a block that ops begin, of which one after the other becomes a loop: that which saves most.

    %x = tt.load %p     begins a group of %x, %y      the best: a loop over slices
    %y = math.exp %x
    %z = tt.load %q     begins a group of %z          not grown again, since it has seen nothing of the first

A block of 400 ops begins a hundred groups and becomes a hundred loops, and nine of ten groups stay as they are when
one of the others becomes a loop. So each is kept with the ops that it has looked at, until one of these is gone, takes
something else, or gives what it gives to others, or there is a new one among them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import inf

from xdsl.ir import Block, Operation, SSAValue, Use

from deuteron.analysis.aliasing.points_to import is_address
from deuteron.ir.nested import nested_ops
from deuteron.passes.gpu.slices.groups import SHAPES, Group, axes_to_begin, slices_of_one

_Seen = set[int]  # of ops, by `id`: their own hash is slow


class BlockGroups:
    """`most_held`: see Group."""

    def __init__(self, block: Block, most_held: float = inf):
        self._block, self._most_held = block, most_held
        self._known: dict[SSAValue, bool] = {}
        self._ops: dict[int, tuple[Operation, list[SSAValue]]] = {}  # those of the last time, with what they took
        self._begins: dict[int, tuple[list[int], int]] = {}
        self._grown: dict[tuple[int, int], tuple[Group, _Seen]] = {}
        self._last: Group | None = None

    def best(self) -> Group | None:
        """Of the groups that which saves most; None: there is none."""
        self._forget(self._changed())
        best: Group | None = None
        sliced: dict[Operation, int] = {}
        ops = list(self._block.ops)
        places = {op: place for place, op in enumerate(ops)}
        for place, op in enumerate(ops):
            axes, num_slices = self._begun_by(op)
            if not axes or sliced.get(op, 0) >= num_slices:
                continue  # what begins with it is part of a group that is known
            for axis in axes:
                group = self._group(ops, places, place, axis)
                count = group.count()
                if not group.ops or count == 1:
                    continue
                sliced.update((one, max(count, sliced.get(one, 0))) for one in group.ops)
                best = group if best is None or group.saved > best.saved else best
        self._last = best
        return best

    def _begun_by(self, op: Operation) -> tuple[list[int], int]:
        """The dimensions along which a group may begin with an op, and how many slices there would be of it alone."""
        if id(op) not in self._begins:
            self._begins[id(op)] = axes_to_begin(op, self._known), slices_of_one(op)
        return self._begins[id(op)]

    def _group(self, ops: Sequence[Operation], places: dict[Operation, int], place: int, axis: int) -> Group:
        key = id(ops[place]), axis
        if key not in self._grown:
            group = Group(known=self._known, most_held=self._most_held)
            self._grown[key] = _grown(ops, places, place, axis, group)
        return self._grown[key][0]

    # -- what has changed since the last time ---

    def _forget(self, changed: _Seen) -> None:
        self._begins = {key: begins for key, begins in self._begins.items() if key not in changed}
        self._grown = {key: grown for key, grown in self._grown.items() if changed.isdisjoint(grown[1])}

    def _changed(self) -> _Seen:
        """The ops that are new or gone, take something new, or give something to others than before."""
        now = {id(op): op for op in self._block.ops}
        new = [op for key, op in now.items() if key not in self._ops]
        gone = [key for key in self._ops if key not in now]
        taken = [*map(_taken, new), *(self._ops[key][1] for key in gone)]
        givers = {id(value.owner) for values in taken for value in values}
        last = map(id, self._last.ops) if self._last else ()
        changed = {*map(id, new), *gone, *givers, *last, *self._users(new)}
        self._ops = {key: (op, _taken(op)) if key in changed else self._ops[key] for key, op in now.items()}
        return changed

    def _users(self, ops: Iterable[Operation]) -> _Seen:
        """Of what they give; and of shapes of it, or of addresses that depend on it, by which others are judged."""
        found: _Seen = set()
        pending = list(ops)
        while pending:
            for use in _uses(pending.pop()):
                user = self._block.find_ancestor_op_in_block(use.operation)
                if user is not None and id(user) not in found:
                    found.add(id(user))
                    pending += [user] if _is_seen_through(user) else []
        return found


def _taken(op: Operation) -> list[SSAValue]:
    return [operand for inner in nested_ops(op) for operand in inner.operands]


def _is_seen_through(op: Operation) -> bool:
    return isinstance(op, SHAPES) or any(is_address(result.type) for result in op.results)


def _grown(
    ops: Sequence[Operation], places: dict[Operation, int], place: int, axis: int, group: Group
) -> tuple[Group, _Seen]:
    """A group that begins at a place, and the ops that it depends on."""
    seen = {id(ops[place])}
    if not group.add(ops[place], axis):
        return group, seen
    for op in ops[place + 1 :]:
        seen.add(id(op))
        if not group.join(op) and not group.lets_pass(op):
            break
    group = _without_strangers(group)
    while (place := max(_before(group, places, place), default=-1)) >= 0:
        group.take_in_before(ops[place])
    return group, seen.union(id(value.owner) for value in group.needed)


def _before(group: Group, places: dict[Operation, int], place: int) -> Iterator[int]:
    """Where that is made which a group takes from before a place."""
    made = (places.get(value.owner, place) for value in group.needed)
    return (other for other in made if other < place)


def _without_strangers(group: Group) -> Group:
    """Without single ops that neither take nor give the others anything, where they may stay before all of these: they
    may be in a group of their own.
    """
    inside = set(group.ops)
    smaller = Group(known=group.known, most_held=group.most_held)
    for op in group.ops:
        is_needed = group.is_used_by(op) or any(use.operation in inside for use in _uses(op))
        if (is_needed or not smaller.lets_pass(op)) and not smaller.add(op, group.axis_of(op)):
            return group  # of fewer ops there would be more slices, which this one does not have
    return smaller if smaller.ops else group


def _uses(op: Operation) -> Iterator[Use]:
    return (use for result in op.results for use in result.uses)
