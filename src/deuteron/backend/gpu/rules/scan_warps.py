"""The totals of a scan that warps hold: each stores its own, all wait, and every thread takes those before its own.

    by threads    each thread loads the totals of all warps             a, a + b, (a + b) + c
    by lanes      each lane loads one, and lanes scan them              a, a + b, (a + b) + c  in lanes 0, 1, 2

By lanes where that is faster: where totals are many and the function takes long. A thread that has several blocks one
after the other behind its warps has them scanned at once then, if a warp has a lane for each total:

    block    0   0   1   1   2   2   3   3
    warp     0   1   0   1   0   1   0   1
    lane     0   1   2   3   4   5   6   7
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Operation

from deuteron.analysis.addresses.access_vectors import MAX_BYTES
from deuteron.analysis.along_axis import Phase, own_lanes
from deuteron.analysis.shared_memory.scratch import scan_offsets
from deuteron.analysis.shared_memory.warp_parts import LATENCY, SCHEDULERS, SHUFFLE_LATENCY
from deuteron.backend.gpu.context import Context
from deuteron.backend.gpu.elements import bits_type, from_bits, to_bits
from deuteron.backend.gpu.rules.combine import Group, combine, select
from deuteron.backend.gpu.rules.scan_lanes import LaneScan
from deuteron.backend.gpu.threads import Index
from deuteron.backend.llvm.types import Value, const
from deuteron.ir.types import byte_width_of
from deuteron.layout import f2
from deuteron.layout.linear import LANE, WARP, LinearLayout


@dataclass(frozen=True)
class Before:
    """What comes before a run, where a condition holds (None: always); elsewhere nothing does."""

    group: Group
    condition: Value | None = None


@dataclass(frozen=True)
class Scanned:
    """The total of blocks that follow one another, and what comes before the thread's part of each."""

    total: Group
    before: list[Before]


class WarpScan:
    """The scan of what the warps of a phase have, after other phases."""

    def __init__(self, ctx: Context, op: Operation, layout: LinearLayout, done: Sequence[Phase], phase: Phase):
        self._ctx, self._op, self._lanes, self._phase = ctx, op, LaneScan(ctx, op), phase
        self._layout, self._scanned = layout, sum(one.mask for one in done if one.in_name == LANE)
        self._own = own_lanes(layout, done)
        self._spare = [bit for bit in range(layout.in_bits(LANE)) if bit not in self._own]
        self._offsets = scan_offsets(op)

    def num_bits_of_lanes(self, num_blocks: int, num_following: int) -> int | None:
        """How many bits of a block's number lanes take with those of the warps; None where threads are to scan."""
        following = num_following if len(self._phase.bits) + num_following <= len(self._spare) else 0
        has_room = len(self._phase.bits) <= len(self._spare)
        return following if has_room and self._is_faster_by_lanes(num_blocks, num_following, following) else None

    def _is_faster_by_lanes(self, num_blocks: int, num_following: int, taken: int) -> bool:
        """In cycles: what one warp waits for, and what the instructions of all take from other programs."""
        ops, srcs, turns = len(self._op.combine.block.ops) - 1, len(self._op.srcs), self._ctx.num_warps / SCHEDULERS
        steps, warps = len(self._phase.bits) + taken, 1 << len(self._phase.bits)
        joins = warps - 1 + (num_following > 0)
        by_threads = (warps + (1 << num_following) - 2) * ops * LATENCY + turns * num_blocks * joins * (ops + srcs)
        waits = steps * ((ops + 1) * LATENCY + SHUFFLE_LATENCY) + SHUFFLE_LATENCY
        issued = (num_blocks >> taken) * steps * (ops + 2 * srcs) + num_blocks * srcs
        if taken < num_following:
            waits, issued = waits + (1 << num_following) * ops * LATENCY, issued + num_blocks * (ops + srcs)
        return waits + turns * issued < by_threads

    def by_threads(self, totals: list[Group]) -> list[Scanned]:
        """Each block alone."""
        self._store(totals)
        return [self._in_turn(self._load_parts(row)) for row in range(len(totals))]

    def _in_turn(self, parts: list[Group]) -> Scanned:
        b, ctx, is_reverse = self._ctx.b, self._ctx, self._lanes.is_reverse
        own = b.and_(ctx.threads.warp, const("i32", self._phase.mask))
        numbers = combinations([1 << bit for bit in self._phase.bits])
        (_, total), *rest = list(zip(numbers, parts, strict=True))[:: -1 if is_reverse else 1]
        before = total
        for count, (number, part) in enumerate(rest):
            if count:
                is_after = b.icmp("ule" if is_reverse else "uge", own, const("i32", number))
                before = select(ctx, is_after, total, before)
            total = combine(ctx, self._op.combine.block, total, part)
        return Scanned(total, [Before(before, self._lanes.is_not_first(own, self._phase.mask))])

    def by_lanes(self, totals: list[Group], chains: list[list[int]], is_last: bool) -> list[Scanned]:
        """Chains of blocks, each as places among the totals; nobody needs the totals of the last phase."""
        self._store(totals)
        bits = self._spare[: len(self._phase.bits) + len(chains[0]).bit_length() - 1]
        warp_columns, block_columns = self._lane_columns(bits)
        groups = self._lanes.inclusive([self._load_lane(chain, bits) for chain in chains], bits)
        own = self._ctx.threads.image([], self._of_parts(warp_columns))
        places, mask = combinations(block_columns), sum(warp_columns) + sum(block_columns)
        columns = [self._lanes.fetch(groups, self._lanes.before(own.at(self._ctx.b, p), mask)) for p in places]
        is_not_first = self._lanes.is_not_first(self._ctx.threads.warp, self._phase.mask)
        conditions = [is_not_first, *[None] * (len(places) - 1)][:: -1 if self._lanes.is_reverse else 1]
        ends = groups if is_last else self._lanes.fetch(groups, self._lanes.last(mask))
        return [
            Scanned(end, [Before(*pair) for pair in zip(before, conditions, strict=True)])
            for end, *before in zip(ends, *columns, strict=True)
        ]

    def _lane_columns(self, bits: list[int]) -> tuple[list[int], list[int]]:
        """These bits of a lane's number, those that say which warp and those that say which block."""
        columns, num_warp_bits = [1 << bit for bit in bits], len(self._phase.bits)
        return columns[:num_warp_bits], columns[num_warp_bits:]

    # -- shared memory: [block][warps that are scanned apart][warps of the phase][lanes with totals of their own] ---

    def _store(self, totals: list[Group]) -> None:
        """Of lanes that agree the last one stores: it has the total of all."""
        b, threads, agreeing = self._ctx.b, self._ctx.threads, sum(1 << bit for bit in self._spare)
        last = const("i32", 0 if self._lanes.is_reverse else self._scanned)
        guard = b.icmp("eq", b.and_(threads.lane, const("i32", agreeing)), last) if agreeing else None
        place = self._place([], self._of_parts(self._part_columns))
        for block, total in enumerate(totals):
            for operand, value in enumerate(total):
                bits = to_bits(b, value, self._op.srcs[operand].type)
                self._ctx.isa.store(b, [bits], self._slot(operand, place, block * self._block_size), guard)
        self._ctx.barrier()

    def _load_parts(self, block: int) -> list[Group]:
        """The totals of all warps, as vectors where they are neighbours."""
        place, parts = self._place([], []), combinations(self._part_columns)
        columns = []
        for operand, src in enumerate(self._op.srcs):
            vector = 1 if self._own else min(len(parts), MAX_BYTES // byte_width_of(src.type))
            begins = (block * self._block_size + part for part in parts[::vector])
            columns.append([value for begin in begins for value in self._load(operand, place, begin, vector)])
        return [list(group) for group in zip(*columns, strict=True)]

    def _load_lane(self, chain: list[int], bits: list[int]) -> Group:
        """The one that these bits of its number say."""
        of_blocks = [(chain[1 << bit] - chain[0]) * self._block_size for bit in range(len(chain).bit_length() - 1)]
        place = self._place([*zip(bits, [*self._part_columns, *of_blocks], strict=True)], [])
        begin = chain[0] * self._block_size
        return [self._load(operand, place, begin, 1)[0] for operand in range(len(self._op.srcs))]

    def _load(self, operand: int, place: Index, begin: int, count: int) -> list[Value]:
        b, type = self._ctx.b, self._op.srcs[operand].type
        loaded = self._ctx.isa.load(b, bits_type(type), self._slot(operand, place, begin), count)
        return [from_bits(b, bits, type) for bits in loaded]

    @property
    def _block_size(self) -> int:
        return 1 << len(self._own) + self._layout.in_bits(WARP)

    @property
    def _part_columns(self) -> list[int]:
        """For each bit of the phase how far apart its totals are."""
        return [1 << len(self._own) + index for index in range(len(self._phase.bits))]

    def _of_parts(self, columns: list[int]) -> list[int]:
        """What each bit of a warp's number adds, if it is of the phase."""
        found = dict(zip(self._phase.bits, columns, strict=True))
        return [found.get(bit, 0) for bit in range(self._layout.in_bits(WARP))]

    def _place(self, lane_columns: list[tuple[int, int]], part_columns: list[int]) -> Index:
        """Among the totals of a block, of this thread; more of what bits of its lane and warp add."""
        lanes = dict(lane_columns) | {bit: 1 << index for index, bit in enumerate(self._own)}
        others = [bit for bit in range(self._layout.in_bits(WARP)) if bit not in self._phase.bits]
        first = len(self._own) + len(self._phase.bits)
        warps = {bit: 1 << first + index for index, bit in enumerate(others)} | {
            bit: column for bit, column in enumerate(part_columns) if column
        }
        return self._ctx.threads.image(
            [lanes.get(bit, 0) for bit in range(self._layout.in_bits(LANE))],
            [warps.get(bit, 0) for bit in range(self._layout.in_bits(WARP))],
        )

    def _slot(self, operand: int, place: Index, begin: int) -> Value:
        """The address of a total of an operand."""
        first = self._ctx.shared_pointer(self._op, self._offsets[operand])
        return self._ctx.b.gep(bits_type(self._op.srcs[operand].type), first, place.at(self._ctx.b, begin))


def combinations(columns: list[int]) -> list[int]:
    """Of the bits of all numbers of so many bits, in order."""
    return [f2.apply(columns, number) for number in range(1 << len(columns))]
