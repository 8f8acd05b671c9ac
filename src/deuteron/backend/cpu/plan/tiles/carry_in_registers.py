"""Runs loops whose tiles are independent elements at each index of a nest: what they carry is in registers there.

    Nest(Keep(0, home))
    For(%k, Nest(Keep(acc * x + load(c + k), home)))      ->      Nest(LoopRoot(%k), ReduceRoot(acc))
    Nest(ReduceRoot(acc))

    for each iteration: for all elements: acc = ...               for four vectors: for each iteration: acc = ...

An element of what the next iteration has may depend on elements at the same index of what this one has, and on what is
outside of the loop. Loops that load tiles are left: they would be loaded in another order, in pieces of 256 bytes, and
`unroll_accumulations` has what is carried in memory read and written once in four iterations. Scalars may be loaded,
but in no nest that stores; functions that do more to memory than load and store are left as they are. What an iteration
computes of fewer dimensions (`x[None, :]`) is computed for each vector then, which has to be cheap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from deuteron.backend.cpu.plan.indices import identity_index
from deuteron.backend.cpu.plan.items import For, Item, Nest, Scalar, regions_of
from deuteron.backend.cpu.plan.region import Region
from deuteron.backend.cpu.plan.roots import Keep, LoopRoot, Root, StoreRoot
from deuteron.backend.cpu.plan.schedule import Plan
from deuteron.backend.cpu.plan.tiles import costs
from deuteron.backend.cpu.plan.tiles.private import drop_empty_nests, nests_of, readers_of
from deuteron.ir.tt.memory import LoadOp
from deuteron.ir.types import shape_of


def carry_in_registers(plan: Plan) -> None:
    """Put the loops into nests, inner ones first."""
    if plan.storage.is_plain and _carry_in(plan, plan.body):
        plan.reader.forget()
        readers = readers_of(plan)
        for nest in nests_of(plan.body):
            _keep_results(plan, nest, readers)


def _carry_in(plan: Plan, region: Region) -> bool:
    found = False
    for item in list(region.items):
        found |= any([_carry_in(plan, inner) for inner in regions_of(item)])
        loop = _loop_by_element(plan, item) if isinstance(item, For) else None
        if loop is not None:
            _Placing(plan, region, item, loop).place()
            found = True
    return found


def _loop_by_element(plan: Plan, item: For) -> LoopRoot | None:
    """The loop as a root of a nest, if each of the elements that it carries depends on no other one; what its body
    alone reads is not kept any more then.
    """
    op, numbers = item.op, tuple(sorted(item.homes))
    initial, terminator = [op.iter_args[number] for number in numbers], op.body.block.last_op
    loads = _loads_of_scalars(item.body)
    is_used = any(result.uses for number, result in enumerate(op.results) if number not in item.homes)
    if not numbers or loads is None or is_used or len({shape_of(value.type) for value in initial}) > 1:
        return None
    root = LoopRoot(op, (*initial, *(terminator.operands[number] for number in numbers)), numbers, loads)
    kept = {kept.value for nest in nests_of(item.body) for kept in nest.roots} - {None}
    if any(plan.storage.cost_of(value) > costs.WORTH_KEEPING for value in kept if value.type != initial[0].type):
        return None
    plan.storage.kept -= kept  # what other roots read stays as it is: the body alone knows of these
    if not _is_by_element(plan, root):
        plan.storage.kept |= kept
        return None
    for value in (*kept, *op.body.block.args):
        plan.places.pop(value, None)
    return root


def _loads_of_scalars(body: Region) -> tuple[Operation, ...] | None:
    """The loads of scalars of a loop's body; None if it does anything else than those and keeping tiles."""
    for item in body.items:
        is_load = isinstance(item, Scalar) and isinstance(item.op, LoadOp)
        if not is_load and not (isinstance(item, Nest) and all(type(root) is Keep for root in item.roots)):
            return None
    return tuple(item.op for item in body.items if isinstance(item, Scalar))


def _is_by_element(plan: Plan, root: LoopRoot) -> bool:
    """Whether all that is read of what the loop makes is there at the same index. A loop that loads tiles is left: it
    would load them in another order.
    """
    reads = plan.reader.reads(root)
    if any(root.op.is_ancestor(load) or load.is_volatile.value.data for load, _ in reads.loads):
        return False
    if any(load.is_volatile.value.data for load in root.loads):
        return False
    inner = {value for value in reads.tiles if root.op.is_ancestor(value.owner)}
    carried = {root.op.body.block.args[number + 1] for number in root.numbers}
    identity = {identity_index(root.shape)}
    return inner <= carried and all(reads.tiles[value] == identity for value in inner)


@dataclass
class _Placing:
    """Puts a loop into the nest right after it, or into one of its own, together with the nest right before it."""

    plan: Plan
    region: Region
    item: For
    root: LoopRoot

    def place(self) -> None:
        for nest in [item for item in self.region.items if isinstance(item, Nest)]:
            nest.roots = [root for root in nest.roots if not (isinstance(root, Keep) and root.op is self.item.op)]
        drop_empty_nests(self.region)
        index = self.region.items.index(self.item)
        after = self.region.items[index + 1 : index + 2]
        roots, end = [self.root], index + 1
        if after and self._can_join(after[0], roots, _roots_of(after[0])):
            roots, end = [*roots, *after[0].roots], index + 2
        before = self.region.items[max(index - 1, 0) : index]
        if before and _loops(_roots_of(before[0])) and self._can_join(before[0], before[0].roots, roots):
            roots, index = [*before[0].roots, *roots], index - 1
        self.region.items[index:end] = [Nest(self.root.shape, roots)]

    def _can_join(self, nest: Item, first: Sequence[Root], second: Sequence[Root]) -> bool:
        """Whether a nest is one with the loop: what `second` reads of `first` is there at the same index, nothing is
        overwritten that is read at another one, and nothing loaded after a store.
        """
        if not isinstance(nest, Nest) or nest.shape != self.root.shape or nest.is_exclusive or nest.is_scalar:
            return False
        reads = [self.plan.reader.reads(root) for root in (*first, *second)]
        loads = any(one.loads for one in reads) or any(root.loads for root in _loops(first, second))
        if loads and any(isinstance(root, StoreRoot) for root in (*first, *second)):
            return False
        places, made = self.plan.places, {value for root in first for value in root.produced()}
        written = {root.place.slot for root in (*first, *second) if isinstance(root, Keep)}
        written |= {places[value].slot for value in made if value in places}
        identity = {identity_index(nest.shape)}
        tiles = [(value, at) for one in reads for value, at in one.tiles.items() if at != identity]
        return not any(value in made or (value in places and places[value].slot in written) for value, at in tiles)


def _roots_of(item: Item) -> Sequence[Root]:
    return item.roots if isinstance(item, Nest) else ()


def _loops(*roots: Sequence[Root]) -> list[LoopRoot]:
    return [root for some in roots for root in some if isinstance(root, LoopRoot)]


def _keep_results(plan: Plan, nest: Nest, readers: dict[SSAValue, set]) -> None:
    """What loops make has a place only if anything else reads it than their nest, at the same index."""
    in_step = {(nest, identity_index(nest.shape))}
    for root in nest.loops:
        for value in root.produced():
            if value in plan.storage.required or not readers.get(value, set()) <= in_step:
                nest.roots.append(Keep(root.op, (value,), plan.places[value], value))
            else:
                del plan.places[value]
