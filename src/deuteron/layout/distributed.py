"""The named layouts of tiles in registers, as constructors of linear layouts with inputs register, lane, warp, block.

blocked            each thread a small block, threads and warps tiled over the tile
square_blocked     such blocks for dots by multiply-adds
mma_v2_accumulator the accumulator of mma.sync m16n8
mma_v2_operand     the operands of mma.sync with 256 bits along K
axis_bits          which bits of an input move along an axis
slice_axis         what remains of a layout after a reduction along an axis
scatter_registers  registers shared out over lanes that hold replicas
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import prod

from deuteron.layout.linear import BLOCK, LANE, REGISTER, WARP, LinearLayout, dim_names, log2, remembered

HARDWARE = (REGISTER, LANE, WARP, BLOCK)


def _identity_nd(in_name: str, sizes: Sequence[int], order: Sequence[int]) -> LinearLayout:
    """Bits of one input dealt out to the dimensions, the fastest dimension first."""
    names = dim_names(len(sizes))
    layout = LinearLayout.make({in_name: []}, {name: 1 for name in names})
    for axis in order:
        layout = layout * LinearLayout.identity(sizes[axis], in_name, names[axis])
    return layout.with_outs(names)


def _finish(layout: LinearLayout, shape: Sequence[int], order: Sequence[int]) -> LinearLayout:
    return layout.with_ins(HARDWARE).fit(shape, order)


@remembered
def blocked(
    shape: Sequence[int],
    size_per_thread: Sequence[int],
    threads_per_warp: Sequence[int],
    warps_per_cta: Sequence[int],
    order: Sequence[int],
) -> LinearLayout:
    """A tile in blocks of `size_per_thread`; `order` lists the dimensions from the fastest to the slowest.

    blocked([4, 8], [1, 2], [2, 4], [2, 1], order=[1, 0]), lanes as 2x4 in each warp, warps along the rows:

        warp 0:  0 0 1 1 2 2 3 3      (lane that holds each element)
                 4 4 5 5 6 6 7 7
        warp 1:  0 0 1 1 2 2 3 3
                 4 4 5 5 6 6 7 7
    """
    layout = (
        _identity_nd(REGISTER, size_per_thread, order)
        * _identity_nd(LANE, threads_per_warp, order)
        * _identity_nd(WARP, warps_per_cta, order)
    )
    return _finish(layout, shape, order)


def default_blocked(
    shape: Sequence[int],
    num_warps: int,
    order: Sequence[int] | None = None,
    vector: int = 1,
    warp_size: int = 32,
    avoided: Sequence[Collection[int]] = (),
) -> LinearLayout:
    """A blocked layout with `vector` neighbouring elements of the fastest dimension in a thread.

    Lanes cover the fastest dimension first, then the next; warps go to the slowest dimensions first, last to those that
    are `avoided`, the later in the list the worse: what several warps have of a sum they exchange, and along a
    dimension for which the same is loaded each of them loads it.
    """
    order = list(order) if order is not None else list(reversed(range(len(shape))))
    size_per_thread = [1] * len(shape)
    size_per_thread[order[0]] = min(vector, shape[order[0]])
    return _blocks_of(shape, size_per_thread, num_warps, order, warp_size, avoided)


def in_threads(
    shape: Sequence[int], num_warps: int, axes: Collection[int], order: Sequence[int], warp_size: int = 32
) -> LinearLayout:
    """A blocked layout whose threads have all elements along some axes: of the others each has one, if they are as
    many; lanes and warps as in `default_blocked`.
    """
    size_per_thread = [extent if axis in axes else 1 for axis, extent in enumerate(shape)]
    return _blocks_of(shape, size_per_thread, num_warps, order, warp_size)


def _blocks_of(
    shape: Sequence[int],
    size_per_thread: Sequence[int],
    num_warps: int,
    order: Sequence[int],
    warp_size: int,
    avoided: Sequence[Collection[int]] = (),
) -> LinearLayout:
    remaining = [extent // size for extent, size in zip(shape, size_per_thread, strict=True)]
    threads = _deal(warp_size, remaining, order)
    remaining = [max(r // t, 1) for r, t in zip(remaining, threads, strict=True)]
    warps = _deal(
        num_warps, remaining, sorted(reversed(order), key=lambda axis: [axis in axes for axes in reversed(avoided)])
    )
    return blocked(shape, size_per_thread, threads, warps, order)


def square_blocked(shape: Sequence[int], num_warps: int, warp_size: int = 32) -> LinearLayout:
    """Blocks of up to 4x4 in each thread, so that each element of the operands of a dot is used several times; smaller
    ones rather than that threads hold the same. Warps go along rows, and each has whole ones where rows are few.

    square_blocked([64, 64], 8), 16 elements a thread: 2x16 lanes, and warps one under another. With 4x8 lanes, and 32
    elements a thread, fp32 products had 0.61 to 0.97 of the speed.
    """
    num_threads = num_warps * warp_size
    share = max(prod(shape) // num_threads, 1)
    size_per_thread = [1] * len(shape)
    size_per_thread[-1] = min(4, shape[-1], 1 << share.bit_length() // 2)
    size_per_thread[-2] = min(4, shape[-2], max(share // size_per_thread[-1], 1))
    remaining = [extent // size for extent, size in zip(shape, size_per_thread, strict=True)]
    columns = min(remaining[-1], max(16, num_threads // prod(remaining[:-1])))
    threads = _deal(warp_size, [*remaining[:-1], columns], _rows_last(len(shape)))
    remaining = [max(r // t, 1) for r, t in zip(remaining, threads, strict=True)]
    warps = _deal(num_warps, remaining, list(range(len(shape))))
    return blocked(shape, size_per_thread, threads, warps, _rows_last(len(shape)))


def in_columns(
    shape: Sequence[int], num_warps: int, axis: int, fast: int, vector: int, warp_size: int = 32
) -> LinearLayout:
    """As few threads along an axis as are needed to keep all busy, each with a column of elements that follow each
    other, and `vector` neighbours of the fastest dimension.

    in_columns([8, 32], 1, axis=0, fast=1, vector=2), 16 lanes along a row: lanes 0 to 15 have the first four rows
    """
    order = [fast, *(one for one in reversed(range(len(shape))) if one not in (axis, fast)), axis]
    size_per_thread = [1] * len(shape)
    size_per_thread[fast] = vector
    remaining = [max(extent // size, 1) for extent, size in zip(shape, size_per_thread, strict=True)]
    threads = _deal(warp_size, remaining, order)
    remaining = [max(r // t, 1) for r, t in zip(remaining, threads, strict=True)]
    warps = _deal(num_warps, remaining, order)
    size_per_thread[axis] = max(remaining[axis] // warps[axis], 1)
    return blocked(shape, size_per_thread, threads, warps, order)


def transposing_blocked(
    shape: tuple[int, int], num_warps: int, read_along: int, vector: int, depth: int, apart: int, warp_size: int = 32
) -> LinearLayout:
    """Blocks of `vector` elements, in the dimension in which a tile is read, times `depth` in the other one, in which
    its elements are neighbours where it is stored. So many lanes along that one keep banks of shared memory `apart`,
    the others read on.
    """
    order = [1 - read_along, read_along]
    size_per_thread = [depth, depth]
    size_per_thread[read_along] = vector
    remaining = [max(extent // size, 1) for extent, size in zip(shape, size_per_thread, strict=True)]
    threads = [1, 1]
    threads[order[0]] = min(apart, remaining[order[0]])
    threads[read_along] = min(warp_size // threads[order[0]], remaining[read_along])
    threads[order[0]] = warp_size // threads[read_along]
    remaining = [max(r // t, 1) for r, t in zip(remaining, threads, strict=True)]
    return blocked(shape, size_per_thread, threads, _deal(num_warps, remaining, order), order)


def _deal(count: int, room: Sequence[int], order: Sequence[int]) -> list[int]:
    """Deal `count` (a power of two) out over dimensions with that much room, in order; the rest goes to the last."""
    dealt = [1] * len(room)
    for axis in order:
        dealt[axis] = min(count, room[axis])
        count //= dealt[axis]
    dealt[order[-1]] *= count
    return dealt


def warps_along(warps_per_cta: Sequence[int], order: Sequence[int]) -> LinearLayout:
    """Warps alone, dealt out to the dimensions, the first of `order` first."""
    return _identity_nd(WARP, warps_per_cta, order)


def _rows_last(rank: int) -> list[int]:
    return list(reversed(range(rank)))


@remembered
def mma_v2_accumulator(shape: Sequence[int], warps_per_cta: Sequence[int]) -> LinearLayout:
    """The accumulator of mma.sync m16n8, repeated over the tile; `warps_per_cta` tiles warps over M and N.

    One 16x8 tile; lane:register, rows 8 to 15 hold registers 2 and 3 of the same lanes:

        row 0   0:0 0:1  1:0 1:1  2:0 2:1  3:0 3:1
        row 1   4:0 4:1  5:0 5:1  6:0 6:1  7:0 7:1
        ...
        row 8   0:2 0:3  1:2 1:3  2:2 2:3  3:2 3:3
    """
    outer = [1] * (len(shape) - 2)
    tile = _tile_2d({REGISTER: [(0, 1), (8, 0)], LANE: [(0, 2), (0, 4), (1, 0), (2, 0), (4, 0)]}, (16, 8), len(outer))
    return _finish(tile * warps_along(warps_per_cta, _rows_last(len(shape))), shape, _rows_last(len(shape)))


def is_mma_v2_accumulator(layout: LinearLayout) -> bool:
    """Whether threads hold a tile as mma.sync gives it, in 16x8 tiles; of fewer columns several lanes hold the same.
    Lanes may be as far apart in a tile of multiply-adds, of which threads do not hold rows 8 apart.
    """
    rank, columns = len(layout.shape), min(layout.shape[-1], 8)
    one = mma_v2_accumulator((*[1] * (rank - 2), 16, columns), [1] * rank)
    return layout.of(LANE) == one.of(LANE) and {*one.of(REGISTER)} <= {*layout.of(REGISTER)}


@remembered
def mma_v2_operand(
    shape: Sequence[int], warps_per_cta: Sequence[int], operand: int, bit_width: int, neighbours: int = 0
) -> LinearLayout:
    """Operand 0 ([M, K]) or 1 ([K, N]) of mma.sync with elements of `bit_width` bits: 256 bits along K.

    Each thread holds 32 bits of neighbours along K, or one element of 64; operand 0 has rows +8 in the next register,
    then what is further along K.
    With more `neighbours` it holds so many, and the instruction multiplies K in another order than memory has it.
    Warps that differ only along the other operand's dimension hold replicas.
    """
    width = max(32 // bit_width, 1)
    held = max(neighbours, width)
    along = [1 << bit for bit in range(log2(width))]
    depth = max(256 // bit_width, 4 * held)
    steps = [step for step in (1 << bit for bit in range(log2(width), log2(depth))) if step not in (held, 2 * held)]
    if operand == 0:
        registers = [*((0, k) for k in along), (8, 0), *((0, k) for k in steps)]
        lanes = [(0, held), (0, 2 * held), (1, 0), (2, 0), (4, 0)]
        size, kept = (16, depth), -2
    else:
        registers = [*((k, 0) for k in (*along, *steps))]
        lanes = [(held, 0), (2 * held, 0), (0, 1), (0, 2), (0, 4)]
        size, kept = (depth, 8), -1
    tile = _tile_2d({REGISTER: registers, LANE: lanes}, size, len(shape) - 2)
    warps = _operand_warps(warps_per_cta, kept)
    return _finish(tile * warps, shape, _rows_last(len(shape)))


def _tile_2d(bases: dict[str, list[tuple[int, int]]], size: tuple[int, int], num_outer: int) -> LinearLayout:
    """A two-dimensional tile with `num_outer` dimensions of extent 1 before it."""
    names = dim_names(num_outer + 2)
    outs = dict(zip(names, (*[1] * num_outer, *size), strict=True))
    padded = {name: [(*[0] * num_outer, *basis) for basis in vectors] for name, vectors in bases.items()}
    return LinearLayout.make(padded, outs)


def _operand_warps(warps_per_cta: Sequence[int], kept: int) -> LinearLayout:
    """Warps of the accumulator as an operand sees them: those along the dimension that it lacks are replicas."""
    rank = len(warps_per_cta)
    warps = warps_along(warps_per_cta, _rows_last(rank))
    keep = {rank + kept, *range(rank - 2)}
    outs = {name: size if axis in keep else 1 for axis, (name, size) in enumerate(warps.outs)}
    return warps.map_columns(outs, lambda basis: tuple(e if axis in keep else 0 for axis, e in enumerate(basis)))


@remembered
def axis_bits(layout: LinearLayout, axis: int, in_name: str) -> list[int]:
    """The bits of an input that move along an axis, without those that hold replicas; each moves along it alone."""
    free = layout.free_bits()[in_name]
    found = []
    for bit, basis in enumerate(layout.of(in_name)):
        if basis[axis] and not free >> bit & 1:
            if any(entry for other, entry in enumerate(basis) if other != axis) or basis[axis].bit_count() != 1:
                raise ValueError(f"bit {bit} of {in_name} moves along several dimensions: {basis}")
            found.append(bit)
    return found


def slice_axis(layout: LinearLayout, axis: int) -> LinearLayout:
    """The layout after a reduction along `axis`, without registers that became replicas."""
    return layout.without_axis(axis).without_replicated_registers()


def scatter_registers(layout: LinearLayout, lanes: Sequence[int]) -> LinearLayout:
    """The layout with its registers shared out over lane bits that say nothing of an element, the first over the first.

    4 rows in each thread, of which the lanes 0 to 3 have one each then:

        register [1], [2], lane [0], [0], [4]     ->     register none, lane [1], [2], [4]
    """
    bases = {name: list(layout.of(name)) for name in layout.in_names}
    for lane in lanes[: len(bases[REGISTER])]:
        assert not any(bases[LANE][lane]), f"lane bit {lane} of {layout} holds no replicas"
        bases[LANE][lane] = bases[REGISTER].pop(0)
    return LinearLayout.make(bases, dict(layout.outs))


def scattered_registers(layout: LinearLayout, scattered: LinearLayout) -> dict[int, int] | None:
    """Which register bit each lane bit has taken over by `scatter_registers`; None if that is not the difference."""
    taken = {
        lane: layout.of(REGISTER).index(basis)
        for lane, (before, basis) in enumerate(zip(layout.of(LANE), scattered.of(LANE), strict=True))
        if not any(before) and basis in layout.of(REGISTER)
    }
    is_same = scatter_registers(layout, list(taken)) == scattered
    return taken if is_same else None


def gather_along(layout: LinearLayout, axis: int) -> LinearLayout:
    """The layout whose threads have neighbours along an axis: registers the lowest bits of the position, then lanes.

    register [8], [16], lane [1], [2], [4]     ->     register [1], [2], lane [4], [8], [16]
    """
    places = [(name, bit) for name in (REGISTER, LANE, WARP) for bit in axis_bits(layout, axis, name)]
    bases = {name: list(layout.of(name)) for name in layout.in_names}
    ascending = sorted((bases[name][bit] for name, bit in places), key=lambda basis: basis[axis])
    for (name, bit), basis in zip(places, ascending, strict=True):
        bases[name][bit] = basis
    return LinearLayout.make(bases, dict(layout.outs))


def split_axis(layout: LinearLayout, axis: int) -> LinearLayout:
    """The layout of both halves of a tile that has two elements along `axis`. Where two lanes or warps have one each,
    each thread gets both of half of what it holds, so that no two threads have the same afterwards.
    """
    half = tuple(int(at == axis) for at in range(len(layout.shape)))
    bases = {name: list(layout.of(name)) for name in layout.in_names}
    holder = next((name for name in (LANE, WARP) if half in bases[name]), None)
    given = next((basis for basis in bases[REGISTER] if any(basis) and not basis[axis]), None)
    if holder is not None and given is not None and half not in bases[REGISTER]:
        bases[holder][bases[holder].index(half)] = given
        bases[REGISTER][bases[REGISTER].index(given)] = half
    return slice_axis(LinearLayout.make(bases, dict(layout.outs)), axis)


def multiply_add_operand(accumulator: LinearLayout, shape: tuple[int, ...], index: int) -> LinearLayout:
    """Operand a (0) or b (1) of a dot by multiply-adds: each thread holds the whole row of a, or column of b, of each
    element of its accumulator.
    """
    along_k = len(shape) - 1 if index == 0 else len(shape) - 2
    outs = {name: 1 if axis == along_k else size for axis, (name, size) in enumerate(accumulator.outs)}
    kept = accumulator.map_columns(
        outs, lambda basis: tuple(0 if axis == along_k else entry for axis, entry in enumerate(basis))
    ).without_replicated_registers()
    whole = LinearLayout.identity(shape[along_k], REGISTER, f"dim{along_k}") * kept
    return whole.with_outs(accumulator.out_names).with_ins(HARDWARE)
