"""Parts of a function as functions, which give each other what they compute through memory: the frame.

    part                            what it reads                         what others read of it
    %a = add i32 %n, 1                                                    store i32 %a, ptr %frame
    call piece 1                    of a piece, after it is called:       before it calls one that reads it
                                    %b = load i32, ptr %frame.4
    piece 1
    %b = mul i32 %a, %a             at its beginning:                     at its end:
                                    %a = load i32, ptr %frame             store i32 %b, ptr %frame.4

Names stay what they are. Parameters are passed on. A pointer may come both through the frame and from a parameter, so
that those of pieces are not `noalias`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.control_flow import Block
from deuteron.backend.llvm.types import Value, bit_width, const, width

_NAME = re.compile(r"%[\w.$-]+")
_LINE = 64  # bytes of a cache line: nothing is aligned to more


@dataclass(eq=False)
class Part:
    """Blocks of the whole function, or of a piece, which is called in the block `first` of the part around it, to go on
    in `last`, and which itself ends in `tail`.
    """

    blocks: list[Block]
    pieces: list[Part] = field(default_factory=list)
    around: Part | None = None
    first: Block | None = None
    last: Block | None = None
    tail: Block | None = None

    def all(self) -> Iterator[Part]:
        """This one and all pieces in it."""
        yield self
        for piece in self.pieces:
            yield from piece.all()

    def piece_with(self, other: Part) -> Part | None:
        """Of its own pieces the one that another part is, or is in."""
        while other is not None and other.around is not self:
            other = other.around
        return other


def connect(b: Builder, whole: Part, attributes: str) -> None:
    """Make functions of the pieces, and calls of them."""
    _Frame(b, whole, attributes).connect()


class _Frame:
    """`loads`: what is read at the beginning of a block. `stores`: what is kept before a piece is called, and `results`
    at its end.
    """

    def __init__(self, b: Builder, whole: Part, attributes: str):
        self._parts = list(whole.all())
        self._types = b.types
        self._offsets: dict[str, int] = {}
        self._num_bytes = 0
        self._loads: dict[Block, dict[str, None]] = defaultdict(dict)
        self._stores: dict[Part, dict[str, None]] = defaultdict(dict)
        self._results: dict[Part, dict[str, None]] = defaultdict(dict)
        named = {part: _names(part) for part in self._parts}
        self._pass_values(named, {name: part for part in self._parts for name in _defined(part)})
        self._frame = Value("ptr", f"%{b.block('frame').name}")
        needed = _with_inner(whole, named)
        b.keep(whole.blocks)
        self._builders = {whole: b}
        for number, piece in enumerate(self._parts[1:], 1):
            parameters = [value for value in b.parameters if value.text in needed[piece]]
            name = f"{b.name}.{number}"
            self._builders[piece] = b.module.add(b.part(name, [*parameters, self._frame], attributes, piece.blocks))

    def _pass_values(self, named: dict[Part, dict[str, None]], homes: dict[str, Part]) -> None:
        for part, names in named.items():
            for name in names:
                home = homes.get(name, part)
                if home is part:
                    continue
                inner, outer = part.piece_with(home), home.piece_with(part)
                self._loads[inner.last if inner else part.blocks[0]][name] = None
                (self._stores[outer] if outer else self._results[home])[name] = None

    def connect(self) -> None:
        for part, b in self._builders.items():
            b.set_debug_location(None)
            for block in part.blocks:
                self._load(b, block)
            for piece in part.pieces:
                self._call(b.elsewhere(piece.first), piece)
            if part.tail is not None:
                self._return(b.elsewhere(part.tail), self._results[part])
        whole, *pieces = self._builders.values()
        whole.entry_block.lines.insert(0, f"  {self._frame.text} = alloca [{self._num_bytes} x i8], align {_LINE}")
        for b in pieces:
            for block in b.blocks:
                block.lines = [b.module.relocated(b, line) for line in block.lines]

    def _load(self, b: Builder, block: Block) -> None:
        """At the beginning of a block, under their names."""
        after, block.lines = block.lines, []
        at = b.elsewhere(block)
        for name in self._loads.get(block, ()):
            address, alignment = self._address(at, name)
            block.lines.append(f"  {name} = load {self._types[name]}, {address}, align {alignment}")
        block.lines += after

    def _store(self, b: Builder, names: Iterable[str]) -> None:
        for name in names:
            b.store(Value(self._types[name], name), *self._address(b, name))

    def _address(self, b: Builder, name: str) -> tuple[Value, int]:
        num_bytes = _num_bytes(self._types[name])
        alignment = min(1 << (num_bytes - 1).bit_length(), _LINE)
        if name not in self._offsets:
            self._offsets[name] = -(-self._num_bytes // alignment) * alignment
            self._num_bytes = self._offsets[name] + num_bytes
        return b.gep("i8", self._frame, const("i64", self._offsets[name])), alignment

    def _call(self, b: Builder, piece: Part) -> None:
        self._store(b, self._stores[piece])
        inner = self._builders[piece]
        b.set_debug_location(b.module.location_in(piece.blocks))
        left, is_left = b.block("left"), b.call("i1", inner.name, *inner.parameters)
        b.cond_br(is_left, left, piece.last)
        b.set_debug_location(None)
        b.position(left)
        b.ret(const("i1", 1))

    def _return(self, b: Builder, names: Iterable[str]) -> None:
        self._store(b, names)
        b.ret(const("i1", 0))


def _names(part: Part) -> dict[str, None]:
    """What a part reads or defines, and labels."""
    texts = (text for block in part.blocks for text in (*(phi.line for phi in block.phis), *block.lines))
    return dict.fromkeys(name for text in texts for name in _NAME.findall(text))


def _defined(part: Part) -> Iterator[str]:
    for block in part.blocks:
        yield from (phi.value.text for phi in block.phis)
        yield from (line.split(" ", 3)[2] for line in block.lines if line.startswith("  %"))


def _with_inner(whole: Part, named: dict[Part, dict[str, None]]) -> dict[Part, set[str]]:
    """The names of each part and of all pieces in it."""
    return {part: set().union(*(named[inner] for inner in part.all())) for part in whole.all()}


def _num_bytes(type: str) -> int:
    return -(-bit_width(type) * width(type) // 8)
