"""A long function as several, so that what LLVM does by more than a function's length ends with a piece of it.

    define i1 @k.program(ptr %x, i32 %n)         define i1 @k.program(ptr %x, i32 %n)
      %a = ...                                     %frame = alloca [16 x i8]
      ; 600 loops, which read %a            ->     store i32 %a, ptr %frame
      %b = ...                                     %left = call i1 @k.program.1(ptr %x, ptr %frame)
      ; 600 loops, which read %b                   br i1 %left, label %left_1, label %next
      ret i1 false                                 ...

    define i1 @k.program.1(ptr %x, ptr %frame)
      %a = load i32, ptr %frame
      ; 40 loops
      store i32 %b, ptr %frame + 8
      ret i1 false

A piece has one way in and one way out (`flow.py`), or leaves the function, as the function does: by returning true.
What is computed in one and read in another goes through memory (`frame.py`). Pieces of loops and branches are called
from there, and are only made where these are long themselves.

Of 600 loads and stores, each a loop of its own, register allocation took 2.9 s in one function, of 6.5 for code
generation. LLVM's passes over loops ask of each loop what is known before it, and look at all loops before it for that:
96 `while` loops took 2.2 to 3.2 s in them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.control_flow import Block
from deuteron.backend.llvm.flow import chains, reached, reversed_edges
from deuteron.backend.llvm.frame import Part, connect

# Blocks of what stays whole, more than any example has, and about those of a piece: code of 600 loops took 2.3 s in
# pieces of 256, 0.7 of 64 and 0.4 of 32.
MOST, ENOUGH, LEAST = 256, 64, 16

_TARGET = re.compile(r"\blabel %([\w.$-]+)")


def cut_into_pieces(b: Builder, attributes: str) -> None:
    """Make several functions of one that is long, complete, and returns whether it was left before its end."""
    if len(b.blocks) > MOST:
        connect(b, _Cut(b).whole, attributes)


@dataclass(eq=False)
class _Segment:
    """What is between two blocks of a chain; `weight` is the number of its blocks, of which a piece counts as one."""

    first: str
    last: str
    weight: int
    around: _Segment | None
    is_closed: bool


class _Cut:
    """Moves the blocks of a function into pieces, inner chains first, of what is too long."""

    def __init__(self, b: Builder):
        self._blocks = {block.name: block for block in b.blocks}
        self._edges = {name: _TARGET.findall(block.lines[-1]) for name, block in self._blocks.items()}
        self._pieces: dict[str, Part] = {}
        entry, end = b.blocks[0].name, b.current_block.name
        all_blocks = _Segment(entry, end, len(b.blocks), None, False)
        for chain in reversed(list(self._segments(chains(self._edges, entry, end), all_blocks))):
            if chain[0].around.weight > MOST:
                for group in _groups([segment for segment in chain if segment.first != entry]):
                    self._make_piece(group)
        self.whole = self._part(list(self._blocks.values()))

    def _segments(self, found: Sequence[Sequence[str]], whole: _Segment) -> Iterator[list[_Segment]]:
        inside, before = dict.fromkeys(self._blocks, whole), reversed_edges(self._edges, list(self._edges))
        for chain in found:
            around, segments = inside[chain[0]], []
            for first, last in pairwise(chain):
                names = reached(self._edges, first, last)
                segments.append(_Segment(first, last, len(names), around, _is_closed(names, last, before)))
                inside |= dict.fromkeys(names, segments[-1])
            yield segments

    def _make_piece(self, group: Sequence[_Segment]) -> None:
        """Move what is between the phis of one block and those after the phis of another."""
        first, last = self._blocks[group[0].first], self._blocks[group[-1].last]
        names = reached(self._edges, first.name, last.name)
        head, tail = Block(first.name, [], first.lines), Block(last.name, last.phis, [])
        first.lines, last.phis = [], []
        piece = self._part([head, *(self._blocks[name] for name in names[1:]), tail])
        piece.first, piece.last, piece.tail = first, last, tail
        self._pieces[first.name] = piece
        self._edges[first.name] = [last.name]
        for name in names[1:]:
            del self._blocks[name], self._edges[name]
        around = group[0].around
        while around is not None:
            around.weight -= sum(segment.weight for segment in group) - 1
            around = around.around

    def _part(self, blocks: list[Block]) -> Part:
        """Blocks, and the pieces that they call."""
        part = Part(blocks, pieces=[self._pieces.pop(block.name) for block in blocks if block.name in self._pieces])
        for piece in part.pieces:
            piece.around = part
        return part


def _is_closed(names: Sequence[str], last: str, before: Mapping[str, Sequence[str]]) -> bool:
    """Whether the first is the only way in, and nothing leads back to it or comes to the last from elsewhere."""
    inside = set(names)
    only_from_inside = all(inside.issuperset(before[name]) for name in (*names[1:], last))
    return only_from_inside and inside.isdisjoint(before[names[0]])


def _groups(segments: Sequence[_Segment]) -> Iterator[list[_Segment]]:
    """Neighbours that make a piece together."""
    group: list[_Segment] = []
    for segment in [*segments, None]:
        weight = sum(one.weight for one in group)
        if segment is None or not segment.is_closed or weight + segment.weight > ENOUGH:
            if weight >= LEAST:
                yield group
            group = []
        if segment is not None and segment.is_closed:
            group.append(segment)
