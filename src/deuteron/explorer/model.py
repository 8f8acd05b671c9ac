"""What is known of a compiled kernel, as data: the schema of `--json`, which the page is drawn from.

    exploration.stages[0].lines[7]            '    %rows = arith.addi %17, %16 : tensor<128xi32>'
    exploration.stages[0].at[7]               (4,): what made it is exploration.places[4]
    exploration.places[4]                     (0, 30, 12): exploration.files[0], line 30, column 12
    exploration.to_dict()                     the same as what JSON can hold, with a `format` and a `version`

Lines and columns of source files count from 1, as editors do; lines of texts from 0, as lists do. A field is added
under the same version; the version changes where one gets another meaning.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

FORMAT, VERSION = "deuteron-explorer", 1

Place = tuple[int, int, int]  # file, line, column


@dataclass(frozen=True)
class Part:
    """Lines of a source file, from `first` on."""

    first: int
    lines: tuple[str, ...]


@dataclass(frozen=True)
class File:
    """A source file: the functions in it that the kernel is made of; no parts where it cannot be read."""

    path: str
    name: str
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Text:
    """The text of a stage. `at` has for each line the places that made it: where it is written, then the calls."""

    name: str
    language: str
    lines: tuple[str, ...]
    at: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class PassResult:
    """The IR after a pass: the first of a stage, before any, has no name. One that changed nothing has no lines.

    `edits` are its differences to the IR before: (first and end line there, first and end line here). Numbers of
    values, which change with every op that comes or goes, count as equal.
    """

    stage: str
    name: str
    is_changed: bool
    lines: tuple[str, ...]
    at: tuple[tuple[int, ...], ...]
    edits: tuple[tuple[int, int, int, int], ...]


@dataclass(frozen=True)
class Table:
    """A table of the compile report."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    is_warning: bool


@dataclass(frozen=True)
class Parameter:
    """An argument of the kernel: its type, and what it is promised to be divisible by."""

    name: str
    type: str
    divisibility: int


@dataclass(frozen=True)
class Layout:
    """Where the elements of a tile are: for each input, one basis for each bit of its number, lowest first, whose
    coordinates are XORed. `space` is "registers", with inputs register, lane and warp, or "shared", with an offset in
    elements.
    """

    name: str
    space: str
    shape: tuple[int, ...]
    bases: dict[str, tuple[tuple[int, ...], ...]]


@dataclass(frozen=True)
class Value:
    """A tile that a line of ttgir makes: its type without the layout, which is a number; `buffers` in shared memory."""

    line: int
    name: str
    type: str
    element_bits: int
    layout: int
    buffers: int


@dataclass(frozen=True)
class SharedAccess:
    """How the warps store a tile into shared memory, load it, or copy it there: between which layouts, by vectors or
    matrices whose rows have so many bytes. `conflicts` are the further passes of one access of a warp.
    """

    line: int
    kind: str
    registers: int
    memory: int
    how: str
    vector_bytes: int
    conflicts: int


@dataclass(frozen=True)
class Conversion:
    """A tile that changes its layout: through "registers" of the same thread, "shuffles" or "shared memory", there in
    the layout `scratch`, in so many parts of `bytes`.
    """

    line: int
    name: str
    source: int
    result: int
    element_bits: int
    route: str
    shuffles: int
    scratch: int | None
    parts: int
    bytes: int
    stores: tuple[SharedAccess, ...]
    loads: tuple[SharedAccess, ...]


@dataclass(frozen=True)
class Operand:
    """A tile that is multiplied: its type without the layout, the bits of an element, the number of its layout."""

    type: str
    element_bits: int
    layout: int


@dataclass(frozen=True)
class Dot:
    """A matrix product: "wgmma", "mma" or "multiply-adds", with m, n and k of one instruction."""

    line: int
    name: str
    kind: str
    instruction: tuple[int, int, int]
    a: Operand
    b: Operand
    c: Operand


@dataclass(frozen=True)
class Layouts:
    """All that has a layout in ttgir. Lines are those of the stage `ttgir`."""

    layouts: tuple[Layout, ...] = ()
    values: tuple[Value, ...] = ()
    conversions: tuple[Conversion, ...] = ()
    dots: tuple[Dot, ...] = ()
    accesses: tuple[SharedAccess, ...] = ()


@dataclass(frozen=True)
class Row:
    """A row of a timeline: "warps", "tensor cores", or a "slot" of the ring that is allocated in `line` of ttgir."""

    name: str
    kind: str
    line: int | None


@dataclass(frozen=True)
class Bar:
    """What a row does for a time: "copy", "read", "dot", "compute", "load", "store", "issue", "wait", "barrier". The
    bundle counts what is copied into a ring: 0 is what the first iteration reads. `lines` are those of ttgir.
    """

    row: int
    begin: float
    end: float
    kind: str
    bundle: int | None
    lines: tuple[int, ...]


@dataclass(frozen=True)
class Iteration:
    """An iteration of the loop in `line` of ttgir, from begin to end on a row of warps."""

    row: int
    number: int
    begin: float
    end: float
    line: int


@dataclass(frozen=True)
class Pipeline:
    """What overlaps in a program (along x) when every integer argument is `size`. Order and overlap follow from ttgir;
    times are nominal.
    """

    size: int
    program: int
    is_specialized: bool
    rows: tuple[Row, ...]
    bars: tuple[Bar, ...]
    iterations: tuple[Iteration, ...]


@dataclass(frozen=True)
class LineCost:
    """What a line cost on the emulator: instructions of warps, 32-byte sectors of global memory and the fewest that
    hold the same bytes, passes over shared memory and how many of them are for bank conflicts, barriers.
    """

    place: int | None
    instructions: int
    sectors: int
    ideal_sectors: int
    shared_wavefronts: int
    bank_conflicts: int
    barriers: int


@dataclass(frozen=True)
class Profile:
    """A launch of so many programs on the emulator, by source line; no place: what has none."""

    grid: tuple[int, int, int]
    lines: tuple[LineCost, ...]


@dataclass(frozen=True)
class Nested:
    """What a nest computes: "keep" or the name of an op; the ops fused into it, with their places; the kept tiles that
    these read. A kept tile has a name, and bytes at an offset of the scratch memory, -1 where it stays in registers.
    """

    kind: str
    place: int | None
    fused: tuple[tuple[str, int | None], ...]
    reads: tuple[str, ...]
    kept: str | None
    bytes: int
    offset: int


@dataclass(frozen=True)
class Loop:
    """A part of a program on the CPU: a "nest" of loops over a shape, of which `lanes` elements along `axis` are a
    vector, `unroll` of them at a time; a "dot" or "transpose"; an op on scalars; "for", "if", "while" around `items`.
    """

    kind: str
    place: int | None
    shape: tuple[int, ...]
    axis: int | None
    lanes: int
    unroll: int
    roots: tuple[Nested, ...]
    items: tuple[Loop, ...]


@dataclass(frozen=True)
class Exploration:
    """All that is known of one compiled kernel."""

    deuteron: str
    kernel: str
    target: str
    options: dict[str, Any]
    parameters: tuple[Parameter, ...]
    constants: dict[str, str]
    files: tuple[File, ...]
    places: tuple[Place, ...]
    stages: tuple[Text, ...]
    passes: tuple[PassResult, ...]
    report: tuple[Table, ...]
    layouts: Layouts
    pipeline: Pipeline | None
    profile: Profile | None
    loops: tuple[Loop, ...]

    def to_dict(self) -> dict[str, Any]:
        return {"format": FORMAT, "version": VERSION, **asdict(self)}
