"""Joins what ptxas, PTX and ttgir say of a kernel into its report, by source line."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import PurePath

from deuteron.backend.cuda.assembler.occupancy import occupancy
from deuteron.backend.cuda.assembler.ptxas import Resources
from deuteron.backend.cuda.report.instructions import Instruction, instructions, num_threads, stack_accesses
from deuteron.backend.cuda.report.model import Access, Barrier, CUDAReport, Dot, Message, Spill
from deuteron.backend.cuda.report.tiles import DotFact, TileFacts, tile_facts
from deuteron.backend.cuda.target import WARP_SIZE, architecture
from deuteron.backend.metadata import KernelMetadata
from deuteron.backend.spellings import old_spellings
from deuteron.backend.ttir import parse_tile_ir
from deuteron.errors import Location
from deuteron.ir.location import import_path
from deuteron.machine.gpu import GPU

VECTOR_BYTES = 16
_BARRIERS = (
    "bar.sync",
    "barrier.cta",
    "barrier.cluster",
    "bar.warp.sync",
    "mbarrier.try_wait",
    "mbarrier.test_wait",
    "cp.async.wait",
    "cp.async.bulk.wait",
    "wgmma.wait_group",
    "fence.",
    "membar",
)
_MULTIPLIES = ("wgmma.mma_async", "mma.sync", "fma.rn.", "mad.lo.", "dp4a.")
# wgmma made to wait for each other: said of a function, and meant of its dots.
_SERIALISED = re.compile(r"\(C751[0-9]\)")
_PTX_LINE = re.compile(r"\bline (\d+)")


def make_report(texts: Mapping[str, str | bytes], metadata: KernelMetadata) -> CUDAReport:
    """The report of a kernel, from the texts of its stages and the numbers of ptxas; without texts it says less."""
    ptx, machine = texts.get("ptx", ""), architecture(metadata.target.arch).machine
    facts = _tile_facts(texts, machine)
    found = _with_paths_of(facts, instructions(ptx))
    used = Resources(**{field.name: metadata.resources.get(field.name, 0) for field in fields(Resources)})
    threads = num_threads(ptx) or WARP_SIZE * metadata.num_warps
    shared = metadata.shared + used.shared_bytes
    return CUDAReport(
        kernel=metadata.name,
        target=str(metadata.target),
        old_spellings=old_spellings(texts),
        num_threads=threads,
        num_ctas=metadata.num_ctas,
        shared_bytes=shared,
        max_shared_bytes=machine.shared.max_bytes,
        resources=used,
        occupancy=occupancy(machine, threads, used.registers, shared),
        accesses=tuple(_accesses(found, facts)),
        dots=tuple(_dot(dot, found) for dot in facts.dots),
        pipelined=facts.pipelined,
        not_pipelined=facts.not_pipelined,
        conversions=facts.conversions,
        barriers=tuple(_barriers(found)),
        messages=tuple(_message(text, found) for text in metadata.resources.get("warnings", ())),
        spills=tuple(_spills(texts["sass"])) if used.spill_bytes and "sass" in texts else (),
    )


def _tile_facts(texts: Mapping[str, str | bytes], machine: GPU) -> TileFacts:
    if "ttgir" not in texts:
        return TileFacts({}, (), (), (), ())
    return tile_facts(parse_tile_ir(texts["ttgir"], "<ttgir>"), machine)


def _with_paths_of(facts: TileFacts, found: Iterable[Instruction]) -> list[Instruction]:
    """Instructions with the files called as tile IR calls them: portable code calls them as Python imports them."""
    places = [*(place for _, place in facts.limits), *(dot.place for dot in facts.dots)]
    paths = {import_path(place.file): place.file for place in places if place is not None}

    def renamed(place: Location | None) -> Location | None:
        return place and replace(place, file=paths.get(str(PurePath(place.file)), place.file))

    return [replace(one, place=renamed(one.place)) for one in found]


def _counted(
    found: Sequence[Instruction], key: Callable[[Instruction], tuple | None]
) -> list[tuple[Location | None, tuple, int]]:
    """How many instructions of each line have a key, in the order of the lines."""
    counts = Counter((one.place, key(one)) for one in found if key(one) is not None)
    ordered = sorted(counts, key=lambda entry: (_order(entry[0]), entry[1]))
    return [(place, what, counts[place, what]) for place, what in ordered]


def _order(place: Location | None) -> tuple[str, int]:
    return (place.file, place.line) if place else ("", 0)


def _accesses(found: Sequence[Instruction], facts: TileFacts) -> list[Access]:
    def key(one: Instruction) -> tuple | None:
        kind = _access_kind(one.name)
        return None if kind is None else (kind, one.name, one.access_bytes)

    accesses = []
    for place, (kind, name, size), count in _counted(found, key):
        limit = facts.limits.get((kind, place)) if 0 < size < VECTOR_BYTES else None
        accesses.append(Access(place, kind, name, size, count, limit))
    return accesses


def _access_kind(name: str) -> str | None:
    """What an instruction does to global memory; None where it does not touch it."""
    first, *rest = name.split(".")
    if name.startswith(("cp.async.bulk.tensor", "cp.async.bulk.shared", "cp.async.bulk.global")):
        return "tile copy"
    if name.startswith(("cp.async.ca", "cp.async.cg")):
        return "copy"
    if "global" not in rest:
        return None
    return {"ld": "load", "st": "store", "atom": "atomic", "red": "atomic"}.get(first)


def _dot(dot: DotFact, found: Sequence[Instruction]) -> Dot:
    names = Counter(one.name for one in found if one.place == dot.place and one.name.startswith(_MULTIPLIES))
    name = min(names, key=lambda name: _rank(name, names)) if names else None
    instruction = _instruction_text(name) if name else "none found on this line"
    return Dot(dot.place, dot.tile, instruction, names[name] if name else 0, dot.operands, dot.is_async, dot.remark)


def _rank(name: str, names: Counter[str]) -> tuple[int, int]:
    """Instructions for matrices before multiply-adds, which may compute addresses as well; then the most frequent."""
    return next(index for index, known in enumerate(_MULTIPLIES) if name.startswith(known)), -names[name]


def _instruction_text(name: str) -> str:
    """`wgmma m64n256k16 f32.f16.f16` of what PTX writes out."""
    parts = name.split(".")
    if parts[0] not in ("wgmma", "mma"):
        return f"{name} (multiply-adds in each thread)"
    shape = next(index for index, part in enumerate(parts) if re.fullmatch(r"m\d+n\d+k\d+", part))
    types = [part for part in parts[shape + 1 :] if part not in ("row", "col")]
    return f"{'wgmma' if parts[0] == 'wgmma' else 'mma.sync'} {parts[shape]} {'.'.join(types)}"


def _barriers(found: Sequence[Instruction]) -> list[Barrier]:
    def key(one: Instruction) -> tuple | None:
        if not one.name.startswith(_BARRIERS) or one.name.startswith("wgmma.fence"):
            return None
        number = one.operands if "wait_group" in one.name else ""
        return (f"{one.name} {number}".strip(),)

    return [Barrier(place, name, count) for place, (name,), count in _counted(found, key)]


def _spills(sass: str) -> list[Spill]:
    counts = Counter(stack_accesses(sass))
    places = sorted({place for place, _ in counts}, key=_order)
    return [Spill(place, counts[place, "STL"], counts[place, "LDL"]) for place in places]


def _message(text: str, found: Sequence[Instruction]) -> Message:
    """With the lines that a message is about: what is at or before the line of PTX that it names, or all dots."""
    named = _PTX_LINE.search(text)
    about = [one for one in found if named and one.place and one.ptx_line <= int(named.group(1))][-1:]
    if not about and _SERIALISED.search(text):
        about = [one for one in found if one.name.startswith("wgmma.mma_async")]
    return Message(text, tuple(dict.fromkeys(one.place for one in about if one.place)))
