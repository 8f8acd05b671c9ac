"""Loads and stores of lanes that lie anywhere: by instructions that gather, or lane by lane."""

from __future__ import annotations

from deuteron.backend.cpu.algebra import as_vector
from deuteron.backend.cpu.fragment import Affine, Fragment
from deuteron.backend.cpu.memory.close_gathers import gather_close, has_shuffles
from deuteron.backend.cpu.memory.element_access import Access
from deuteron.backend.cpu.memory.lane_loops import gather_lanes, gather_strided, scatter_lanes, scatter_strided
from deuteron.backend.cpu.memory.narrow_gathers import gather_narrow
from deuteron.backend.llvm.types import Value, const, vector


def gather(access: Access, pointer: Fragment, mask: Value) -> Value:
    if isinstance(pointer, Affine) or access.has_fast_gathers or not has_shuffles(access):
        return _gather(access, pointer, mask)
    return gather_close(access.b, pointer.value, mask, access.type, lambda: _gather(access, pointer, mask))


def _gather(access: Access, pointer: Fragment, mask: Value) -> Value:
    b = access.b
    if access.has_gathers:
        type = vector(access.type, access.lanes)
        return b.masked_gather(type, _pointers(access, pointer), access.num_bytes, mask)
    if isinstance(pointer, Affine):
        return gather_strided(b, pointer.base, _step_of(pointer), mask, access.type)
    if access.has_gathers_of_words:
        return gather_narrow(b, _pointers(access, pointer), mask, access.type, access.has_masked_moves)
    return gather_lanes(b, _pointers(access, pointer), mask, access.type)


def scatter(access: Access, elements: Value, pointer: Fragment, mask: Value) -> None:
    if isinstance(pointer, Affine):
        scatter_strided(access.b, elements, pointer.base, _step_of(pointer), mask)
    else:
        scatter_lanes(access.b, elements, _pointers(access, pointer), mask)


def _step_of(pointer: Affine) -> Value:
    return const("i64", pointer.step) if isinstance(pointer.step, int) else pointer.step


def _pointers(access: Access, pointer: Fragment) -> Value:
    return as_vector(access.ctx.emitter, pointer, access.lanes)


def consecutive(access: Access, first: Value) -> Affine:
    return Affine(first, access.num_bytes, access.lanes, access.level)
