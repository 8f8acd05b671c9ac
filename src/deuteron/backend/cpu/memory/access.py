"""Accesses to the user's memory: loads and stores of a few lanes, of which a mask may switch some off.

    pointers                   without a mask      with a mask
    contiguous                 a vector load       the same where all lanes are on, else a masked one (contiguous.py)
    contiguous, downwards      the same, and its lanes reversed
    a few elements apart       whole vectors, and shuffles (strided.py), where all lanes are on, else as others
    at known distances         the same (`i // 2`)
    the same in all lanes      a scalar load       a scalar load where any lane is on
    others                     checked at run time whether they are contiguous, else lane by lane (by_lanes.py)
                               or, if they are close together, as two vectors and a shuffle (close_gathers.py)
    in two runs, if they are   two masked loads (contiguous.py), where that is known before their loops
    may wrap around            checked at run time where some lanes are off (wraps.py)

A lane that is off is never accessed. Elements are as they lie in memory (`elements.memory_type`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from deuteron.backend.cpu.algebra import as_vector
from deuteron.backend.cpu.context import Runs
from deuteron.backend.cpu.fragment import Affine, Fragment, Uniform, Vector, lanes_of
from deuteron.backend.cpu.memory import strided
from deuteron.backend.cpu.memory.by_lanes import gather, scatter
from deuteron.backend.cpu.memory.contiguous import load_neighbours, load_runs, store_neighbours
from deuteron.backend.cpu.memory.element_access import Access
from deuteron.backend.cpu.memory.lane_loops import scatter_lanes
from deuteron.backend.cpu.memory.masks import all_of, if_full, if_on, mask_vector, reverse, reversed_mask
from deuteron.backend.cpu.memory.wraps import may_wrap, unless_wrapped
from deuteron.backend.cpu.plan.vectors.accesses import is_close
from deuteron.backend.llvm.types import Value, const, vector_const, zero
from deuteron.backend.math.vectors import any_lane


def load_if_in_runs(access: Access, pointer: Vector, mask: Fragment | None, first: Value, runs: Runs) -> Value:
    """The same, of lanes that mostly lie in two runs, from an address on."""
    with access.b.if_(runs.holds, "runs") as branch:
        branch.yield_(load_runs(access, first, runs, mask))
        branch.otherwise()
        branch.yield_(gather(access, pointer, mask_vector(access, mask)))
    return branch.results[0]


def load_apart(
    access: Access, pointer: Fragment, mask: Fragment | None, first: Value, numbers: Sequence[int], some: bool = True
) -> Value:
    """The same, of lanes whose elements are so many after the first one's, which is at an address; `some`: also where
    some lanes are off.
    """
    takes_masks = some and access.has_free_masks and strided.takes_masks(numbers)

    def load_some() -> list[Value]:
        on = mask_vector(access, mask)
        if takes_masks:
            return [strided.load_apart(access.b, first, access.type, numbers, on)]
        return [gather(access, pointer, on)]

    return if_full(access, mask, lambda: [strided.load_apart(access.b, first, access.type, numbers)], load_some)[0]


def load(access: Access, pointer: Fragment, mask: Fragment | None) -> Value:
    """The elements; 0 in lanes that are off. A scalar where the pointer is one and so is the mask."""
    if isinstance(pointer, Uniform):
        return _load_uniform(access, pointer.value, mask)
    if may_wrap(pointer, mask):
        straight = replace(pointer, elements=None)
        return unless_wrapped(
            access,
            (pointer, mask),
            lambda masked: [load(access, straight, masked)],
            lambda: [gather(access, Vector(pointer.elements(), pointer.level), mask_vector(access, mask))],
        )[0]

    def load_contiguous(first: Value) -> list[Value]:
        return [load_neighbours(access, first, mask)]

    def load_lanes() -> list[Value]:
        return [gather(access, pointer, mask_vector(access, mask))]

    if stride := _close_stride(access, pointer):
        return load_apart(access, pointer, mask, pointer.base, range(0, access.lanes * stride, stride))
    if _goes_down(access, pointer):
        return reverse(access.b, load_neighbours(access, _last(access, pointer), reversed_mask(access.b, mask)))
    return _choose(access, pointer, load_contiguous, load_lanes)[0]


def store(
    access: Access, pointer: Fragment, value: Fragment, mask: Fragment | None, streams: Value | None = None
) -> None:
    """Store a fragment of elements. Where several lanes have one address, the last one stays. `streams`: of what may
    bypass the caches, whether it does.
    """
    if isinstance(pointer, Uniform) and lanes_of(value, *([mask] if mask else [])) == 1:
        if_on(access, mask, lambda: access.b.store(value.value, pointer.value, access.num_bytes))
        return
    if may_wrap(pointer, mask):
        _store_unless_wrapped(access, pointer, value, mask, streams)
        return
    elements = as_vector(access.ctx.emitter, value, access.lanes)

    def store_contiguous(first: Value) -> list[Value]:
        store_neighbours(access, elements, first, mask, None if access.is_far_apart else streams)
        return []

    def store_lanes() -> list[Value]:
        scatter(access, elements, pointer, mask_vector(access, mask))
        return []

    def store_strided_elements() -> list[Value]:
        strided.store_strided(access.b, elements, pointer.base, stride)
        return []

    stride = _close_stride(access, pointer)
    if isinstance(pointer, Uniform):
        store_lanes()
    elif stride and access.has_free_masks:
        if_full(access, mask, store_strided_elements, store_lanes)
    elif _goes_down(access, pointer):
        elements, mask = reverse(access.b, elements), reversed_mask(access.b, mask)
        store_contiguous(_last(access, pointer))
    else:
        _choose(access, pointer, store_contiguous, store_lanes)


def _store_unless_wrapped(
    access: Access, pointer: Affine, value: Fragment, mask: Fragment, streams: Value | None
) -> None:
    def straight(masked: Fragment | None) -> list[Value]:
        store(access, replace(pointer, elements=None), value, masked, streams)
        return []

    def elsewhere() -> list[Value]:
        elements = as_vector(access.ctx.emitter, value, access.lanes)
        scatter_lanes(access.b, elements, pointer.elements(), mask_vector(access, mask))
        return []

    unless_wrapped(access, (pointer, mask), straight, elsewhere)


def _goes_down(access: Access, pointer: Fragment) -> bool:
    """Whether each lane's element is the one before the last lane's."""
    return isinstance(pointer, Affine) and isinstance(pointer.step, int) and pointer.step == -access.num_bytes


def _close_stride(access: Access, pointer: Fragment) -> int:
    """How many elements lanes are apart where those are few; else 0."""
    if not (isinstance(pointer, Affine) and isinstance(pointer.step, int)):
        return 0
    stride, rest = divmod(pointer.step, access.num_bytes)
    return stride if not rest and is_close(stride, access.lanes) else 0


def _last(access: Access, pointer: Affine) -> Value:
    """The address of the last lane."""
    return access.b.gep("i8", pointer.base, const("i64", (access.lanes - 1) * pointer.step))


def _choose(
    access: Access, pointer: Fragment, contiguous: Callable[[Value], list[Value]], lanes: Callable[[], list[Value]]
) -> list[Value]:
    """Emit one of the ways, or both and a test at run time where it is not known."""
    if isinstance(pointer, Affine) and isinstance(pointer.step, int):
        return contiguous(pointer.base) if pointer.step == access.num_bytes else lanes()
    first, is_contiguous = _test_contiguity(access, pointer)
    with access.b.if_(is_contiguous, "contiguous") as branch:
        branch.yield_(*contiguous(first))
        branch.otherwise()
        branch.yield_(*lanes())
    return branch.results


def _test_contiguity(access: Access, pointer: Fragment) -> tuple[Value, Value]:
    """The first address, and whether the others follow it."""
    b = access.b
    if isinstance(pointer, Affine):
        return pointer.base, b.icmp("eq", pointer.step, const("i64", access.num_bytes))
    first = b.extractelement(pointer.value, 0)
    offsets = vector_const("i64", [lane * access.num_bytes for lane in range(access.lanes)])
    return first, all_of(b, b.icmp("eq", pointer.value, b.gep("i8", first, offsets)))


def _load_uniform(access: Access, pointer: Value, mask: Fragment | None) -> Value:
    b = access.b
    if mask is None:
        return b.load(access.type, pointer, access.num_bytes)
    if isinstance(mask, Uniform):
        return _load_element_if(access, pointer, mask.value)

    def load_some() -> Value:
        elements = b.splat(_load_element_if(access, pointer, any_lane(b, mask.value)), access.lanes)
        return b.select(mask.value, elements, zero(elements.type))

    if mask.full is None:
        return load_some()
    with b.if_(mask.full, "all_on") as branch:
        branch.yield_(b.splat(b.load(access.type, pointer, access.num_bytes), access.lanes))
        branch.otherwise()
        branch.yield_(load_some())
    return branch.results[0]


def _load_element_if(access: Access, pointer: Value, condition: Value) -> Value:
    """An element, or 0."""
    b = access.b
    with b.if_(condition, "on") as branch:
        branch.yield_(b.load(access.type, pointer, access.num_bytes))
        branch.otherwise()
        branch.yield_(zero(access.type))
    return branch.results[0]
