"""What the report of a kernel for a GPU says, and its tables."""

from __future__ import annotations

from dataclasses import dataclass

from deuteron.backend.cuda.assembler.occupancy import Occupancy
from deuteron.backend.cuda.assembler.ptxas import Resources
from deuteron.backend.cuda.target import WARP_SIZE
from deuteron.backend.report import Report, ReportTable, listed, place_text
from deuteron.errors import Location, counted


@dataclass(frozen=True)
class Access:
    """Instructions of one line that access global memory: `num_bytes` of a thread by each of them (0: by hardware that
    copies tiles), `limit` what keeps them from taking 16.
    """

    place: Location | None
    kind: str
    instruction: str
    num_bytes: int
    count: int
    limit: str | None


@dataclass(frozen=True)
class Dot:
    """A `tl.dot`: its tile as MxNxK, what multiplies, how many instructions a thread issues for it, where a and b are
    read from; `remark` says what keeps it from a faster instruction.
    """

    place: Location | None
    tile: str
    instruction: str
    count: int
    operands: str
    is_async: bool
    remark: str | None


@dataclass(frozen=True)
class PipelinedLoad:
    """A load that is done ahead of its iteration: how, into how many buffers, of how many bytes each; why so."""

    place: Location | None
    how: str
    buffers: int
    num_bytes: int
    remark: str | None = None


@dataclass(frozen=True)
class PlainLoad:
    """A load of a loop that is not pipelined, and why."""

    place: Location | None
    reason: str


@dataclass(frozen=True)
class Conversion:
    """A tile that changes its layout through shared memory or by shuffles; renamed registers cost nothing."""

    place: Location | None
    tile: str
    how: str
    shared_bytes: int


@dataclass(frozen=True)
class Barrier:
    """Instructions of one line at which threads wait for each other or for memory."""

    place: Location | None
    instruction: str
    count: int


@dataclass(frozen=True)
class Message:
    """What ptxas said besides its numbers, and the lines that it is about."""

    text: str
    places: tuple[Location, ...]


@dataclass(frozen=True)
class Spill:
    """Instructions of one line that store registers to the stack and load them from there."""

    place: Location | None
    stores: int
    loads: int


@dataclass(frozen=True)
class CUDAReport(Report):
    """Counts of instructions are those in the text of the kernel: one in a loop counts once. `spills` are known only
    where there is a disassembler.
    """

    num_threads: int
    num_ctas: int
    shared_bytes: int
    max_shared_bytes: int
    resources: Resources
    occupancy: Occupancy
    accesses: tuple[Access, ...]
    dots: tuple[Dot, ...]
    pipelined: tuple[PipelinedLoad, ...]
    not_pipelined: tuple[PlainLoad, ...]
    conversions: tuple[Conversion, ...]
    barriers: tuple[Barrier, ...]
    messages: tuple[Message, ...]
    spills: tuple[Spill, ...]

    def tables(self) -> list[ReportTable]:
        return [
            ReportTable("Resources", ("", ""), self._resources()),
            ReportTable("Messages of ptxas", ("line", "message"), self._messages(), is_warning=True),
            ReportTable(
                "Spills",
                ("line", "stores", "loads"),
                tuple((place_text(s.place), str(s.stores), str(s.loads)) for s in self.spills),
                is_warning=True,
            ),
            ReportTable(
                "Global memory",
                ("line", "", "bytes a thread", "instructions", "why not 16 bytes"),
                tuple(_access_row(access) for access in self.accesses),
            ),
            ReportTable(
                "Dots",
                ("line", "tile", "instruction", "operands", ""),
                tuple(_dot_row(dot) for dot in self.dots),
            ),
            ReportTable("Loads in loops", ("line", "pipelined", ""), self._loads()),
            ReportTable(
                "Layout conversions",
                ("line", "tile", "through", "shared memory"),
                tuple((place_text(c.place), c.tile, c.how, _bytes(c.shared_bytes)) for c in self.conversions),
            ),
            ReportTable(
                "Barriers and waits",
                ("line", "instruction", "count"),
                tuple((place_text(b.place), b.instruction, str(b.count)) for b in self.barriers),
            ),
        ]

    def _resources(self) -> tuple[tuple[str, str], ...]:
        used, held = self.resources, self.occupancy
        spills = f"{_bytes(used.spill_stores)} stored, {_bytes(used.spill_loads)} loaded"
        resident = f"{counted(held.ctas, 'CTA')}, {held.warps} of {held.max_warps} warps"
        cluster = (("CTAs of a program", f"{self.num_ctas}, a cluster"),) if self.num_ctas > 1 else ()
        return (
            *cluster,
            ("threads", f"{self.num_threads} in {counted(-(-self.num_threads // WARP_SIZE), 'warp')}"),
            ("registers a thread", str(used.registers)),
            ("spills a thread", spills if used.spill_bytes else "none"),
            ("stack a thread", _bytes(used.stack_bytes)),
            ("shared memory", f"{_bytes(self.shared_bytes)} of {_bytes(self.max_shared_bytes)}"),
            ("on a multiprocessor", f"{resident}, limited by {listed(held.limited_by)}"),
        )

    def _messages(self) -> tuple[tuple[str, str], ...]:
        return tuple((listed(map(place_text, m.places)) or "-", m.text) for m in self.messages)

    def _loads(self) -> tuple[tuple[str, str, str], ...]:
        ahead = [(place_text(load.place), load.how, load.remark or _buffers(load)) for load in self.pipelined]
        return (*ahead, *((place_text(load.place), "no", load.reason) for load in self.not_pipelined))


def _access_row(access: Access) -> tuple[str, ...]:
    width = str(access.num_bytes) if access.num_bytes else "a tile"
    return place_text(access.place), access.kind, width, f"{access.count} {access.instruction}", access.limit or ""


def _dot_row(dot: Dot) -> tuple[str, ...]:
    instruction = f"{dot.count} {dot.instruction}" if dot.count else dot.instruction
    remark = dot.remark or ("runs on while others are issued" if dot.is_async else "")
    return place_text(dot.place), dot.tile, instruction, dot.operands, remark


def _buffers(load: PipelinedLoad) -> str:
    return f"{counted(load.buffers, 'buffer')} of {_bytes(load.num_bytes)}"


def _bytes(count: int) -> str:
    return counted(count, "byte")
