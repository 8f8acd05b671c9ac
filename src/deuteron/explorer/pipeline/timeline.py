"""A timeline: the kernel executed for a few iterations, with what each row of it did when."""

from __future__ import annotations

from itertools import product

from xdsl.ir import Operation

from deuteron.errors import counted
from deuteron.explorer.model import Bar, Iteration, Pipeline, Row
from deuteron.explorer.pipeline.clocks import Shared
from deuteron.explorer.pipeline.scalars import Scalars
from deuteron.explorer.pipeline.workers import Slot, Worker
from deuteron.explorer.tile_ir import LocatedModule
from deuteron.ir.nested import of_kind
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.ttg.memdesc_index import num_buffers
from deuteron.ir.ttg.warp_specialize import WarpSpecializeOp

# Of integer arguments, and of the program along x: a causal loop is short in the first ones.
SIZES, PROGRAMS = (256, 512, 1024, 4096), (0, 3, 7)
ENOUGH_TRIPS = 6
_OVERLAPPING = {"copy", "dot", "load"}
_SHORTEST = 0.02  # a bar that is shorter is not worth a place


def read_pipeline(located: LocatedModule) -> Pipeline | None:
    """What overlaps in the loops of a kernel; None where nothing could."""
    best = max_trips = None
    for size, program in product(SIZES, PROGRAMS):
        record = _execute(located, size, program)
        if max_trips is None or record.most_trips > max_trips:
            best, max_trips = record, record.most_trips
        if max_trips >= ENOUGH_TRIPS:
            break
    return best.pipeline(bool(of_kind(located.ops, WarpSpecializeOp)))


def _execute(located: LocatedModule, size: int, program: int) -> _Recorder:
    """What one program does where every integer argument has that size."""
    kernel = of_kind(located.ops, FuncOp)[0]
    num_warps = located.module.attributes["ttg.num-warps"].value.data
    record = _Recorder(located, size, program)
    worker = Worker(counted(num_warps, "warp"), num_warps, Scalars(kernel, size, program), Shared(), record)
    for _ in worker.run_block(kernel.body.block):
        pass
    return record


class _Recorder:
    """Keeps what workers tell; neighbouring computations of a worker are one bar."""

    def __init__(self, located: LocatedModule, size: int, program: int):
        self._lines, self._names, self._size, self._program = located.lines, located.names, size, program
        self._rows: dict[object, None] = {}
        self._bars: list[tuple[object, Bar]] = []
        self._open: dict[object, int] = {}
        self._iterations: list[tuple[object, Iteration]] = []
        self.most_trips = 0

    def __call__(
        self, op: Operation, row: object, kind: str, begin: float, end: float, bundle: int | None = None
    ) -> None:
        if isinstance(row, Slot) and num_buffers(row.allocation.result.type) < 2:
            return
        self._rows.setdefault(row)
        line = self._lines[op]
        last = self._bars[self._open[row]][1] if row in self._open else None
        if kind == "compute" and last is not None and last.kind == kind and last.end == begin:
            lines = last.lines if line in last.lines else (*last.lines, line)
            self._bars[self._open[row]] = row, Bar(0, last.begin, end, kind, None, lines)
            return
        self._open[row] = len(self._bars)
        self._bars.append((row, Bar(0, begin, end, kind, bundle, (line,))))

    def iteration(self, op: Operation, row: object, number: int, begin: float, end: float) -> None:
        self.most_trips = max(self.most_trips, number + 1)
        self._rows.setdefault(row)
        self._iterations.append((row, Iteration(0, number, begin, end, self._lines[op])))

    def pipeline(self, is_specialized: bool) -> Pipeline | None:
        """The timeline, with rows in order: warps, tensor cores, the slots of each ring."""
        if not self._iterations or not any(bar.kind in _OVERLAPPING for _, bar in self._bars):
            return None
        rows = sorted(self._rows, key=self._rank)
        numbers = {id(row) if isinstance(row, Worker) else row: number for number, row in enumerate(rows)}

        def number_of(row: object) -> int:
            return numbers[id(row) if isinstance(row, Worker) else row]

        kept = [(row, bar) for row, bar in self._bars if bar.end - bar.begin >= _SHORTEST or bar.kind == "wait"]
        return Pipeline(
            size=self._size,
            program=self._program,
            is_specialized=is_specialized,
            rows=tuple(map(self._row, rows)),
            bars=tuple(
                Bar(number_of(row), round(bar.begin, 2), round(bar.end, 2), bar.kind, bar.bundle, bar.lines)
                for row, bar in kept
            ),
            iterations=tuple(
                Iteration(number_of(row), one.number, round(one.begin, 2), round(one.end, 2), one.line)
                for row, one in self._iterations
            ),
        )

    def _row(self, row: object) -> Row:
        if isinstance(row, Worker):
            return Row(row.name, "warps", None)
        if isinstance(row, Slot):
            name = self._names[row.allocation.result].removeprefix("%")
            return Row(f"{name}, slot {row.index}", "slot", self._lines[row.allocation])
        return Row(str(row), "tensor cores", None)

    def _rank(self, row: object) -> tuple:
        if isinstance(row, Worker):
            return (0, row.is_partition, 0)
        return (2, self._lines[row.allocation], row.index) if isinstance(row, Slot) else (1, 0, 0)
