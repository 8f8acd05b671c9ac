"""What an op does besides giving its results: which memory it reads and writes, where, and what it keeps in order.

    tt.load %p                      reads global memory at %p
    tt.load %p, volatile            the same, and keeps accesses of memory in order
    tt.atomic_rmw %p, relaxed       reads and writes global memory at %p
    ttg.local_store %x, %m          writes shared memory at %m
    ttg.barrier                     keeps what the program itself writes in order
    scf.for                         what its body does
    arith.divsi                     nothing
    any.thing                       everything: its class declares nothing

An op's class declares it by a method `effects`, by xDSL's trait `Pure` (nothing), or by `RecursiveMemoryEffect` (what
its regions do, besides what `effects` says). Whoever wants to know what an op touches asks here; what is not declared
counts as the worst, so that what is forgotten is slow and never wrong.

    is_pure(op)             may be removed if unused, merged with an equal one, and moved within its block
    is_speculatable(op)     may, besides, run where it did not run before
    is_removable(op)        may be removed if unused: it only reads
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from functools import cache
from itertools import chain, product

from xdsl.dialects import arith, scf
from xdsl.ir import Operation, SSAValue
from xdsl.traits import NoMemoryEffect, OpTrait, Pure, RecursiveMemoryEffect


class Kind(Enum):
    """What is done to a resource. ORDER: no access of it moves over the op. ORDER_OWN: none of what the program itself
    writes does; what only others write, or nobody, may.
    """

    READ = auto()
    WRITE = auto()
    ORDER = auto()
    ORDER_OWN = auto()


class Resource(Enum):
    """What effects are on. OTHER is what is no memory: groups of copies in flight, arrivals at barriers, turns, what is
    printed, whether the program goes on.
    """

    GLOBAL = auto()
    SHARED = auto()
    OTHER = auto()


READ, WRITE, ORDER, ORDER_OWN = Kind
GLOBAL, SHARED, OTHER = Resource
MEMORY = (GLOBAL, SHARED)


@dataclass(frozen=True)
class Effect:
    """One effect of an op: `value` is the pointer or descriptor that it goes through; None: it may be anywhere."""

    kind: Kind
    resource: Resource
    value: SSAValue | None = None


EVERYTHING = tuple(Effect(kind, resource) for kind, resource in product(Kind, Resource))


def reads(resource: Resource, value: SSAValue) -> Effect:
    return Effect(READ, resource, value)


def writes(resource: Resource, value: SSAValue | None = None) -> Effect:
    return Effect(WRITE, resource, value)


def orders(kind: Kind = ORDER, resources: Iterable[Resource] = MEMORY) -> list[Effect]:
    """That accesses of these kinds of memory do not move over the op."""
    return [Effect(kind, resource) for resource in resources]


def effects_of(op: Operation) -> tuple[Effect, ...]:
    """What an op does; of a loop or branch, what is done inside."""
    return tuple(_effects(op))


def _effects(op: Operation) -> Iterable[Effect]:
    own = own_effects(op)
    return chain(own, (effect for _, effect in effects_inside(op))) if _is_recursive(op) else own


def own_effects(op: Operation) -> tuple[Effect, ...]:
    """What an op does itself; of a loop or branch, nothing."""
    declared = _declaration(type(op))
    return EVERYTHING if declared is None else tuple(declared.own(op))


def effects_inside(op: Operation) -> Iterator[tuple[Operation, Effect]]:
    """The effects of all ops in an op's regions, each with the op that has it."""
    pending = [_all_inside(op)]  # not by recursion, which would hand an effect out through all ops that are around it
    while pending:
        inner = next(pending[-1], None)
        if inner is None:
            pending.pop()
            continue
        declared = _declaration(type(inner))
        for effect in EVERYTHING if declared is None else declared.own(inner):
            yield inner, effect
        if declared is not None and declared.is_recursive:
            pending.append(_all_inside(inner))


def ops_that_add(op: Operation) -> Iterator[Operation]:
    """The ops in an op's regions whose effects are also its own."""
    return _all_inside(op) if _is_recursive(op) else iter(())


def _all_inside(op: Operation) -> Iterator[Operation]:
    return (inner for region in op.regions for block in region.blocks for inner in block.ops)


def first_in_order(op: Operation, resource: Resource, kinds: Iterable[Kind] = (ORDER,)) -> Operation | None:
    """The first op in an op's regions that keeps accesses of a resource in order."""
    found = (inner for inner, effect in effects_inside(op) if effect.resource is resource and effect.kind in kinds)
    return next(found, None)


def _is_recursive(op: Operation) -> bool:
    declared = _declaration(type(op))
    return declared is not None and declared.is_recursive


def is_declared(op_class: type[Operation]) -> bool:
    """Whether a class says what its ops do."""
    return _declaration(op_class) is not None


def is_pure(op: Operation) -> bool:
    return not any(True for _ in _effects(op))


def is_removable(op: Operation) -> bool:
    return all(effect.kind is READ for effect in _effects(op))


def is_speculatable(op: Operation) -> bool:
    """So is a division: by 0 it gives a number, as the language says, and traps nowhere."""
    declared = _declaration(type(op))
    if declared is None or any(declared.own(op)):
        return False
    if declared.is_recursive:
        return all(is_speculatable(inner) for region in op.regions for block in region.blocks for inner in block.ops)
    return isinstance(op, _DIVISIONS) or _has(type(op), Pure)


@dataclass(frozen=True)
class _Declaration:
    """What a class says: the effects of an op itself, and whether those of its regions are to be added."""

    own: Callable[[Operation], Iterable[Effect]]
    is_recursive: bool


_DIVISIONS = (
    arith.DivSIOp,
    arith.DivUIOp,
    arith.RemSIOp,
    arith.RemUIOp,
    arith.FloorDivSIOp,
    arith.CeilDivSIOp,
    arith.CeilDivUIOp,
)
# Ops of xDSL whose traits say too little: of some divisions nothing, of a `while` not that it may not end.
_OF_XDSL: dict[type[Operation], tuple[Effect, ...]] = {
    **dict.fromkeys(_DIVISIONS, ()),
    scf.WhileOp: (writes(OTHER),),
}


@cache
def _has(op_class: type[Operation], trait: type[OpTrait]) -> bool:
    return op_class.has_trait(trait, value_if_unregistered=False)


@cache
def _declaration(op_class: type[Operation]) -> _Declaration | None:
    is_recursive = _has(op_class, RecursiveMemoryEffect)
    if hasattr(op_class, "effects"):
        return _Declaration(op_class.effects, is_recursive)
    effects = _OF_XDSL.get(op_class, ())
    is_known = op_class in _OF_XDSL or is_recursive or _has(op_class, NoMemoryEffect)
    return _Declaration(lambda op: effects, is_recursive) if is_known else None
