"""Compares the SASS of the benchmark's kernels with a peer's, without a GPU: instructions, accesses, barriers in loops.

    python -m benchmarks.gpu.sass build/triton-3.9 --only gather

     1.73 gather_rows   219/162   BAR 10/0        1.73 of the peer's instructions, ten barriers for none

Instructions count ten times for each loop around them, up to twice. Loops are the natural ones of the control flow:
waits that ptxas puts behind the end of a kernel are none. Most first; `peer_cubins.py` makes a peer's folder.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import deuteron
from benchmarks.gpu.peer_cubins import specialise, works
from benchmarks.gpu.peers import load_kernels
from deuteron.backend import parse_target
from deuteron.compiler import ASTSource

LINE = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(?:@(!?U?P\w+)\s+)?([A-Z0-9_.]+)([^;]*);", re.M)
ENDS = ("BRA", "EXIT", "RET", "BRX")
COUNTED = ("LDG", "STG", "LDL", "STL", "LDS", "STS", "LDSM", "RED", "ATOMG", "BAR", "SHFL", "MUFU", "HMMA", "HGMMA")
LOOP_WEIGHT, MOST_DEPTH = 10, 2


class Instruction(NamedTuple):
    address: int
    predicate: str
    name: str
    target: int | None


class Kernel(NamedTuple):
    instructions: int
    registers: int
    weighted: Counter[str]


def read(path: Path, cuobjdump: str) -> Kernel:
    text = subprocess.run([cuobjdump, "-sass", "-res-usage", path], capture_output=True, text=True, check=True)
    instructions = [_instruction(*found) for found in LINE.findall(text.stdout)]
    registers = re.search(r"REG:(\d+)", text.stdout + text.stderr)
    weighted: Counter[str] = Counter()
    for one, depth in zip(instructions, _depths(instructions), strict=True):
        weight = LOOP_WEIGHT ** min(depth, MOST_DEPTH)
        weighted["all"] += weight
        weighted[one.name.split(".")[0]] += weight
    return Kernel(len(instructions), int(registers[1]) if registers else 0, weighted)


def _instruction(address: str, predicate: str, name: str, operands: str) -> Instruction:
    target = re.search(r"\b0x([0-9a-f]+)", operands) if name.startswith("BRA") else None
    is_uniform = re.search(r"\bU?P\d", operands) if target else None
    return Instruction(
        int(address, 16), predicate or (is_uniform or [""])[0], name, int(target[1], 16) if target else None
    )


def _depths(instructions: Sequence[Instruction]) -> list[int]:
    """How many loops are around each instruction."""
    places = {one.address: place for place, one in enumerate(instructions)}
    jumps = {place: places[one.target] for place, one in enumerate(instructions) if one.target in places}
    ends = [place + 1 for place, one in enumerate(instructions) if one.name.split(".")[0] in ENDS]
    begins = sorted({0, *jumps.values(), *ends} - {len(instructions)})
    blocks = list(pairwise([*begins, len(instructions)]))
    following = [_following(instructions, jumps, begins, end) for _, end in blocks]
    depths = [0] * len(instructions)
    for loop in _loops(following):
        for number in loop:
            for place in range(*blocks[number]):
                depths[place] += 1
    return depths


def _following(instructions: Sequence[Instruction], jumps: dict[int, int], begins: list[int], end: int) -> list[int]:
    last = instructions[end - 1]
    goes_on = last.predicate not in ("", "PT") or last.name.split(".")[0] not in ENDS
    found = [jumps[end - 1]] if end - 1 in jumps else []
    return [begins.index(place) for place in (*found, *([end] if goes_on else [])) if place in begins]


def _loops(following: list[list[int]]) -> list[set[int]]:
    """The blocks of each loop: what reaches a jump back to a block through which all ways to it go."""
    before = [[n for n, after in enumerate(following) if block in after] for block in range(len(following))]
    dominators = _dominators(before)
    loops: dict[int, set[int]] = {}
    for block, after in enumerate(following):
        for head in (head for head in after if dominators[block] >> head & 1):
            body, pending = loops.setdefault(head, {head}), [block]
            while pending:
                one = pending.pop()
                if one not in body:
                    body.add(one)
                    pending += before[one]
    return list(loops.values())


def _dominators(before: list[list[int]]) -> list[int]:
    """As bits of a number."""
    found = [1] + [(1 << len(before)) - 1] * (len(before) - 1)
    while True:
        new = [1]
        for block in range(1, len(before)):
            common = (1 << len(before)) - 1
            for one in before[block]:
                common &= found[one]
            new.append(common | 1 << block)
        if new == found:
            return found
        found = new


def describe(name: str, ours: Kernel, other: Kernel) -> tuple[float, str]:
    more = [
        f"{kind} {ours.weighted[kind]}/{other.weighted[kind]}"
        for kind in COUNTED
        if ours.weighted[kind] > 1.2 * other.weighted[kind] + 3
    ]
    if ours.registers > 1.25 * other.registers + 8:
        more.append(f"registers {ours.registers}/{other.registers}")
    ratio = ours.weighted["all"] / other.weighted["all"]
    return ratio, f"{ratio:5.2f} {name:40} {ours.instructions}/{other.instructions}  {'; '.join(more)}"


def compile_ours(folder: Path, words: list[str]) -> None:
    for path, source, kernel, parameters, config in works(folder, words):
        function = getattr(load_kernels("deuteron", source), kernel)
        compiled_from = ASTSource(function, *specialise(function.arg_names, parameters, dict(config.constants)))
        options = {"num_warps": config.num_warps, "num_stages": config.num_stages}
        compiled = deuteron.compile(compiled_from, target=parse_target("cuda:90"), options=options)
        path.with_suffix(".cubin").write_bytes(compiled.asm["cubin"])


def compare(ours: Path, other: Path, cuobjdump: str) -> list[str]:
    names = sorted({path.name for path in ours.glob("*.cubin")} & {path.name for path in other.glob("*.cubin")})
    read_both = [(name, *(read(folder / name, cuobjdump) for folder in (ours, other))) for name in names]
    return [line for _, line in sorted((describe(*one) for one in read_both), reverse=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description="Compares the SASS of the benchmark's kernels with a peer's.")
    parser.add_argument("peer", type=Path, help="a folder of cubins, as peer_cubins.py makes it")
    parser.add_argument("--ours", type=Path, help="another such folder, in the place of what is compiled now")
    parser.add_argument("--only", nargs="*", default=[], metavar="WORD", help="families or parts of names of cases")
    parser.add_argument("--cuobjdump", default="cuobjdump")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        if arguments.ours is None:
            compile_ours(Path(made), arguments.only)
        print(*compare(arguments.ours or Path(made), arguments.peer, arguments.cuobjdump), sep="\n")


if __name__ == "__main__":
    main()
