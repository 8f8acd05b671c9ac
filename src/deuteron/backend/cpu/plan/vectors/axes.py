"""Chooses the dimension of a nest that is vectorised: the one along which most accesses are contiguous.

x = load(p + i[:, None] * stride + j[None, :])      along j: step 1; along i: unknown          vectorise j
x = load(p + i[:, None] + j[None, :] * stride)      column-major                               vectorise i
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from xdsl.ir import Operation, SSAValue

from deuteron.backend.cpu.memory.elements import memory_type, register_type
from deuteron.backend.cpu.plan.indices import Index, identity_index
from deuteron.backend.cpu.plan.items import Nest
from deuteron.backend.cpu.plan.ops.declaration import IRREGULAR, UNKNOWN
from deuteron.backend.cpu.plan.products.operand_layout import OperandLayout
from deuteron.backend.cpu.plan.roots import Keep, Root, RowRoot, StoreRoot
from deuteron.backend.cpu.plan.schedule import Plan
from deuteron.backend.cpu.plan.vectors.accesses import Access, accesses_of, is_by_lane, is_close
from deuteron.backend.cpu.plan.vectors.neighbours import find_neighbours
from deuteron.backend.cpu.plan.vectors.quotients import Quotients, accesses_of_vectors, find_quotients, regular_lanes
from deuteron.backend.cpu.plan.vectors.segments import Segments, find_segments
from deuteron.backend.cpu.plan.vectors.steps import Steps
from deuteron.backend.llvm.types import byte_width
from deuteron.ir.tt.memory import LoadOp
from deuteron.ir.types import bf16, element_type_of, i1, is_integer, is_tile

# Where each lane is an instruction, more of them are only more to compile: of packs of bytes 5.2 s in LLVM with 64
# lanes, 0.5 s with 16.
MAX_STRIDED_LANES = 16

# Exchanging lanes and vectors of a block of so many takes less than an instruction for each lane; of smaller ones not
# much less. A block is code for each of its vectors: so many ops in all.
MIN_TURNED_LANES = 8
MAX_TURNED_LANES = 16
MAX_TURNED_OPS = 512
MIN_PACKED_COLUMNS = 4

# Vectors of several registers where all that is accessed is contiguous: LLVM does each op on all of them before the
# next, so that latencies overlap (gelu of bfloat16 0.48 ms instead of 0.64). Reductions are slower so.
MAX_LANES = 64

_SUM_BYTES = 4  # of the sums of a row of a product

# Segments of so many vectors take less than vectors of half as many lanes that divide once: an embedding of 56 floats
# 37 us instead of 61, a bias of 200 0.87 of torch's speed instead of 0.72; of 24 they take as long.
MIN_SEGMENT_VECTORS = 3

# A loop that runs at each index waits for its own results, unless more vectors at a time fill the time: one tile in 8
# vectors 98 to 102 us (20 rounds of a generator of numbers), in 4 153 to 157, in 16 98. Of three tiles 8 gain nothing.
LOOP_VECTORS = 2

# Several vectors at a time hide the latency of few ops; of many they are only more code. A step of a sorting network
# has some 40 ops: 100 elements took 2.0 s to compile with four vectors at a time, and 1.3 s with one.
MAX_UNROLLED_OPS = 64


@dataclass(frozen=True)
class Vectorisation:
    """The dimension that is vectorised (None where there is none), its lanes, and how many vectors at a time.

    `quotients`: the divisions that are done once for all lanes of a vector. `turned`: tiles that are read as vectors
    along another dimension, `across`, of which so many `rows` are computed together: lanes and vectors are exchanged,
    where there are more lanes than rows so many of them together. Where nothing is turned, so many rows along that
    dimension, or columns, are computed together, and packed, or if it `reduces` the lanes of each added up.
    `segments`: the divisions at whose boundaries vectors end. `registers`: how many of them a vector fills.
    `neighbours`: the loads whose lanes are neighbours in memory, if they are found to be before the nest; `otherwise`:
    what is chosen where they are not.
    """

    axis: int | None
    lanes: int
    unroll: int
    quotients: Quotients = Quotients(1)
    across: int | None = None
    turned: tuple[tuple[SSAValue, Index], ...] = ()
    rows: int = 0
    segments: Segments | None = None
    registers: int = 1
    neighbours: Mapping[Operation, Index] = field(default_factory=dict)
    otherwise: Vectorisation | None = None
    reduces: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether vectors follow one another from the first element to the last, by themselves or in whole blocks."""
        return self.segments is None and (self.across is None or bool(self.turned) or self.reduces)

    @property
    def register_lanes(self) -> int:
        """The lanes of one register."""
        return self.lanes // self.registers

    @property
    def is_far_apart(self) -> bool:
        """Whether the next access is somewhere else: of rows of a block whose lanes and vectors are exchanged."""
        return bool(self.turned) or (self.axis == 0 and self.rows > 0)

    @property
    def loaded_axis(self) -> int | None:
        """The dimension along which loads have lanes."""
        return self.across if self.turned else self.axis

    @property
    def num_across(self) -> int:
        """How many elements along `across` are computed together."""
        return self.rows


ELEMENTS = Vectorisation(None, 1, 1)


def choose_axis(plan: Plan, nest: Nest, vector_bytes: int, max_unroll: int) -> Vectorisation:
    """Lanes are limited by the widest element that the nest computes with or accesses."""
    chosen = _choose_axis(plan, nest, vector_bytes, max_unroll)
    if chosen.axis is None or chosen.turned or chosen.segments or chosen.quotients.guards:
        return chosen
    if neighbours := find_neighbours(plan, nest, chosen.axis):
        return replace(chosen, neighbours=neighbours, otherwise=chosen)
    return _turned_neighbours(plan, nest, chosen, vector_bytes) or chosen


def _turned_neighbours(plan: Plan, nest: Nest, chosen: Vectorisation, vector_bytes: int) -> Vectorisation | None:
    """Where an operand that is loaded lane by lane is turned if rows like `(pid * 64 + arange) % M` follow one another,
    as they do where columns are some number of elements apart: a distance of 1 is known.
    """
    for across in axes_to_vectorise(nest):
        neighbours = find_neighbours(plan, nest, across) if across != chosen.axis else {}
        if neighbours and all(
            Steps(plan).along(load.ptr, at, chosen.axis) == UNKNOWN for load, at in neighbours.items()
        ):
            loaded = {load.result for load in neighbours}
            accesses = [_following(access, across, loaded) for access in accesses_of(plan, nest)]
            turned = _choose_turned(plan, nest, accesses, chosen.axis, vector_bytes)
            return turned and replace(turned, neighbours=neighbours, otherwise=chosen)
    return None


def _following(access: Access, axis: int, loaded: set[SSAValue]) -> Access:
    """An access, of what is loaded as if one element followed another along an axis."""
    if access.read not in loaded:
        return access
    return replace(access, steps=tuple(1 if at == axis else step for at, step in enumerate(access.steps)))


def _choose_turned(
    plan: Plan, nest: Nest, accesses: Sequence[Access], axis: int, vector_bytes: int
) -> Vectorisation | None:
    """Lanes along an axis of what is read as vectors along another one, if anything is, and it is not too much code."""
    lanes = vector_bytes // max(access.num_bytes for access in accesses)
    side = min(lanes, nest.shape[axis], MAX_TURNED_LANES)
    across, turned = _turned(nest, accesses, axis, side)
    if not turned or _num_computed(plan, nest) * side > MAX_TURNED_OPS:
        return None
    count = side * min(_in_a_word(turned), nest.shape[axis] // side)
    return Vectorisation(axis, count, 1, Quotients(count), across, turned, side)


def _choose_axis(plan: Plan, nest: Nest, vector_bytes: int, max_unroll: int) -> Vectorisation:
    candidates = axes_to_vectorise(nest)
    if not candidates:
        return ELEMENTS
    accesses = accesses_of(plan, nest)
    if packed := packed_layout(nest):
        return _packed(nest, packed, packed_columns(nest, packed, accesses))
    lanes = vector_bytes // max(access.num_bytes for access in accesses)
    costs = {axis: cost_along(nest, accesses_of_vectors(plan, nest, axis, lanes), axis, lanes) for axis in candidates}
    axis = min(reversed(candidates), key=costs.__getitem__)
    lanes = vector_bytes // _widest(accesses_of_vectors(plan, nest, axis, lanes), axis)
    if segmented := _in_segments(plan, nest, lanes, costs[axis], vector_bytes):
        return segmented
    if turned := _choose_turned(plan, nest, accesses, axis, vector_bytes):
        return turned
    if nest.loops and all(len(loop.numbers) == 1 for loop in nest.loops):
        max_unroll *= LOOP_VECTORS
    max_unroll = 1 if nest.is_exclusive else min(max_unroll, _vectors_of(_num_computed(plan, nest)))
    is_plain = nest.reduced_axis is None and all(access.steps[axis] in (0, 1) for access in accesses)
    if is_plain and _only_moves(plan, nest):  # no more elements at a time, but in fewer vectors
        moved = vector_bytes // _widest(_moved(nest, accesses), axis)
        lanes, max_unroll = moved, max(1, max_unroll * lanes // moved)
    count = min(lanes, nest.shape[axis])
    if any(is_by_lane(access, axis, count) for access in accesses):
        count, max_unroll = min(count, MAX_STRIDED_LANES), 1
    if count == 1:
        return ELEMENTS
    sums_row = axis == nest.reduced_axis and isinstance(nest.roots[0], RowRoot)
    if sums_row:
        count = min(count, vector_bytes // _SUM_BYTES)
    quotients = find_quotients(plan, nest, axis, count)
    if quotients.guards and not _can_be_guarded(nest):
        quotients = Quotients(count)
    count = quotients.lanes
    if sums_row:
        columns = min(count // 2, nest.shape[1])  # as many as lanes take as long, and are more code
        return Vectorisation(axis, count, 1, quotients, across=1, rows=columns, reduces=True)
    unroll = min(max_unroll, nest.shape[axis] // count)
    divides = quotients.ops or quotients.distances
    registers = min(unroll, MAX_LANES // count) if is_plain and not divides else 1
    return Vectorisation(axis, count * registers, unroll // registers, quotients, registers=registers)


def choose_axis_of_neighbours(plan: Plan, root: Root, vector_bytes: int) -> Vectorisation:
    """That of an op, alone in its nest, on memory: along the dimension whose elements follow one another, if any do."""
    steps, identity = Steps(plan), identity_index(root.shape)
    axes = [axis for axis in range(len(root.shape)) if steps.along(root.op.ptr, identity, axis) == 1]
    if not axes:
        return ELEMENTS
    accesses = accesses_of(plan, Nest(root.shape, [root]), steps)
    lanes = vector_bytes // max(
        byte_width(register_type(root.op.value.type)), *(access.num_bytes for access in accesses)
    )
    is_any_strided = any(is_by_lane(access, axes[-1], lanes) for access in accesses)
    registers = 1 if is_any_strided else max(1, min(root.shape[axes[-1]], MAX_LANES) // lanes)
    count = min(lanes * registers, root.shape[axes[-1]], *([MAX_STRIDED_LANES] if is_any_strided else []))
    return Vectorisation(axes[-1], count, 1, Quotients(count), registers=registers)


def _widest(accesses: Sequence[Access], axis: int) -> int:
    """The bytes of the widest element that has lanes: of what is the same along the axis there is one."""
    widths = [access.num_bytes for access in accesses if access.steps[axis] != 0]
    return max(widths or [access.num_bytes for access in accesses])


def _in_segments(plan: Plan, nest: Nest, lanes: int, cost: float, vector_bytes: int) -> Vectorisation | None:
    """Along the dimension in whose segments elements cost least, where that is half of what they cost else, or vectors
    that divide once have fewer lanes.
    """
    found = {axis: find_segments(plan, nest, axis) for axis in axes_to_vectorise(nest)}
    costs = {
        axis: cost_along(nest, known[1], axis, min([lanes, *known[0].lengths]))
        for axis, known in found.items()
        if known is not None
    }
    axis = min(costs, key=costs.__getitem__, default=None)
    if axis is None:
        return None
    (segments, accesses), regular = found[axis], regular_lanes(plan, nest, axis, lanes)
    if regular == lanes or (not regular and 2 * costs[axis] > cost):
        return None
    if regular and not all(division.has_at_least(MIN_SEGMENT_VECTORS * lanes) for division in segments.divisions):
        return None
    widest = _widest(_moved(nest, accesses) if _only_moves(plan, nest) else accesses, axis)
    count = min(vector_bytes // widest, nest.shape[axis])
    return Vectorisation(axis, count, 1, Quotients(count), segments=segments)


def _only_moves(plan: Plan, nest: Nest) -> bool:
    """Whether a nest does no more than load elements and store them."""
    reads = [plan.reader.reads(root) for root in nest.roots]
    is_stored = all(isinstance(root, StoreRoot) for root in nest.roots)
    return is_stored and not any(one.tiles or one.computes_floats for one in reads)


def _moved(nest: Nest, accesses: Sequence[Access]) -> list[Access]:
    """Accesses of what is moved, which is as wide as it is in memory."""
    stored = max(byte_width(memory_type(root.op.value.type)) for root in nest.roots)
    reads = [access.read and byte_width(memory_type(access.read.type)) for access in accesses]
    return [replace(access, num_bytes=read or stored) for access, read in zip(accesses, reads, strict=True)]


def packed_layout(nest: Nest) -> OperandLayout | None:
    """That of an operand that the nest writes as it is packed."""
    layouts = [root.place.slot.layout for root in nest.roots if isinstance(root, Keep)]
    return next((layout for layout in layouts if layout is not None and layout.group > 1), None)


def _packed(nest: Nest, layout: OperandLayout, columns: int) -> Vectorisation:
    """That of a nest which packs an operand: rows of a group together, or so many columns."""
    axis, rows = (0, columns) if columns else (1, layout.group)
    lanes = columns * layout.group or min(nest.shape[1], MAX_LANES)
    return Vectorisation(axis, lanes, 1, Quotients(lanes), across=1 - axis, rows=rows)


def packed_columns(nest: Nest, layout: OperandLayout, accesses: Sequence[Access]) -> int:
    """How many columns are packed together where what is read runs down the columns; 0 where it does not."""
    reads = [access.steps for access in accesses if access.read is not None]
    runs_down = all(steps[0] in (0, 1) for steps in reads) and any(steps[0] == 1 != steps[1] for steps in reads)
    side = min(nest.shape[0] // layout.group, layout.columns, MAX_TURNED_LANES)
    return side if runs_down and side >= MIN_PACKED_COLUMNS and len(nest.roots) == 1 else 0


def _can_be_guarded(nest: Nest) -> bool:
    """Whether there may be code for the nest twice: scalars that come out of it would be made in two places, and what
    loops divide is not known before it.
    """
    is_known_before = not nest.is_exclusive and not nest.loops
    return is_known_before and all(is_tile(value.type) for root in nest.roots for value in root.produced())


def axes_to_vectorise(nest: Nest) -> list[int]:
    """The dimensions along which elements may be computed together."""
    if nest.is_scalar or (nest.is_exclusive and nest.reduced_axis is None):
        return []
    return [axis for axis, extent in enumerate(nest.shape) if extent > 1]


def cost_along(nest: Nest, accesses: Sequence[Access], axis: int, lanes: int) -> float:
    """What an element costs, in accesses, where lanes run along this axis."""
    count = min(lanes, nest.shape[axis])
    across = _steps_of_scan(count) if nest.is_exclusive and axis == nest.reduced_axis else 0
    return (2 + across + sum(_cost(nest, access, axis, count) for access in accesses)) / count


def _turned(
    nest: Nest, accesses: Sequence[Access], axis: int, lanes: int
) -> tuple[int | None, tuple[tuple[SSAValue, Index], ...]]:
    """The tiles that are read along another dimension than the one that is vectorised, and which one that is."""
    across = [(access, _across(nest, access, axis, lanes)) for access in accesses]
    axes = {other for _, other in across if other is not None}
    if len(axes) != 1:
        return None, ()
    turned = dict.fromkeys((access.read, access.index) for access, other in across if other is not None)
    return axes.pop(), tuple(turned)


def _in_a_word(turned: tuple[tuple[SSAValue, Index], ...]) -> int:
    """How many elements of 32 bits together are exchanged as one: of what is loaded and computed with as it is, or as
    a float that has its bits.
    """
    types = {memory_type(value.type) if _is_moved(value) else None for value, _ in turned}
    return max(1, 4 // byte_width(types.pop())) if len(types) == 1 and None not in types else 1


def _is_moved(value: SSAValue) -> bool:
    return isinstance(value.owner, LoadOp) and (element_type_of(value.type) == bf16 or is_integer(value.type))


def _across(nest: Nest, access: Access, axis: int, lanes: int) -> int | None:
    """The dimension along which what is strided along an axis is contiguous, if it can be read along that one."""
    is_known_late = nest.is_exclusive or nest.reduced_axis is not None or nest.loops
    if access.read is None or is_known_late or lanes < MIN_TURNED_LANES:
        return None
    if access.steps[axis] in (0, 1) or element_type_of(access.read.type) == i1:
        return None
    others = [other for other, step in enumerate(access.steps) if step == 1 and nest.shape[other] >= lanes]
    return others[0] if others else None


def _steps_of_scan(lanes: int) -> int:
    """What combining the lanes of a vector in each step of a scan takes, in accesses: see rules/scan.py."""
    return 2 * (lanes.bit_length() - 1)


def _num_computed(plan: Plan, nest: Nest) -> int:
    return sum(plan.reader.reads(root).num_computed for root in nest.roots)


def _vectors_of(num_ops: int) -> int:
    """How many vectors at a time so many ops leave room for: a power of two."""
    return 1 << (max(1, MAX_UNROLLED_OPS // max(1, num_ops)).bit_length() - 1)


def _cost(nest: Nest, access: Access, axis: int, lanes: int) -> float:
    """A step that is not known is 1, unless another one is."""
    step = access.steps[axis]
    if step == IRREGULAR and access.num_vectors:
        return 2 * access.num_vectors  # vectors, and shuffles
    if _across(nest, access, axis, min(lanes, MAX_TURNED_LANES)) is not None:
        return 1 + lanes.bit_length()  # the exchange takes log2 shuffles of each vector
    if step == UNKNOWN and 1 not in access.steps:
        return 2
    if access.read is not None and is_close(step, lanes):
        return 2 * step  # vectors, and shuffles
    return 1 if step in (-1, 0, 1) else lanes
