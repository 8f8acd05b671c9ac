"""The compile report of a kernel for a CPU: how wide its vectors are, which tiles are kept in memory, how it runs.

    vectors     loads and stores of LLVM IR, by type: masked, gathered lane by lane, past the caches in large launches
    tiles       what is kept in the scratch memory of a thread, rather than computed where it is read

It is made of the texts that the cache keeps, when somebody asks for it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from xdsl.ir import Attribute, Operation, SSAValue

from deuteron.backend.cpu.lowering import plan_function
from deuteron.backend.cpu.plan.prepare import kernel_of
from deuteron.backend.cpu.plan.tiles.buffers import assign_buffers
from deuteron.backend.cpu.target import cpu_target
from deuteron.backend.llvm.targets import resolve_cpu
from deuteron.backend.metadata import KernelMetadata
from deuteron.backend.report import Report, ReportTable, line_of, place_text
from deuteron.backend.spellings import old_spellings
from deuteron.backend.ttir import parse_tile_ir
from deuteron.errors import Location, counted
from deuteron.ir.location import user_location
from deuteron.ir.types import element_type_of, shape_of
from deuteron.machine.cpu import CPU

_PLAIN = re.compile(r"= load (<\d+ x \w+>)|\bstore (<\d+ x \w+>)")
_MASKED = re.compile(r"call [^@]*@(llvm\.masked\.(?:load|store)|gather|scatter)\.v(\d+)([a-z]+\d+)")


@dataclass(frozen=True)
class VectorAccess:
    """Instructions that load or store vectors of one type; `how` is plain, masked, lane by lane or past the caches."""

    kind: str
    how: str
    vector: str
    count: int


@dataclass(frozen=True)
class KeptTile:
    """A tile that is kept in memory, and where in the scratch memory."""

    place: Location | None
    name: str
    tile: str
    num_bytes: int
    offset: int


@dataclass(frozen=True)
class CPUReport(Report):
    """`vector_bits` is the widest vector of the processor; `scratch_bytes` are for each thread.

    `waiting_line` is where programs may wait for one another, 0 where none does.
    """

    cpu: str
    vector_bits: int
    scratch_bytes: int
    waiting_line: int
    accesses: tuple[VectorAccess, ...]
    kept: tuple[KeptTile, ...]

    def tables(self) -> list[ReportTable]:
        accesses = ((access.kind, access.how, access.vector, str(access.count)) for access in self.accesses)
        kept = ((place_text(t.place), t.name, t.tile, counted(t.num_bytes, "byte"), str(t.offset)) for t in self.kept)
        return [
            ReportTable("Resources", ("", ""), self._resources()),
            ReportTable("Vector accesses", ("", "", "vector", "instructions"), tuple(accesses)),
            ReportTable("Tiles kept in memory", ("line", "", "tile", "size", "offset"), tuple(kept)),
        ]

    def _resources(self) -> tuple[tuple[str, str], ...]:
        return (
            ("processor", self.cpu),
            ("vectors", f"{self.vector_bits} bits"),
            ("scratch memory a thread", counted(self.scratch_bytes, "byte")),
            ("runs on", self._threads()),
        )

    def _threads(self) -> str:
        if self.waiting_line:
            return f"a thread for each program, as they may wait for one another (line {self.waiting_line})"
        return "all threads of the pool: each takes programs of the grid until none is left"


def make_report(texts: Mapping[str, str | bytes], metadata: KernelMetadata) -> CPUReport:
    """The report of a kernel, from its tile IR and its LLVM IR; without tile IR it says less."""
    target = cpu_target(*resolve_cpu(str(metadata.target.arch)))
    return CPUReport(
        kernel=metadata.name,
        target=str(metadata.target),
        cpu=target.cpu,
        vector_bits=target.vector_bits,
        scratch_bytes=metadata.scratch_bytes,
        waiting_line=metadata.waiting_line,
        accesses=tuple(_accesses(texts.get("llir", ""))),
        old_spellings=old_spellings(texts),
        kept=tuple(dict.fromkeys(_kept_tiles(texts["ttir"], target))) if "ttir" in texts else (),
    )


def _accesses(llir: str) -> Iterator[VectorAccess]:
    counts = Counter(access for line in llir.splitlines() if (access := _access(line)) is not None)
    for (kind, how, vector), count in sorted(counts.items()):
        yield VectorAccess(kind, how, vector, count)


def _access(line: str) -> tuple[str, str, str] | None:
    plain = _PLAIN.search(line)
    if plain:
        loaded, stored = plain.groups()
        how = "past the caches" if "!nontemporal" in line else "plain"
        return ("load", "plain", loaded) if loaded else ("store", how, stored)
    masked = _MASKED.search(line)
    if masked is None:
        return None
    function, lanes, element = masked.groups()
    how = "masked" if function.startswith("llvm.") else "lane by lane"
    kind = "load" if function.endswith(("load", "gather")) else "store"
    return kind, how, f"<{lanes} x {element}>"


def _kept_tiles(ttir: str, target: CPU) -> Iterator[KeptTile]:
    plan = plan_function(kernel_of(parse_tile_ir(ttir, "<ttir>"), target))
    assign_buffers(plan)
    for value, place in plan.places.items():
        slot = place.slot.representative
        if slot.offset < 0:
            continue
        shape = "x".join(map(str, shape_of(value.type)))
        line = line_of(user_location(_made_at(value)))
        yield KeptTile(
            line, value.name_hint or "-", f"{shape} {element_type_of(value.type)}", slot.num_bytes, slot.offset
        )


def _made_at(value: SSAValue) -> Attribute:
    return value.owner.location if isinstance(value.owner, Operation) else value.location
