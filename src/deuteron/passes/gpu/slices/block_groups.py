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
        self._list: list[Operation] = []  # of the block now, and where in it each is
        self._places: dict[Operation, int] = {}
        self._ops: dict[int, tuple[Operation, list[SSAValue]]] = {}  # those of the last time, with what they took
        self._begins: dict[int, tuple[list[int], int]] = {}
        self._grown: dict[tuple[int, int], tuple[Group, _Seen]] = {}
        self._last: Group | None = None

    def best(self) -> Group | None:
        """Of the groups that which saves most; None: there is none."""
        self._forget(self._changed())
        best: Group | None = None
        sliced: dict[int, int] = {}
        for place, axes, num_slices in self._beginnings():
            if sliced.get(id(self._list[place]), 0) >= num_slices:
                continue  # what begins with it is part of a group that is known
            for axis in axes:
                group = self._group(place, axis)
                if not group.ops or group.slices == 1:
                    continue
                for one in group.ops:
                    sliced[id(one)] = max(group.slices, sliced.get(id(one), 0))
                best = group if best is None or group.saved > best.saved else best
        self._last = best
        return best

    def _beginnings(self) -> list[tuple[int, list[int], int]]:
        """Of the ops with which a group may begin: the place, the dimensions along which it may, and how many slices
        there would be of the op alone.
        """
        for op in self._list:
            if id(op) not in self._begins:
                self._begins[id(op)] = axes_to_begin(op, self._known), slices_of_one(op)
        begins = ((place, *self._begins[id(op)]) for place, op in enumerate(self._list))
        return [begin for begin in begins if begin[1]]

    def _group(self, place: int, axis: int) -> Group:
        key = id(self._list[place]), axis
        if key not in self._grown:
            group = Group(known=self._known, most_held=self._most_held)
            self._grown[key] = _grown(self._list, self._places, place, axis, group)
        return self._grown[key][0]

    # -- what has changed since the last time ---

    def _forget(self, changed: _Seen) -> None:
        for key in changed:
            self._begins.pop(key, None)
        self._grown = {key: grown for key, grown in self._grown.items() if changed.isdisjoint(grown[1])}

    def _changed(self) -> _Seen:
        """The ops that are new or gone, take something new, or give something to others than before."""
        self._list = list(self._block.ops)
        self._places = {op: place for place, op in enumerate(self._list)}
        new = [op for op in self._list if id(op) not in self._ops]
        gone = self._ops.keys() - map(id, self._list)
        taken = [*map(_taken, new), *(self._ops.pop(key)[1] for key in gone)]
        givers = {id(value.owner) for values in taken for value in values}
        last = map(id, self._last.ops) if self._last else ()
        changed = {*map(id, new), *gone, *givers, *last, *self._users(new)}
        self._ops.update((id(op), (op, _taken(op))) for op in self._list if id(op) in changed)
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
        if not group.grow(op):
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
    strangers = {op for op in group.ops if not _is_needed(op, group, inside)}
    if not strangers:
        return group
    smaller = Group(known=group.known, most_held=group.most_held)
    for op in group.ops:
        if not (op in strangers and smaller.lets_pass(op)) and not smaller.add(op, group.axis_of(op)):
            return group  # of fewer ops there would be more slices, which this one does not have
    return smaller if smaller.ops else group


def _is_needed(op: Operation, group: Group, inside: set[Operation]) -> bool:
    return group.is_used_by(op) or any(use.operation in inside for use in _uses(op))


def _uses(op: Operation) -> Iterator[Use]:
    return (use for result in op.results for use in result.uses)
