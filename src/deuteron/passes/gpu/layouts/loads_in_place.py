"""Loads that are done in the layout in which they are needed, instead of in a coalesced one and then converted.

    cos = tl.load(cos_ptr + arange(0, 64))               64 halves for all rows of a tile whose threads hold 8 each:
    q * cos.to(tl.float32)[None, :]                      one access of 16 bytes in each thread, no exchange
    k * cos.to(tl.float32)[None, :]                      for fewer rows, of which a thread holds 2: another access

Threads may then load what others load as well, which the first cache serves. What is computed of such loads moves with
them, if nothing else needs any of it elsewhere. A load must not take many more accesses than in the coalesced layout,
and the lanes of a warp have to read neighbours, or, of no more elements than there are threads, no more sectors than
there, as of the mean of each row of a tile of which a warp has four. Of more a thread has vectors there, which others
that are computed with them may yet be moved to. In a loop without dots a few accesses may take the place of as many in
shared memory: on an H200 distances of 32 and 64 points, of which a thread has 8 rows, take 0.74 to 0.87 of the time so,
a convolution 0.69. Outside of loops elements at a distance from each other are loaded by neighbouring lanes and
exchanged: the taps of 256 channels, eight of which a thread has, were 32 accesses of 32 sectors (86.3 us, now 50.6).
Where addresses come from memory, they would have to be converted.
Outside of loops each value that is not converted counts, and few elements that the kernel does not write are loaded
once for each layout in which they are needed: in loops selective scan took 1.22 of the time so, and inverses 1.1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from xdsl.ir import Operation, SSAValue

from deuteron.analysis.addresses.load_accesses import load_accesses
from deuteron.analysis.axis.axis_analysis import AxisInfoAnalysis
from deuteron.ir.around import loops_around
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.tt.memory import LoadOp
from deuteron.ir.ttg.inference import is_elementwise, is_flexible
from deuteron.ir.types import byte_width_of, shape_of
from deuteron.layout.conversion import SharedRoute, plan
from deuteron.layout.linear import LANE, REGISTER, LinearLayout
from deuteron.layout.shared_access import Offsets
from deuteron.passes.gpu.layouts.anchors import contiguous_order
from deuteron.passes.gpu.layouts.homes import Homes
from deuteron.passes.gpu.rings.buffered_loads import DOTS, has_dots, stages_of

# Accesses for one of the coalesced layout: a conversion stores and loads in shared memory instead, and threads wait for
# each other, which counts as so many more. On an H200 experts whose threads load 8 numbers of rows, of which both rows
# and masks were converted twice, took 0.95 of the time; 8 in the place of one conversion made a convolution take 1.18.
ACCESSES, WAIT = 3, 4
# Accesses in a loop without dots for the shared memory of a conversion. With 16 L1 distances took 1.45 of the time.
MOST_IN_LOOPS = 8
SECTORS = 128  # bytes that the lanes of a warp read together, or all there are
SECTOR = SECTORS // 4  # bytes that come from memory together

# The layouts in which an op needs a value.
Demanded = Callable[[Operation, SSAValue], list[LinearLayout]]


def loads_in_place(
    func: FuncOp, homes: Homes, demanded: Demanded, info: AxisInfoAnalysis
) -> dict[LoadOp, LinearLayout | None]:
    """The layouts that such loads are to have; None: each in which they are needed."""
    found: dict[LoadOp, LinearLayout | None] = {}
    seen: set[Operation] = set()
    for load in nested_ops(func, LoadOp):
        if load in seen or homes.get(load.result) is None:
            continue
        members = computed_with(load.result, homes)
        seen.update(members)
        wanted = _wanted_outside(members, demanded)
        others = [layout for layout in wanted if layout != homes.get(load.result)]
        loads = [member for member in members if isinstance(member, LoadOp)]
        is_once = not any(any(loops_around(one)) for one in loads)
        if len(wanted) > 1 and not (is_once and all(map(homes.repeated_loads.are_right, loads))):
            continue
        saved = {layout: wanted[layout] if is_once else 1 for layout in others}
        if others and all(_pays(one, homes, *other, info) for one in loads for other in saved.items()):
            found.update(dict.fromkeys(loads, next(iter(wanted)) if len(wanted) == 1 else None))
    return found


def computed_with(value: SSAValue, homes: Homes) -> dict[Operation, None]:
    """The op that gives a value, what elementwise ops make of it at home, and all else that these are made of."""
    home, members, pending = homes.get(value), {value.owner: None}, [value.owner]
    while pending:
        op = pending.pop()
        users = [use.operation for use in op.results[0].uses]
        made = [user for user in users if _is_elementwise(user) and homes.get(user.results[0]) == home]
        sources = [] if isinstance(op, LoadOp) else [o.owner for o in op.operands if homes.get(o) == home]
        fresh = [one for one in dict.fromkeys([*made, *sources]) if one not in members]
        members.update(dict.fromkeys(fresh))
        pending += [one for one in fresh if is_loaded_or_elementwise(one)]
    return members


def is_loaded_or_elementwise(op: object) -> bool:
    return isinstance(op, LoadOp) or _is_elementwise(op)


def _is_elementwise(op: object) -> bool:
    return isinstance(op, Operation) and is_flexible(op) and is_elementwise(op)


def _wanted_outside(members: dict[Operation, None], demanded: Demanded) -> Counter[LinearLayout]:
    """In which layouts others need how many of these; none where one is no load and not elementwise, or a
    factor of a dot.
    """
    if not all(is_loaded_or_elementwise(one) for one in members):
        return Counter()
    uses = [use for op in members for use in op.results[0].uses if use.operation not in members]
    if any(use.operation.name in DOTS and use.index < 2 for use in uses):
        return Counter()
    layouts = ({*demanded(use.operation, use.operation.operands[use.index])} for use in uses)
    return Counter(layout for some in layouts for layout in some)


def _pays(load: LoadOp, homes: Homes, wanted: LinearLayout, conversions: int, info: AxisInfoAnalysis) -> bool:
    """Whether it costs less than so many conversions, and may be done in another layout: addresses and masks are
    computed wherever they are needed, and it is not copied into shared memory for a dot; in a loop of dots, so is what
    threads exchange.
    """
    coalesced = homes.get(load.result)
    may_move = not load.is_volatile.value.data and all(homes.get(operand) is None for operand in load.operands)
    if not may_move or _may_be_copied(load, homes):
        return False
    loops = list(loops_around(load))
    moves = _num_moves(load, coalesced, wanted, info) if loops and not any(map(has_dots, loops)) else 0
    saved = max((ACCESSES - 1) * _num_accesses(load, coalesced, info), moves) + WAIT * conversions
    if _num_accesses(load, wanted, info) > _num_accesses(load, coalesced, info) + saved:
        return False
    if _reads_neighbours(load, wanted, info) and (loops or not _is_scattered(load, info)):
        return True
    if any(map(has_dots, loops)) or coalesced.in_size(REGISTER) > 1:
        return False
    return _num_sectors(load, wanted, info) <= conversions * _num_sectors(load, coalesced, info)


def _may_be_copied(load: LoadOp, homes: Homes) -> bool:
    """Ahead, for a dot, from where it is then loaded in any layout."""
    loops = loops_around(load) if load.result in homes.fed_to_dots else ()
    return any(stages_of(loop, homes.num_stages) > 1 for loop in loops)


def _num_accesses(load: LoadOp, layout: LinearLayout, info: AxisInfoAnalysis) -> int:
    return len(load_accesses(load, layout, info))


def _num_moves(load: LoadOp, coalesced: LinearLayout, wanted: LinearLayout, info: AxisInfoAnalysis) -> int:
    """The stores and loads in shared memory of a conversion that goes there, up to MOST_IN_LOOPS, where a warp reads no
    more sectors without it.
    """
    size = byte_width_of(load.result.type)
    route = plan(coalesced, wanted, 8 * size)
    if not isinstance(route, SharedRoute) or _num_sectors(load, wanted, info) > _num_sectors(load, coalesced, info):
        return 0
    sides = (Offsets.of(side, route.scratch, size) for side in (coalesced, wanted))
    moves = sum(max(size << len(side.registers), side.vector_bytes) // side.vector_bytes for side in sides)
    return min(moves, MOST_IN_LOOPS)


def _num_sectors(load: LoadOp, layout: LinearLayout, info: AxisInfoAnalysis) -> int:
    """That a warp reads, access by access, if only neighbours along one dimension share them."""
    axis = contiguous_order(info.of(load.ptr), layout.shape)[0]
    held = max(SECTOR // byte_width_of(load.result.type), 1) if info.of(load.ptr).contiguity[axis] > 1 else 1
    sectors = 0
    for first, _ in load_accesses(load, layout, info):
        places = [layout(**{REGISTER: first, LANE: lane}) for lane in range(layout.in_size(LANE))]
        sectors += len({(*place[:axis], place[axis] // held, *place[axis + 1 :]) for place in places})
    return sectors


def _is_scattered(load: LoadOp, info: AxisInfoAnalysis) -> bool:
    """Whether each element is known to be at a distance from the one before it, such as the tap of a channel. Of one
    that is not known, as where columns wrap around, it is most often the next: life had 0.87 of its speed so.
    """
    axis = contiguous_order(info.of(load.ptr), shape_of(load.result.type))[0]
    known = info.distances(load.ptr, axis, 2)
    return known is not None and abs(known.distances[1] - known.distances[0]) > byte_width_of(load.result.type)


def _reads_neighbours(load: LoadOp, layout: LinearLayout, info: AxisInfoAnalysis) -> bool:
    """Whether registers and lanes of a warp hold neighbours in memory: as many as make whole sectors."""
    axis = contiguous_order(info.of(load.ptr), layout.shape)[0]
    held = {*layout.of(REGISTER), *layout.of(LANE)}
    count = 1
    while tuple(count if a == axis else 0 for a in range(len(layout.shape))) in held:
        count *= 2
    return count == layout.shape[axis] or count * byte_width_of(load.result.type) >= SECTORS
