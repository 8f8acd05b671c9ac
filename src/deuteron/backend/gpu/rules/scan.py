"""tt.scan, from the lowest bits of the position along the axis to the highest: registers, lanes and warps take turns.

A block is what lies side by side along the axis, as far as it has been scanned. Each thread knows its total, and of its
own elements of the block, run by run, what they add up to and what comes before the run in the block:

    elements      a  b | c  d           two lanes, each with a run of two
    registers     a  ab | c  cd         one element after the other; totals ab and cd
    lanes                               before the second run ab; total abcd
    in the end    a  ab | abc  abcd     what comes before a run is joined with each of its elements, once

Lanes take the total of those before them by shuffles, in as many steps as they have bits (`scan_lanes.py`); where a run
is one element, what they add up to is that element already. Warps store theirs in shared memory and read those of all
(`scan_warps.py`). `reverse` goes from the end to the start. Replicas in registers are scanned once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Operation

from deuteron.analysis.along_axis import Phase, scan_phases
from deuteron.backend.gpu.context import Context, Rule
from deuteron.backend.gpu.fragment import Fragment, positions, register_at
from deuteron.backend.gpu.rules.combine import Group, combine, select
from deuteron.backend.gpu.rules.scan_lanes import LaneScan
from deuteron.backend.gpu.rules.scan_warps import Before, Scanned, WarpScan, combinations
from deuteron.backend.gpu.threads import owned_registers
from deuteron.layout.linear import LANE, REGISTER, WARP


@dataclass(frozen=True)
class _Run:
    """Registers whose elements are scanned among themselves."""

    registers: tuple[int, ...]
    before: Before | None = None


@dataclass(frozen=True)
class _Block:
    """The total of a block, and the thread's own runs in it. `is_exchanged`: other lanes or warps have part in it."""

    total: Group
    runs: tuple[_Run, ...]
    is_exchanged: bool = True

    @property
    def is_element(self) -> bool:
        return not self.is_exchanged and len(self.runs[0].registers) == 1


def scan(ctx: Context, op: Operation, *tiles: Fragment) -> list[Fragment]:
    state, done, pending = _Scan(ctx, op, tiles), [], scan_phases(tiles[0].layout, op.axis.value.data)
    while pending:
        count = state.take(done, pending)
        done, pending = [*done, *pending[:count]], pending[count:]
    return state.results()


class _Scan:
    """The elements by register, and the blocks by the first register of each."""

    def __init__(self, ctx: Context, op: Operation, tiles: tuple[Fragment, ...]):
        self._ctx, self._op, self._layout, self._lanes = ctx, op, tiles[0].layout, LaneScan(ctx, op)
        columns = list(zip(*(tile.registers for tile in tiles), strict=True))
        self._elements: dict[int, Group] = {r: list(columns[r]) for r in owned_registers(self._layout)}
        self._blocks = {r: _Block(group, (_Run((r,)),), is_exchanged=False) for r, group in self._elements.items()}

    def take(self, done: list[Phase], pending: list[Phase]) -> int:
        """The first of the pending phases, and maybe the second; how many it were."""
        phase, *following = pending
        if phase.in_name == WARP:
            return self._merge_warps(done, phase, following)
        if phase.in_name == LANE:
            self._merge_lanes(phase, needs_total=bool(following) and following[0].in_name != WARP)
        else:
            self._merge_registers(phase)
        return 1

    def results(self) -> list[Fragment]:
        for run in (run for block in self._blocks.values() for run in block.runs if run.before is not None):
            for register in run.registers:
                self._elements[register] = self._after(run.before, self._elements[register])
        first = register_at(self._layout)
        groups = [self._elements[first[place]] for place in positions(self._layout)]
        return [Fragment(self._layout, column) for column in zip(*groups, strict=True)]

    def _combine(self, first: Group, second: Group) -> Group:
        return combine(self._ctx, self._op.combine.block, first, second)

    def _after(self, before: Before, group: Group) -> Group:
        joined = self._combine(before.group, group)
        return joined if before.condition is None else select(self._ctx, before.condition, joined, group)

    def _preceded(self, run: _Run, first: Before) -> _Run:
        """With more in front of what comes before a run."""
        then = run.before
        if then is None:
            return _Run(run.registers, first)
        group, condition = self._combine(first.group, then.group), None
        if then.condition is not None:
            group = select(self._ctx, then.condition, group, first.group)
        if first.condition is not None:
            group = select(self._ctx, first.condition, group, then.group)
            both = (first.condition, then.condition)
            condition = None if then.condition is None else self._ctx.b.or_(*both)
        return _Run(run.registers, Before(group, condition))

    # -- registers ---

    def _merge_registers(self, phase: Phase) -> None:
        order = -1 if self._lanes.is_reverse else 1
        chains = self._chains(phase.bits)
        self._blocks = {chain[0]: self._joined([self._blocks[first] for first in chain[::order]]) for chain in chains}

    def _chains(self, bits: Sequence[int]) -> list[list[int]]:
        """The first registers of blocks that differ in these bits, in order of what these say."""
        offsets = combinations([1 << bit for bit in bits])
        firsts = [register for register in self._blocks if not register & offsets[-1]]
        return [[first | offset for offset in offsets] for first in firsts]

    def _joined(self, blocks: list[_Block]) -> _Block:
        whole, *rest = blocks
        for block in rest:
            whole = self._append(whole, block) if block.is_exchanged else self._extend(whole, block)
        return whole

    def _extend(self, whole: _Block, block: _Block) -> _Block:
        """Before threads have exchanged anything a block is one run, and the last of its elements is its total."""
        (run,), (added,) = whole.runs, block.runs
        for register in added.registers:
            self._elements[register] = self._combine(whole.total, self._elements[register])
        last = self._elements[added.registers[-1]]
        return _Block(last, (_Run((*run.registers, *added.registers)),), is_exchanged=False)

    def _append(self, whole: _Block, block: _Block) -> _Block:
        runs = [self._preceded(run, Before(whole.total)) for run in block.runs]
        return _Block(self._combine(whole.total, block.total), (*whole.runs, *runs))

    # -- lanes ---

    def _merge_lanes(self, phase: Phase, needs_total: bool) -> None:
        """Each lane adds the total of the lanes before it to its own. Only the last lane has the total of all then."""
        lanes, lane, blocks = self._lanes, self._ctx.threads.lane, self._blocks
        scanned = lanes.inclusive([block.total for block in blocks.values()], phase.bits)
        totals = lanes.fetch(scanned, lanes.last(phase.mask)) if needs_total else scanned
        if all(block.is_element for block in blocks.values()):
            self._elements.update(zip(blocks, scanned, strict=True))
            self._blocks = {r: _Block(total, (_Run((r,)),)) for r, total in zip(blocks, totals, strict=True)}
            return
        before, condition = lanes.fetch(scanned, lanes.before(lane, phase.mask)), lanes.is_not_first(lane, phase.mask)
        pairs = zip(totals, before, strict=True)
        self._set(self._chains([]), [Scanned(total, [Before(group, condition)]) for total, group in pairs])

    # -- warps ---

    def _merge_warps(self, done: list[Phase], phase: Phase, following: list[Phase]) -> int:
        """With the registers whose turn is next, where lanes scan the totals of both."""
        if any(before.in_name == WARP for before in done):
            self._ctx.barrier()  # the exchange before has read what this one overwrites
        totals, rows = [block.total for block in self._blocks.values()], list(self._blocks)
        bits = following[0].bits if following and following[0].in_name == REGISTER else ()
        warps = WarpScan(self._ctx, self._op, self._layout, done, phase)
        num_taken = warps.num_bits_of_lanes(len(totals), len(bits))
        if num_taken is None:
            self._set(self._chains([]), warps.by_threads(totals))
            return 1
        chains, count = self._chains(bits[:num_taken]), 2 if num_taken else 1
        places = [[rows.index(first) for first in chain] for chain in chains]
        self._set(chains, warps.by_lanes(totals, places, is_last=len(following) < count))
        return count

    def _set(self, chains: list[list[int]], scanned: list[Scanned]) -> None:
        """What was scanned of the blocks of each chain, which are one then."""
        found = {}
        for chain, one in zip(chains, scanned, strict=True):
            pairs = zip((self._blocks[first] for first in chain), one.before, strict=True)
            runs = tuple(self._preceded(run, before) for block, before in pairs for run in block.runs)
            found[chain[0]] = _Block(one.total, runs)
        self._blocks = found


RULES: dict[str, Rule] = {"tt.scan": scan}
