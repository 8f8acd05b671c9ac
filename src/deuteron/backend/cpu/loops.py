"""Emits a loop nest: loops over its shape, the innermost over vectors, with all roots computed in the body.

    Nest((64, 128), [Keep(e), ReduceRoot(s, axis=1)])

    for i in 0..64:
        s0 = s1 = s2 = s3 = 0                       vector accumulators, several to hide the latency of an addition
        for j in 0..128 step 4 * 16:
            e0 = ...; s0 += e0; scratch[i, j] = e0      four times
        s[i] = sum of the lanes of s0 + s1 + s2 + s3

A dimension that is reduced but not vectorised becomes the innermost loop. At an index all roots are computed before
any is written, so that a root may overwrite what another one reads there.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

from xdsl.ir import Operation, SSAValue

from deuteron.backend.cpu.algebra import as_vector, of_value
from deuteron.backend.cpu.context import AxisIndex, Context, NestState, Runs
from deuteron.backend.cpu.emitter import OpenLoop
from deuteron.backend.cpu.fragment import Axis, Fragment, one_element
from deuteron.backend.cpu.memory.distances import are_equally_far_apart, find_runs
from deuteron.backend.cpu.memory.element_access import has_masked_moves
from deuteron.backend.cpu.memory.elements import memory_type
from deuteron.backend.cpu.memory.formats import from_memory, stored
from deuteron.backend.cpu.memory.places import is_packed, write_packed, write_place
from deuteron.backend.cpu.memory.transpose import exchange_lanes, exchange_words
from deuteron.backend.cpu.parts import MIN_PARTED, MIN_PARTED_COMPUTED, Part, Stride, knowing, parts_of
from deuteron.backend.cpu.plan.indices import Index
from deuteron.backend.cpu.plan.items import Nest
from deuteron.backend.cpu.plan.roots import Keep, LoopRoot, ReduceRoot, Root, RowRoot
from deuteron.backend.cpu.plan.vectors.axes import ELEMENTS, Vectorisation, choose_axis
from deuteron.backend.cpu.plan.vectors.limits import Limits, find_limits
from deuteron.backend.cpu.plan.vectors.quotients import Quotients
from deuteron.backend.cpu.plan.vectors.segments import Segments
from deuteron.backend.cpu.rules.loop_roots import emit_loop_root
from deuteron.backend.cpu.rules.memory import store_tile
from deuteron.backend.cpu.rules.reduce import Reduction
from deuteron.backend.cpu.rules.single_rows import RowSums
from deuteron.backend.cpu.segments import are_long, open_segments
from deuteron.backend.llvm.types import Value, byte_width, const, width
from deuteron.backend.rule_errors import guarded
from deuteron.cached_property import cached_property
from deuteron.ir.types import element_type_of

MAX_UNROLL = 4  # vectors of an iteration; not measured


class NestLoops:
    """The loops of one nest while it is emitted. `entries`: what runs along each dimension, once for each vector."""

    def __init__(self, ctx: Context, nest: Nest, vectorisation: Vectorisation | None = None):
        self.ctx, self.nest = ctx, nest
        self.vectorisation = vectorisation or _choose(ctx, nest)
        self._loops: list[list[OpenLoop]] = []
        self._axes: list[list[Axis | None]] = [[None] for _ in nest.shape]
        self._lanes: dict[tuple[Axis, int | None], Axis] = {}
        ctx.nest_state = NestState(ctx.emitter.depth)

    @property
    def indices(self) -> list[AxisIndex]:
        """The indices that the body computes at, one for each vector."""
        count = max((len(entries) for entries in self._axes), default=1)
        return [tuple(entries[copy % len(entries)] for entries in self._axes) for copy in range(count)]

    @property
    def lines(self) -> list[AxisIndex]:
        """Where a block is read whose lanes and vectors are exchanged: a vector along the other dimension by lane."""
        chosen, first = self.vectorisation, list(self.indices[0])
        along, across = first[chosen.axis], first[chosen.across]
        first[chosen.across] = self.vector_from(across, chosen.num_across)
        rest = first[chosen.axis + 1 :]
        return [(*first[: chosen.axis], self.one_of(along, lane), *rest) for lane in range(chosen.lanes)]

    @property
    def order(self) -> list[int]:
        """Dimensions, outermost first, without the one that is reduced; those of blocks come last."""
        chosen, axes = self.vectorisation, range(len(self.nest.shape))
        inner = (chosen.across, chosen.axis) if chosen.turned else (chosen.axis,)
        ordered = [*(axis for axis in axes if axis not in inner), *(axis for axis in inner if axis is not None)]
        return [axis for axis in ordered if axis != self.nest.reduced_axis]

    @property
    def _computes(self) -> bool:
        """Whether it does more than move elements."""
        reads = self.ctx.plan.reader.reads
        return self.nest.reduced_axis is not None or any(reads(root).computes_floats for root in self.nest.roots)

    def parts(self, axis: int) -> list[Part | None]:
        """The parts of the loop over a dimension, which is about to be opened; None: all of it."""
        parted, limits = self._parted
        if axis != parted or limits is None:
            return [None]
        chosen, extent, most = self.vectorisation, self.nest.shape[axis], self.stride_along(axis)
        first = [entries[0] for entries in self._axes]
        first[axis] = first[chosen.axis] = Axis(const("i32", 0), 1, self.ctx.nest_state.level)
        least, others = most, chosen.num_across
        if self._sums_in_one(axis):
            first[self.nest.reduced_axis], others = first[axis], self.nest.shape[self.nest.reduced_axis]
        elif axis == chosen.across:
            others = self.nest.shape[chosen.axis]
        else:
            least = Stride(chosen.register_lanes, 1)
        return [*parts_of(self.ctx, limits, extent, most, least, lambda index: _at(index, first), others)]

    @cached_property
    def _parted(self) -> tuple[int | None, Limits | None]:
        """The dimension whose loop runs in parts, if one does, and the limits along it."""
        chosen = self.vectorisation
        axes = (chosen.axis, chosen.across) if chosen.turned else (chosen.axis,)
        for axis in axes if chosen.is_whole and chosen.axis is not None else ():
            limits = find_limits(self.ctx.plan, self.nest, axis, self._other(axis)) if self._is_long(axis) else None
            if limits is not None:
                return axis, limits
        return None, None

    def _other(self, axis: int) -> int | None:
        """The dimension, beside one whose loop runs in parts, all of which is within its limits in the first part: the
        other one of blocks, or that which sums of one iteration go along.
        """
        chosen = self.vectorisation
        if self._sums_in_one(axis):
            return self.nest.reduced_axis
        return chosen.axis if axis == chosen.across else chosen.across

    def _is_long(self, axis: int) -> bool:
        least = 1 if self._sums_in_one(axis) else MIN_PARTED_COMPUTED if self._computes else MIN_PARTED
        return self.nest.shape[axis] >= least * self.stride_along(axis).elements

    def _sums_in_one(self, axis: int) -> bool:
        """Whether one iteration along a dimension, of several vectors, does all sums along another, in a loop."""
        chosen, extent = self.vectorisation, self.nest.shape[axis]
        is_inner = self.nest.reduced_axis not in (None, axis) and chosen.across is None
        return is_inner and extent == self.stride_along(axis).elements

    def stride_along(self, axis: int) -> Stride:
        """What an iteration along a dimension does."""
        return Stride(self.vectorisation.lanes if axis == self.vectorisation.axis else 1, self.copies_along(axis))

    @property
    def num_across(self) -> int:
        """How many columns are computed together whose lanes are added up."""
        return self.vectorisation.num_across if self.vectorisation.reduces else 1

    def in_part(self, part: Part | None) -> AbstractContextManager[None]:
        """Evaluate with what is known in a part, whose loop is open."""
        if part is None:
            return nullcontext()
        known_at = [*self.indices, *self.lines] if self.vectorisation.turned else self.indices
        return knowing(self.ctx, part, lambda index: [_at(index, entries) for entries in known_at])

    def open(self, axis: int, carried: Sequence[Value] = (), part: Part | None = None) -> OpenLoop | None:
        """Open the loop over a dimension; None where one iteration does it."""
        if part is not None:
            return self._open_part(axis, carried, part)
        extent, chosen = self.nest.shape[axis], self.vectorisation
        if axis == chosen.axis and chosen.segments:
            self._open_segments(axis)
            return None
        lanes, copies = self.stride_along(axis)
        emitter, loop, start = self.ctx.emitter, None, const("i32", 0)
        if extent > lanes * copies:
            loop = emitter.open_loop(start, const("i32", extent), const("i32", lanes * copies), carried, f"d{axis}")
            start = loop.index
        self._loops.append([loop] if loop else [])
        if extent > 1:
            self._axes[axis] = [self._entry(start, copy * lanes, lanes) for copy in range(copies)]
        return loop

    def copies_along(self, axis: int, part: Part | None = None) -> int:
        """How many vectors, or elements, along a dimension are computed at a time."""
        if part is not None:
            return part.stride.copies
        chosen = self.vectorisation
        if axis == chosen.across:
            return chosen.num_across
        return chosen.unroll if axis == chosen.axis else 1

    def _open_part(self, axis: int, carried: Sequence[Value], part: Part) -> OpenLoop:
        lanes, copies = part.stride
        step = const("i32", lanes * copies)
        loop = self.ctx.emitter.open_part(part.start, part.stop, step, carried, f"d{axis}")
        self._loops.append([loop])
        self._axes[axis] = [self._entry(loop.index, copy * lanes, lanes) for copy in range(copies)]
        return loop

    def _open_segments(self, axis: int) -> None:
        def at(index: Index, entry: Axis) -> AxisIndex:
            entries = [own[0] for own in self._axes]
            entries[axis] = entry
            return _at(index, entries)

        chosen, extent = self.vectorisation, self.nest.shape[axis]
        limits = find_limits(self.ctx.plan, self.nest, axis)
        known = limits.limits if limits else ()
        loops, entry = open_segments(self.ctx, chosen.segments, known, extent, chosen.lanes, at)
        self._loops.append(loops)
        self._axes[axis] = [entry]

    def _entry(self, start: Value, offset: int, lanes: int) -> Axis:
        """The lanes from `start + offset` on."""
        level = self.ctx.emitter.depth
        if start.is_constant:
            return Axis(const("i32", offset), lanes, self.ctx.nest_state.level)
        b = self.ctx.emitter.innermost()
        return Axis(b.add(start, const("i32", offset), "nuw nsw") if offset else start, lanes, level)

    def one_of(self, axis: Axis, lane: int) -> Axis:
        """One of the lanes of an entry; the same object every time: indices are compared."""
        if (axis, lane) not in self._lanes:
            start, b = axis.start, self.ctx.emitter.at(axis.level)
            if start.is_constant:
                start = const("i32", int(start.text) + lane)
            elif lane:
                start = b.add(start, const("i32", lane), "nuw nsw")
            self._lanes[axis, lane] = Axis(start, 1, axis.level)
        return self._lanes[axis, lane]

    def vector_from(self, axis: Axis, lanes: int) -> Axis:
        """Lanes from an entry of one element on; the same object every time."""
        return self._lanes.setdefault((axis, None), Axis(axis.start, lanes, axis.level))

    def close(self, carried: Sequence[Value] = ()) -> list[Value]:
        """Close what was opened last; returns the carried values after it."""
        values = list(carried)
        for loop in reversed(self._loops.pop()):
            values = self.ctx.emitter.close_loop(loop, values)
        return values


def emit_nest(ctx: Context, nest: Nest) -> None:
    """Emit the loops of a nest; twice where they rely on something that is known before them."""
    vectorisation = _choose(ctx, nest)
    if vectorisation.quotients.guards:
        _emit_two(ctx, nest, _all_hold(ctx, nest, vectorisation.quotients), vectorisation, ELEMENTS)
    elif vectorisation.segments and vectorisation.segments.unknown:
        condition = _are_long(ctx, nest, vectorisation.segments)
        _emit_two(ctx, nest, condition, vectorisation, replace(vectorisation, segments=None))
    elif vectorisation.neighbours:
        condition = _are_neighbours(ctx, nest, vectorisation)
        _emit_two(ctx, nest, condition, vectorisation, vectorisation.otherwise)
    else:
        _emit_loops(ctx, nest, vectorisation, runs={})


def _emit_two(ctx: Context, nest: Nest, condition: Value, first: Vectorisation, second: Vectorisation) -> None:
    """The loops of a nest in two ways: the first where a condition holds."""
    emitter = ctx.emitter
    b = emitter.innermost()
    entries, end = (b.block("regular"), b.block("irregular")), b.block("end")
    for entry, chosen in zip(entries, (first, second), strict=True):
        emitter.enter(entry)
        runs = _find_runs(ctx, nest, first) if chosen is first.otherwise else {}
        _emit_loops(ctx, nest, chosen, runs)
        emitter.innermost().br(end)
        emitter.leave()
    b = emitter.innermost()
    b.cond_br(condition, *entries)
    b.position(end)


def _all_hold(ctx: Context, nest: Nest, quotients: Quotients) -> Value:
    """Whether all guards of a nest hold."""
    conditions = []
    with ctx.evaluating_afresh():
        for guard in sorted(quotients.guards, key=lambda guard: guard.most):
            first = ctx.evaluate(guard.value, _first_of(ctx, guard.index)).value
            conditions.append(ctx.emitter.innermost().icmp("ule", first, const(first.type, guard.most)))
    return functools.reduce(ctx.emitter.innermost().and_, conditions)


def _are_long(ctx: Context, nest: Nest, segments: Segments) -> Value:
    """Whether the segments of a nest are long enough."""
    with ctx.evaluating_afresh():
        return are_long(ctx, segments, functools.partial(_first_of, ctx))


def _are_neighbours(ctx: Context, nest: Nest, chosen: Vectorisation) -> Value:
    """Whether the lanes of the loads that are taken to be of neighbours are."""
    axis = chosen.loaded_axis
    conditions = [
        are_equally_far_apart(
            ctx, load.ptr, _along(nest, axis, index), nest.shape[axis], const("i64", _loaded_bytes(load))
        )
        for load, index in chosen.neighbours.items()
    ]
    return functools.reduce(ctx.emitter.innermost().and_, conditions)


def _find_runs(ctx: Context, nest: Nest, chosen: Vectorisation) -> dict[Operation, Runs]:
    """How the lanes lie of the loads that were taken to be of neighbours, where they are loaded under masks."""
    axis = chosen.loaded_axis
    if chosen.otherwise.axis != axis:
        return {}
    return {
        load: find_runs(ctx, load.ptr, _along(nest, axis, index), nest.shape[axis], _loaded_bytes(load))
        for load, index in chosen.neighbours.items()
        if has_masked_moves(ctx.target, _loaded_bytes(load))
    }


def _along(nest: Nest, axis: int, index: Index) -> Callable[[Axis], AxisIndex]:
    """The index of elements along a dimension, of the first ones along the others."""
    entries: list[Axis] = [one_element(0)] * len(nest.shape)
    return lambda entry: _at(index, [*entries[:axis], entry, *entries[axis + 1 :]])


def _loaded_bytes(load: Operation) -> int:
    return byte_width(memory_type(element_type_of(load.result.type)))


def _first_of(ctx: Context, index: Index) -> AxisIndex:
    """The first element of a tile in a nest that has not begun."""
    return tuple(Axis(const("i32", 0), 1, ctx.nest_state.level) if isinstance(entry, int) else entry for entry in index)


def _choose(ctx: Context, nest: Nest) -> Vectorisation:
    return choose_axis(ctx.plan, nest, ctx.target.vector_bits // 8, MAX_UNROLL)


def _emit_loops(ctx: Context, nest: Nest, vectorisation: Vectorisation, runs: Mapping[Operation, Runs]) -> None:
    loops = NestLoops(ctx, nest, vectorisation)
    ctx.nest_state.vectorisation, ctx.nest_state.runs = vectorisation, runs
    _emit_along(loops, loops.order)
    ctx.leave_nest()


def _emit_along(loops: NestLoops, axes: Sequence[int], around: Part | None = None) -> None:
    """The loops over some dimensions, and what is inside of them; `around`: the part of a loop that they are in."""
    if not axes:
        with loops.in_part(around):
            _emit_inner(loops, around)
        return
    for part in loops.parts(axes[0]):
        loops.open(axes[0], part=part)
        _emit_along(loops, axes[1:], part or around)
        loops.close()


def _emit_inner(loops: NestLoops, around: Part | None) -> None:
    """What is inside of all loops but that along the dimension which is reduced."""
    reductions = [root for root in loops.nest.roots if isinstance(root, ReduceRoot)]
    if reductions:
        _emit_reduced(loops, reductions, around)
    else:
        _emit_body(loops, [])


def _emit_reduced(loops: NestLoops, roots: list[ReduceRoot], around: Part | None) -> None:
    """The innermost loop, along the reduced dimension, in its parts, and what comes of it."""
    ctx, axis = loops.ctx, loops.nest.reduced_axis
    vectorised = loops.vectorisation.axis == axis
    results_at = loops.indices
    reductions = [_REDUCTIONS[type(root)](ctx, root, loops.vectorisation.lanes) for root in roots]
    for part in loops.parts(axis):
        copies = loops.copies_along(axis, part) * loops.num_across if vectorised else len(results_at)
        loop = loops.open(axis, [value for one in reductions for value in one.before(copies)], part)
        carried = iter(loop.carried if loop else ())
        for reduction in reductions:
            reduction.enter(loop, carried)
        with loops.in_part(part or around):
            _emit_body(loops, reductions)
        after = iter(loops.close([value for reduction in reductions for value in reduction.values()]))
        for reduction in reductions:
            reduction.leave(after)
    for reduction in reductions:
        ctx.locate(reduction.root.op)
        reduction.finish(axis, vectorised, results_at)


def _emit_body(loops: NestLoops, reductions: list[Reduction]) -> None:
    """Compute all roots at the indices of the body, then write."""
    ctx, roots = loops.ctx, [root for root in loops.nest.roots if not isinstance(root, LoopRoot)]
    for value, index in loops.vectorisation.turned:
        _turn(loops, value, index)
    if loops.nest.loops:
        _emit_loop_roots(loops)
    by_root = {reduction.root: reduction for reduction in reductions}
    rows: dict[Keep, list[Fragment]] = {}
    for copy, index in enumerate(loops.indices):
        writes: list[tuple[Root, Callable[[], None]]] = []
        for root in roots:
            fragments = [_source(ctx, root, source, index) for source in root.sources]
            if isinstance(root, ReduceRoot):
                by_root[root].combine(copy, index, fragments)
            elif isinstance(root, Keep) and is_packed(root.place):
                rows.setdefault(root, []).append(fragments[0])
            elif isinstance(root, Keep):
                writes.append((root, _writer(ctx, root, index, fragments[0])))
            else:
                writes.append((root, _storer(ctx, root, index, fragments)))
        for root, write in writes:
            ctx.locate(root.op)
            write()
    for root, fragments in rows.items():
        ctx.locate(root.op)
        write_packed(ctx, root.place, loops.indices[0], fragments)


def _emit_loop_roots(loops: NestLoops) -> None:
    """The loops that run at the indices of the body, in the order of the roots: one may read what is kept before it."""
    ctx = loops.ctx
    for root in loops.nest.roots:
        if isinstance(root, LoopRoot):
            emit_loop_root(ctx, root, loops.indices)
        elif isinstance(root, Keep) and root.value is not None:
            for index in loops.indices:
                _source(ctx, root, root.sources[0], index)


def _turn(loops: NestLoops, value: SSAValue, index: Index) -> None:
    """Read a tile as vectors along the other dimension, and exchange their lanes: what the body computes with then."""
    ctx, count = loops.ctx, loops.vectorisation.num_across
    kept = [root.value for root in loops.nest.roots if isinstance(root, Keep) and root.value is not None]
    emitter = ctx.emitter
    read = (ctx.evaluate_before(kept, value, _at(index, entries)) for entries in loops.lines)
    lines = [as_vector(emitter, fragment, count) for fragment in read]
    for at, column in zip(loops.indices, _columns(ctx, value, lines), strict=True):
        ctx.nest_state.tiles[value, _at(index, at)] = of_value(column, emitter.depth)


def _columns(ctx: Context, value: SSAValue, lines: list[Value]) -> list[Value]:
    """Of a block of a tile, of which there are more lines than each has lanes if it is narrow in memory."""
    b, type = ctx.emitter.innermost(), element_type_of(value.type)
    if len(lines) == width(lines[0].type):
        return exchange_lanes(b, lines)
    bits = [stored(b, line, type, ctx.target) for line in lines]
    return [from_memory(b, column, type, ctx.target) for column in exchange_words(b, bits)]


def _at(index: Index, entries: Sequence[Axis | None]) -> AxisIndex:
    """The index of a tile where its nest is at these entries."""
    return tuple(entries[axis] if isinstance(axis, int) else axis for axis in index)


def _source(ctx: Context, root: Root, source: SSAValue, index: AxisIndex) -> Fragment:
    if root.computed is source:
        return ctx.evaluate_before((source,), source, index)
    return ctx.evaluate(source, index)


def _writer(ctx: Context, root: Keep, index: AxisIndex, fragment: Fragment) -> Callable[[], None]:
    return lambda: write_place(ctx, root.place, index, fragment)


def _storer(ctx: Context, root: Root, index: AxisIndex, fragments: list[Fragment]) -> Callable[[], None]:
    return lambda: guarded(root.op, store_tile, ctx, root.op, index, *fragments)


_REDUCTIONS = {ReduceRoot: Reduction, RowRoot: RowSums}
