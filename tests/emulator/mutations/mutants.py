"""PTX with one synchronising instruction left out or weakened.

for mutant in mutants(ptx, num_threads=128): mutant.description, mutant.ptx

    bar.sync 0;                          left out; for half of the threads
    cp.async.wait_group 1;               left out; cp.async.wait_group 2 (so for bulk copies and wgmma)
    mbarrier.try_wait.parity P, [b], x;  P is true at once; the other parity
    barrier.cluster.arrive;              left out; relaxed
    mbarrier.init [b], 8;                for one arrival less
    fences, arrivals, commits, inval     left out; of two after mbarrier.init, one is enough: both
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

# The guard, the opcode, the operands; several instructions may be on one line of assembly.
_INSTRUCTION = re.compile(
    r"(?P<guard>@!?[%\w]+\s+)?\b(?P<opcode>[a-z]\w*(?:\.[\w:]+)+)(?P<operands>[^;{}]*(?:\{[^{}]*\})?[^;{}]*);"
)

_LEFT_OUT = (
    "bar.sync",
    "bar.red",
    "bar.arrive",
    "bar.warp.sync",
    "barrier.sync",
    "barrier.cta",
    "barrier.cluster",
    "fence.proxy.async",
    "fence.mbarrier_init",
    "wgmma.fence",
    "wgmma.commit_group",
    "wgmma.wait_group",
    "cp.async.commit_group",
    "cp.async.wait_group",
    "cp.async.wait_all",
    "cp.async.bulk.commit_group",
    "cp.async.bulk.wait_group",
    "cp.async.mbarrier.arrive",
    "mbarrier.init",
    "mbarrier.inval",
    "mbarrier.arrive",
    "mbarrier.expect_tx",
)


@dataclass(frozen=True)
class Mutant:
    """`line` is that of the instruction in the PTX, `source` the last `.loc` before it."""

    change: str
    line: int
    source: str
    ptx: str

    @property
    def description(self) -> str:
        return f"PTX line {self.line} ({self.source}): {self.change}"


def mutants(ptx: str, num_threads: int) -> Iterator[Mutant]:
    pairs = [(match.start(), match.end()) for match in _both_fences(ptx)]
    for begin, end in pairs:
        line = ptx.count("\n", 0, begin) + 1
        yield Mutant("without both fences of an mbarrier", line, _source(ptx, begin), ptx[:begin] + ptx[end:])
    for match in _INSTRUCTION.finditer(ptx, ptx.index(".entry")):
        if any(begin <= match.start("opcode") < end for begin, end in pairs):
            continue
        for change, text in _changes(match, num_threads):
            line = ptx.count("\n", 0, match.start("opcode")) + 1
            made = ptx[: match.start()] + text + ptx[match.end() :]
            yield Mutant(change, line, _source(ptx, match.start()), made)


def _both_fences(ptx: str) -> Iterator[re.Match]:
    return re.finditer(r"fence\.mbarrier_init[^;]*;\s*fence\.proxy\.async[^;]*;", ptx)


def _source(ptx: str, position: int) -> str:
    found = re.findall(r"\.loc\s+\d+ (\d+)", ptx[:position])
    return f"source line {found[-1]}" if found else "no source line"


def _changes(match: re.Match, num_threads: int) -> Iterator[tuple[str, str]]:
    """Each change of an instruction: what to call it, and the text in its place."""
    opcode, operands = match["opcode"], match["operands"].strip()
    shown = f"{opcode} {operands}".strip()
    if opcode.startswith(_LEFT_OUT):
        yield f"without {shown}", ""
    for names, weaken in _WEAKER.items():
        if opcode.startswith(names):
            yield from (
                (f"{shown} -> {change}", (match["guard"] or "") + text)
                for change, text in weaken(opcode, operands, num_threads)
            )


Weaker = Callable[[str, str, int], Iterator[tuple[str, str]]]


def _weaker_group(opcode: str, operands: str, num_threads: int) -> Iterator[tuple[str, str]]:
    yield f"{int(operands) + 1}", f"{opcode} {int(operands) + 1};"


def _weaker_wait(opcode: str, operands: str, num_threads: int) -> Iterator[tuple[str, str]]:
    done, address, parity = (part.strip() for part in operands.split(","))
    yield "no wait", f"setp.eq.b32 {done}, 0, 0;"
    other = f"{{ .reg .b32 other; xor.b32 other, {parity}, 1; {opcode} {done}, {address}, other; }}"
    yield "other parity", other


def _fewer_arrivals(opcode: str, operands: str, num_threads: int) -> Iterator[tuple[str, str]]:
    address, count = (part.strip() for part in operands.rsplit(",", 1))
    if count.isdecimal() and int(count) > 1:
        yield f"{int(count) - 1}", f"{opcode} {address}, {int(count) - 1};"


def _fewer_threads(opcode: str, operands: str, num_threads: int) -> Iterator[tuple[str, str]]:
    number, _, count = (part.strip() for part in operands.partition(","))
    half = int(count or num_threads) // 64 * 32
    if half:
        yield f"{half} threads", f"{opcode} {number}, {half};"


def _relaxed(opcode: str, operands: str, num_threads: int) -> Iterator[tuple[str, str]]:
    if "relaxed" not in opcode:
        yield "relaxed", f"{opcode.replace('.release', '')}.relaxed;"


_WEAKER: dict[tuple[str, ...], Weaker] = {
    ("cp.async.wait_group", "cp.async.bulk.wait_group", "wgmma.wait_group"): _weaker_group,
    ("mbarrier.try_wait.parity",): _weaker_wait,
    ("mbarrier.init",): _fewer_arrivals,
    ("barrier.cluster.arrive",): _relaxed,
    ("bar.sync", "barrier.sync", "barrier.cta.sync"): _fewer_threads,
}
