"""Which arguments of the kernel ops read and write, and so which loads may come before other accesses.

a, out: arguments         written_arguments(loop)                    out
for ...:                  is_apart(load, written_arguments(loop))    True: it reads a, and the kernel relies on a, out
  load a[...]                                                        being apart (apart.py)
  store out[...]

could_be_apart(...)       the same, and nothing relies on it: whoever moves the load asks `is_apart` when it does
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.ir import Operation

from deuteron.analysis.aliasing.apart import can_be_apart, take_apart
from deuteron.analysis.aliasing.points_to import Targets, points_to
from deuteron.analysis.aliasing.same_offsets import Alike
from deuteron.ir.effects import (
    GLOBAL,
    ORDER,
    ORDER_OWN,
    READ,
    WRITE,
    Effect,
    Kind,
    effects_inside,
    effects_of,
    first_in_order,
)
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.function import function_of
from deuteron.ir.ttng.cluster import ClusterBarrierOp


def written_arguments(op: Operation) -> Targets:
    """What is written by the ops in the regions of a function or a loop."""
    return touched_arguments((effect for _, effect in effects_inside(op)), WRITE)


def written_before_barriers(loop: Operation) -> Targets:
    """What barriers in a loop order of what the function writes elsewhere: loads may not be done before the loop. Those
    of a cluster order what the loop writes as well: other CTAs do so at addresses of their own.
    """
    if first_in_order(loop, GLOBAL, (ORDER_OWN,)) is None:
        return Targets()
    is_of_cluster = bool(nested_ops(loop, ClusterBarrierOp))
    found = effects_inside(function_of(loop))
    return touched_arguments((effect for op, effect in found if is_of_cluster or not loop.is_ancestor(op)), WRITE)


def written_by(op: Operation) -> Targets:
    return touched_arguments(effects_of(op), WRITE)


def read_by(op: Operation) -> Targets:
    return touched_arguments(effects_of(op), READ)


def is_apart(load: Operation, written: Targets) -> bool:
    """Whether what is loaded is in none of these arguments; a load that has to be done in its place never is apart.

    The kernel relies on the arguments being disjoint then.
    """
    return not has_order(load) and take_apart(read_by(load), written)


def could_be_apart(load: Operation, written: Targets) -> bool:
    """Whether `is_apart` says yes."""
    return not has_order(load) and can_be_apart(read_by(load), written)


def rely_on_apart(load: Operation, written: Targets, or_equal: bool = False, equal: Alike = frozenset()) -> None:
    """Write down that a load, of which `could_be_apart` said yes, is moved."""
    assert not has_order(load)
    take_apart(read_by(load), written, or_equal, equal)


def has_order(load: Operation) -> bool:
    """Whether a load has to be done in its place."""
    return any(effect.kind is ORDER for effect in effects_of(load))


def touched_arguments(effects: Iterable[Effect], kind: Kind) -> Targets:
    """Where these effects of one kind are."""
    found = Targets()
    for effect in effects:
        if effect.kind is kind and effect.resource is GLOBAL:
            found |= points_to(effect.value)
    return found
