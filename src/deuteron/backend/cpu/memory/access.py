"""Accesses to the user's memory: loads and stores of a few lanes, of which a mask may switch some off.

    pointers                   without a mask      with a mask
    contiguous                 a vector load       a vector load where all lanes are on, else a masked one (*)
    contiguous, downwards      the same, and its lanes reversed
    a few elements apart       whole vectors, and shuffles (strided.py), where all lanes are on, else as others
    the same in all lanes      a scalar load       a scalar load where any lane is on
    others                     checked at run time whether they are contiguous, else lane by lane (or a gather)

Where offsets of 32 bits may wrap around between two lanes (`Affine.elements`) is found out if some lanes are off: those
that are on are accessed where they are.

(*) Processors fetch ahead what loads without a mask read one after the other: on a Zen 5 masked loads alone read memory
at 35 GB/s, others at 60. Stores are masked where that takes no more instructions.

A lane that is off is never accessed. Elements are as they lie in memory (`elements.memory_type`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from deuteron.backend.cpu.algebra import as_vector, lane_offsets
from deuteron.backend.cpu.context import Context
from deuteron.backend.cpu.fragment import Affine, Fragment, Uniform, Vector, lanes_of
from deuteron.backend.cpu.memory.lane_loops import gather_lanes, gather_strided, scatter_lanes, scatter_strided
from deuteron.backend.cpu.memory.narrow_gathers import gather_narrow
from deuteron.backend.cpu.memory.streaming import can_stream, store_streaming
from deuteron.backend.cpu.memory.strided import load_strided, store_strided
from deuteron.backend.cpu.plan.accesses import is_close
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, byte_width, const, vector, vector_const, width, zero


@dataclass(frozen=True)
class Access:
    """One access of `lanes` elements of a memory type; code goes to the level's block."""

    ctx: Context
    level: int
    lanes: int
    type: str

    @property
    def b(self) -> Builder:
        return self.ctx.emitter.at(self.level)

    @property
    def num_bytes(self) -> int:
        return byte_width(self.type)

    @property
    def has_masked_moves(self) -> bool:
        """Whether the CPU loads and stores such elements under a mask."""
        target = self.ctx.target
        return target.vector_bits >= 256 and (self.num_bytes >= 4 or target.masks_narrow)

    @property
    def has_free_masks(self) -> bool:
        """Whether a masked move takes as many instructions as a plain one."""
        return self.has_masked_moves and self.ctx.target.vector_bits >= 512

    @property
    def is_far_apart(self) -> bool:
        """Whether the next access is somewhere else."""
        return self.ctx.vectorisation.is_far_apart

    @property
    def has_gathers(self) -> bool:
        """Whether there is an instruction that gathers such elements, which costs less than a branch for each lane."""
        return self.num_bytes >= 4 and self.ctx.target.vector_bits >= 512

    @property
    def has_gathers_of_words(self) -> bool:
        """Whether elements are narrow, and the words that hold so many of them are gathered by few instructions."""
        return self.ctx.target.vector_bits >= 512 and self.lanes > 1


def load(access: Access, pointer: Fragment, mask: Fragment | None) -> Value:
    """The elements; 0 in lanes that are off. A scalar where the pointer is one and so is the mask."""
    if isinstance(pointer, Uniform):
        return _load_uniform(access, pointer.value, mask)
    if may_wrap(pointer, mask):
        straight = replace(pointer, elements=None)
        return _unless_wrapped(
            access,
            (pointer, mask),
            lambda masked: [load(access, straight, masked)],
            lambda: [_gather(access, Vector(pointer.elements(), pointer.level), _mask_vector(access, mask))],
        )[0]

    def load_contiguous(first: Value) -> list[Value]:
        return [_load_contiguous(access, first, mask)]

    def load_lanes() -> list[Value]:
        return [_gather(access, pointer, _mask_vector(access, mask))]

    if stride := _close_stride(access, pointer):
        return _if_full(access, mask, lambda: _load_strided(access, pointer, stride), load_lanes)[0]
    if _goes_down(access, pointer):
        return _reversed(access.b, _load_contiguous(access, _last(access, pointer), _reversed_mask(access.b, mask)))
    return _choose(access, pointer, load_contiguous, load_lanes)[0]


def store(
    access: Access, pointer: Fragment, value: Fragment, mask: Fragment | None, streams: Value | None = None
) -> None:
    """Store a fragment of elements. Where several lanes have one address, the last one stays. `streams`: of what may
    bypass the caches, whether it does.
    """
    if isinstance(pointer, Uniform) and lanes_of(value, *([mask] if mask else [])) == 1:
        _if_on(access, mask, lambda: access.b.store(value.value, pointer.value, access.num_bytes))
        return
    if may_wrap(pointer, mask):
        _store_unless_wrapped(access, pointer, value, mask, streams)
        return
    elements = as_vector(access.ctx.emitter, value, access.lanes)

    def store_contiguous(first: Value) -> list[Value]:
        _store_contiguous(access, elements, first, mask, None if access.is_far_apart else streams)
        return []

    def store_lanes() -> list[Value]:
        _scatter(access, elements, pointer, _mask_vector(access, mask))
        return []

    def store_strided_elements() -> list[Value]:
        store_strided(access.b, elements, pointer.base, stride)
        return []

    stride = _close_stride(access, pointer)
    if isinstance(pointer, Uniform):
        store_lanes()
    elif stride and access.has_free_masks:
        _if_full(access, mask, store_strided_elements, store_lanes)
    elif _goes_down(access, pointer):
        elements, mask = _reversed(access.b, elements), _reversed_mask(access.b, mask)
        store_contiguous(_last(access, pointer))
    else:
        _choose(access, pointer, store_contiguous, store_lanes)


def may_wrap(pointer: Fragment, mask: Fragment | None) -> bool:
    """Whether lanes that are on may be elsewhere than lanes which are off let expect."""
    is_mixed = mask is not None and not isinstance(mask, Uniform)
    return is_mixed and isinstance(pointer, Affine) and pointer.elements is not None


def _unless_wrapped(
    access: Access,
    chosen: tuple[Affine, Fragment],
    straight: Callable[[Fragment | None], list[Value]],
    elsewhere: Callable[[], list[Value]],
) -> list[Value]:
    """Emit what all lanes do, what some do that are a step apart, and what those do that are not."""
    pointer, mask = chosen

    def some() -> list[Value]:
        b = access.b
        with b.if_(is_straight(b, pointer), "straight") as branch:
            branch.yield_(*straight(mask))
            branch.otherwise()
            branch.yield_(*elsewhere())
        return branch.results

    return _if_full(access, mask, lambda: straight(None), some)


def is_straight(b: Builder, pointer: Affine) -> Value:
    """Whether all lanes are where the first one and the step say: distances are compared, for LLVM 22 aborts where
    vectors of addresses with one base are.
    """
    first = b.splat(b.ptrtoint(pointer.base, "i64"), pointer.lanes)
    distances = b.sub(b.ptrtoint(pointer.elements(), first.type), first)
    return _all(b, b.icmp("eq", distances, lane_offsets(b, pointer, pointer.lanes)))


def _store_unless_wrapped(
    access: Access, pointer: Affine, value: Fragment, mask: Fragment, streams: Value | None
) -> None:
    def straight(masked: Fragment | None) -> list[Value]:
        store(access, replace(pointer, elements=None), value, masked, streams)
        return []

    def elsewhere() -> list[Value]:
        elements = as_vector(access.ctx.emitter, value, access.lanes)
        scatter_lanes(access.b, elements, pointer.elements(), _mask_vector(access, mask))
        return []

    _unless_wrapped(access, (pointer, mask), straight, elsewhere)


def _goes_down(access: Access, pointer: Fragment) -> bool:
    """Whether each lane's element is the one before the last lane's."""
    return isinstance(pointer, Affine) and isinstance(pointer.step, int) and pointer.step == -access.num_bytes


def _close_stride(access: Access, pointer: Fragment) -> int:
    """How many elements lanes are apart where those are few; else 0."""
    if not (isinstance(pointer, Affine) and isinstance(pointer.step, int)):
        return 0
    stride, rest = divmod(pointer.step, access.num_bytes)
    return stride if not rest and is_close(stride, access.lanes) else 0


def _load_strided(access: Access, pointer: Affine, stride: int) -> list[Value]:
    return [load_strided(access.b, pointer.base, access.type, access.lanes, stride)]


def _if_full(
    access: Access, mask: Fragment | None, full: Callable[[], list[Value]], others: Callable[[], list[Value]]
) -> list[Value]:
    """Emit one way where all lanes are on, and another one where some may be off."""
    if mask is None:
        return full()
    with access.b.if_(_is_full(access.b, mask), "all_on") as branch:
        branch.yield_(*full())
        branch.otherwise()
        branch.yield_(*others())
    return branch.results


def _last(access: Access, pointer: Affine) -> Value:
    """The address of the last lane."""
    return access.b.gep("i8", pointer.base, const("i64", (access.lanes - 1) * pointer.step))


def _reversed(b: Builder, elements: Value) -> Value:
    return b.shufflevector(elements, elements, range(width(elements.type))[::-1])


def _reversed_mask(b: Builder, mask: Fragment | None) -> Fragment | None:
    if not isinstance(mask, Vector):
        return mask
    return Vector(_reversed(b, mask.value), mask.level, mask.full)


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
    return first, _all(b, b.icmp("eq", pointer.value, b.gep("i8", first, offsets)))


def _load_uniform(access: Access, pointer: Value, mask: Fragment | None) -> Value:
    b = access.b
    if mask is None:
        return b.load(access.type, pointer, access.num_bytes)
    if isinstance(mask, Uniform):
        return _load_element_if(access, pointer, mask.value)

    def load_some() -> Value:
        elements = b.splat(_load_element_if(access, pointer, _any(b, mask.value)), access.lanes)
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


def _load_contiguous(access: Access, first: Value, mask: Fragment | None) -> Value:
    type, b = vector(access.type, access.lanes), access.b

    def load_all() -> Value:
        return b.load(type, first, access.num_bytes)

    if mask is None:
        return load_all()
    if not isinstance(mask, Uniform) and access.has_free_masks and access.is_far_apart:
        return b.masked_load(type, first, access.num_bytes, mask.value)
    with b.if_(_is_full(b, mask), "all_on") as branch:
        branch.yield_(load_all())
        branch.otherwise()
        branch.yield_(zero(type) if isinstance(mask, Uniform) else _load_some(access, first, mask.value))
    return branch.results[0]


def _load_some(access: Access, first: Value, mask: Value) -> Value:
    if access.has_masked_moves:
        return _load_unless_empty(access, first, mask)
    return _gather(access, _consecutive(access, first), mask)


def _load_unless_empty(access: Access, first: Value, mask: Value) -> Value:
    """What a masked load reads where all lanes are off is waited for, though nothing comes of it."""
    b, type = access.b, vector(access.type, access.lanes)
    with b.if_(_any(b, mask), "some_on") as branch:
        branch.yield_(b.masked_load(type, first, access.num_bytes, mask))
        branch.otherwise()
        branch.yield_(zero(type))
    return branch.results[0]


def _store_contiguous(
    access: Access, elements: Value, first: Value, mask: Fragment | None, streams: Value | None
) -> None:
    b = access.b
    is_streamed = streams is not None and can_stream(elements)

    def store_all() -> None:
        if is_streamed:
            store_streaming(b, elements, first, access.num_bytes, streams)
        else:
            b.store(elements, first, access.num_bytes)

    if mask is None:
        store_all()
        return
    if access.has_free_masks and _is_tested_by_lanes(mask) and not is_streamed:
        b.masked_store(elements, first, access.num_bytes, mask.value)
        return
    with b.if_(_is_full(b, mask), "all_on") as branch:
        store_all()
        branch.otherwise()
        if not isinstance(mask, Uniform):
            _store_some(access, elements, first, mask.value)


def _store_some(access: Access, elements: Value, first: Value, mask: Value) -> None:
    if access.has_masked_moves:
        with access.b.if_(_any(access.b, mask), "some_on"):
            access.b.masked_store(elements, first, access.num_bytes, mask)
    else:
        _scatter(access, elements, _consecutive(access, first), mask)


def _gather(access: Access, pointer: Fragment, mask: Value) -> Value:
    b = access.b
    if access.has_gathers:
        type = vector(access.type, access.lanes)
        return b.masked_gather(type, _pointers(access, pointer), access.num_bytes, mask)
    if isinstance(pointer, Affine):
        return gather_strided(b, pointer.base, _step_of(pointer), mask, access.type)
    if access.has_gathers_of_words:
        return gather_narrow(b, _pointers(access, pointer), mask, access.type)
    return gather_lanes(b, _pointers(access, pointer), mask, access.type)


def _scatter(access: Access, elements: Value, pointer: Fragment, mask: Value) -> None:
    if isinstance(pointer, Affine):
        scatter_strided(access.b, elements, pointer.base, _step_of(pointer), mask)
    else:
        scatter_lanes(access.b, elements, _pointers(access, pointer), mask)


def _step_of(pointer: Affine) -> Value:
    return const("i64", pointer.step) if isinstance(pointer.step, int) else pointer.step


def _if_on(access: Access, mask: Fragment | None, emit: Callable[[], None]) -> None:
    if mask is None:
        emit()
        return
    with access.b.if_(mask.value, "on"):
        emit()


def _pointers(access: Access, pointer: Fragment) -> Value:
    return as_vector(access.ctx.emitter, pointer, access.lanes)


def _consecutive(access: Access, first: Value) -> Affine:
    return Affine(first, access.num_bytes, access.lanes, access.level)


def _mask_vector(access: Access, mask: Fragment | None) -> Value:
    if mask is None:
        return const(vector("i1", access.lanes), True)
    return as_vector(access.ctx.emitter, mask, access.lanes)


def _is_full(b: Builder, mask: Fragment) -> Value:
    """Whether all lanes of a mask are on; where it says so by itself, it may say no."""
    if isinstance(mask, Uniform):
        return mask.value
    return _all(b, mask.value) if mask.full is None else mask.full


def _is_tested_by_lanes(mask: Fragment) -> bool:
    return not isinstance(mask, Uniform) and mask.full is None


def _all(b: Builder, mask: Value) -> Value:
    return b.intrinsic("llvm.vector.reduce.and", "i1", mask, overloads=[mask.type]) if width(mask.type) > 1 else mask


def _any(b: Builder, mask: Value) -> Value:
    return b.intrinsic("llvm.vector.reduce.or", "i1", mask, overloads=[mask.type])
