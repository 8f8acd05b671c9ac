"""tt.scan, from the lowest bits of the position along the axis to the highest: registers, lanes and warps take turns.

A block is what lies side by side along the axis, as far as it has been scanned. Each thread knows its total, and of its
own elements of the block, run by run, what they add up to and what comes before the run in the block:

    elements      a  b | c  d           two lanes, each with a run of two
    registers     a  ab | c  cd         one element after the other; totals ab and cd
    lanes                               before the second run ab; total abcd
    in the end    a  ab | abc  abcd     what comes before a run is joined with each of its elements, once

Lanes take the total of those before them by shuffles, in as many steps as they have bits. Warps store theirs in shared
memory and read those of all. `reverse` goes from the end to the start. Replicas in registers are scanned once.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Operation

from deuteron.analysis.along_axis import Phase, scan_phases
from deuteron.analysis.shared_memory.scratch import scan_offsets
from deuteron.backend.gpu.context import Context, Rule
from deuteron.backend.gpu.elements import bits_type, from_bits, to_bits
from deuteron.backend.gpu.fragment import Fragment, positions, register_at
from deuteron.backend.gpu.rules.combine import Group, combine
from deuteron.backend.gpu.shuffles import fetch
from deuteron.backend.gpu.threads import owned_registers
from deuteron.backend.llvm.types import Value, const
from deuteron.ir.types import byte_width_of
from deuteron.layout.linear import LANE, REGISTER, WARP, log2


@dataclass(frozen=True)
class _Before:
    """What comes before a run, where a condition holds (None: always); elsewhere nothing does."""

    group: Group
    condition: Value | None = None


@dataclass(frozen=True)
class _Run:
    """Registers whose elements are scanned among themselves."""

    registers: tuple[int, ...]
    before: _Before | None = None


@dataclass(frozen=True)
class _Block:
    """The total of a block, and the thread's own runs in it."""

    total: Group
    runs: tuple[_Run, ...]


def scan(ctx: Context, op: Operation, *tiles: Fragment) -> list[Fragment]:
    state = _Scan(ctx, op, tiles)
    phases = scan_phases(tiles[0].layout, op.axis.value.data)
    exchanges = [phase for phase in phases if phase.in_name == WARP]
    for index, phase in enumerate(phases):
        if phase in exchanges[1:]:
            ctx.barrier()  # the exchange before has read what this one overwrites
        state.take(phase, is_last=index == len(phases) - 1)
    return state.results()


class _Scan:
    """The elements by register, and the blocks by the first register of each."""

    def __init__(self, ctx: Context, op: Operation, tiles: tuple[Fragment, ...]):
        self._ctx, self._op, self._layout = ctx, op, tiles[0].layout
        self._is_reverse, self._offsets = op.reverse.value.data, scan_offsets(op)
        columns = list(zip(*(tile.registers for tile in tiles), strict=True))
        self._elements: dict[int, Group] = {r: list(columns[r]) for r in owned_registers(self._layout)}
        self._blocks = {r: _Block(group, (_Run((r,)),)) for r, group in self._elements.items()}

    def take(self, phase: Phase, is_last: bool) -> None:
        """The total of a block is not needed after the last phase."""
        if phase.in_name == REGISTER:
            self._merge_registers(phase)
        elif phase.in_name == LANE:
            self._merge_lanes(phase, is_last)
        else:
            self._merge_warps(phase)

    def results(self) -> list[Fragment]:
        for run in (run for block in self._blocks.values() for run in block.runs if run.before is not None):
            for register in run.registers:
                self._elements[register] = self._after(run.before, self._elements[register])
        first = register_at(self._layout)
        groups = [self._elements[first[place]] for place in positions(self._layout)]
        return [Fragment(self._layout, column) for column in zip(*groups, strict=True)]

    def _combine(self, first: Group, second: Group) -> Group:
        return combine(self._ctx, self._op.combine.block, first, second)

    def _select(self, condition: Value, first: Group, second: Group) -> Group:
        return [self._ctx.b.select(condition, x, y) for x, y in zip(first, second, strict=True)]

    def _after(self, before: _Before, group: Group) -> Group:
        joined = self._combine(before.group, group)
        return joined if before.condition is None else self._select(before.condition, joined, group)

    def _in_order(self, masks: list[int]) -> list[int]:
        """The sets of bits, one for each place along the axis; the bits ascend."""
        places = range(1 << len(masks))
        ascending = [sum(mask for i, mask in enumerate(masks) if place >> i & 1) for place in places]
        return ascending[::-1] if self._is_reverse else ascending

    def _preceded(self, run: _Run, first: _Before) -> _Run:
        """With more in front of what comes before a run."""
        then = run.before
        if then is None:
            return _Run(run.registers, first)
        group, condition = self._combine(first.group, then.group), None
        if then.condition is not None:
            group = self._select(then.condition, group, first.group)
        if first.condition is not None:
            group = self._select(first.condition, group, then.group)
            both = (first.condition, then.condition)
            condition = None if then.condition is None else self._ctx.b.or_(*both)
        return _Run(run.registers, _Before(group, condition))

    # -- registers ---

    def _merge_registers(self, phase: Phase) -> None:
        offsets = self._in_order([1 << bit for bit in phase.bits])
        firsts = [register for register in self._blocks if not register & phase.mask]
        self._blocks = {first: self._chain([self._blocks[first | offset] for offset in offsets]) for first in firsts}

    def _chain(self, blocks: list[_Block]) -> _Block:
        whole, *rest = blocks
        for block in rest:
            whole = self._extend(whole, block) if block.runs[0].before is None else self._append(whole, block)
        return whole

    def _extend(self, whole: _Block, block: _Block) -> _Block:
        """Before threads have exchanged anything a block is one run, and the last of its elements is its total."""
        (run,), (added,) = whole.runs, block.runs
        for register in added.registers:
            self._elements[register] = self._combine(whole.total, self._elements[register])
        last = self._elements[added.registers[-1]]
        return _Block(last, (_Run((*run.registers, *added.registers)),))

    def _append(self, whole: _Block, block: _Block) -> _Block:
        runs = [self._preceded(run, _Before(whole.total)) for run in block.runs]
        return _Block(self._combine(whole.total, block.total), (*whole.runs, *runs))

    # -- lanes ---

    def _merge_lanes(self, phase: Phase, is_last: bool) -> None:
        """Each lane adds the total of the lanes before it to its own, half of a block after the other."""
        b, lane = self._ctx.b, self._ctx.threads.lane
        totals = [block.total for block in self._blocks.values()]
        for bit in phase.bits:
            below = phase.mask & (1 << bit) - 1
            kept = b.and_(lane, const("i32", ~(below | 1 << bit)))
            nearest = b.or_(kept, const("i32", 1 << bit if self._is_reverse else below))
            is_after = self._is_set(lane, 1 << bit)
            others = self._fetch(totals, nearest)
            pairs = zip(others, totals, strict=True)
            totals = [self._select(is_after, self._combine(other, total), total) for other, total in pairs]
        before = self._fetch(totals, self._lane_before(phase.mask))
        if not is_last:
            totals = self._fetch(totals, self._last_lane(phase.mask))
        self._set(totals, before, self._is_not_first(lane, phase.mask))

    def _is_set(self, number: Value, bit: int) -> Value:
        """Whether the bit says that a thread comes after those without it; in reverse, with it."""
        b = self._ctx.b
        return b.icmp("eq" if self._is_reverse else "ne", b.and_(number, const("i32", bit)), const("i32", 0))

    def _is_not_first(self, number: Value, mask: int) -> Value:
        b = self._ctx.b
        return b.icmp("ne", b.and_(number, const("i32", mask)), const("i32", mask if self._is_reverse else 0))

    def _last_lane(self, mask: int) -> Value:
        b, lane = self._ctx.b, self._ctx.threads.lane
        return b.and_(lane, const("i32", ~mask)) if self._is_reverse else b.or_(lane, const("i32", mask))

    def _lane_before(self, mask: int) -> Value:
        """The bits of the mask alone, taken for a number, less one; in reverse, one more."""
        b, lane = self._ctx.b, self._ctx.threads.lane
        if self._is_reverse:
            stepped = b.add(b.or_(lane, const("i32", ~mask)), const("i32", 1))
        else:
            stepped = b.sub(b.and_(lane, const("i32", mask)), const("i32", 1))
        return b.or_(b.and_(stepped, const("i32", mask)), b.and_(lane, const("i32", ~mask)))

    def _fetch(self, groups: list[Group], lane: Value) -> list[Group]:
        ctx, columns = self._ctx, []
        for src, column in zip(self._op.srcs, zip(*groups, strict=True), strict=True):
            moved = fetch(ctx.b, ctx.isa, [to_bits(ctx.b, value, src.type) for value in column], lane)
            columns.append([from_bits(ctx.b, value, src.type) for value in moved])
        return [list(group) for group in zip(*columns, strict=True)]

    # -- warps ---

    def _merge_warps(self, phase: Phase) -> None:
        b, threads = self._ctx.b, self._ctx.threads
        masks = [1 << bit + log2(threads.warp_size) for bit in phase.bits]
        parts = self._in_order(masks)
        own, others = (b.and_(threads.index, const("i32", mask)) for mask in (sum(masks), ~sum(masks)))
        first, *rest = self._exchange([b.or_(others, const("i32", part)) for part in parts])
        totals, before = first, first
        for number, groups in enumerate(rest, 1):
            if number > 1:
                is_after = b.icmp("ule" if self._is_reverse else "uge", own, const("i32", parts[number]))
                pairs = zip(totals, before, strict=True)
                before = [self._select(is_after, total, group) for total, group in pairs]
            totals = [self._combine(total, group) for total, group in zip(totals, groups, strict=True)]
        self._set(totals, before, self._is_not_first(own, sum(masks)))

    def _exchange(self, threads: list[Value]) -> list[list[Group]]:
        """The totals of all blocks of each of these threads."""
        b, isa, srcs = self._ctx.b, self._ctx.isa, self._op.srcs
        for row, block in enumerate(self._blocks.values()):
            for operand, (src, value) in enumerate(zip(srcs, block.total, strict=True)):
                isa.store(b, [to_bits(b, value, src.type)], self._slot(operand, row, self._ctx.threads.index))
        self._ctx.barrier()

        def load(operand: int, row: int, thread: Value) -> Value:
            type = srcs[operand].type
            return from_bits(b, isa.load(b, bits_type(type), self._slot(operand, row, thread), 1)[0], type)

        rows, operands = range(len(self._blocks)), range(len(srcs))
        return [[[load(operand, row, thread) for operand in operands] for row in rows] for thread in threads]

    def _slot(self, operand: int, row: int, thread: Value) -> Value:
        """The address of a thread's total of an operand."""
        type = self._op.srcs[operand].type
        begin = self._offsets[operand] + row * byte_width_of(type) * self._ctx.threads.count
        return self._ctx.b.gep(bits_type(type), self._ctx.shared_pointer(self._op, begin), thread)

    def _set(self, totals: list[Group], before: list[Group], condition: Value) -> None:
        """New totals, and what comes before all that a thread has of each block."""
        columns = zip(self._blocks.items(), totals, before, strict=True)
        self._blocks = {
            first: _Block(total, tuple(self._preceded(run, _Before(group, condition)) for run in block.runs))
            for (first, block), total, group in columns
        }


RULES: dict[str, Rule] = {"tt.scan": scan}
