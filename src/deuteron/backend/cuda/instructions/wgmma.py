"""The instructions wgmma.mma_async: 64 x N of a warpgroup, from descriptors of shared memory, or a from registers.

    type   K    name of the type     b (and a) in memory
    f16    16   f16, bf16            along K or along N (M)
    f32    8    tf32                 along K
    f8     32   e4m3, e5m2           along K
    i8     32   s8                   along K

A descriptor has the address, the swizzle and two distances; a step along K, or to other rows, adds to the address
alone, since steps are multiples of 8 rows or of 32 bytes. PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Attribute

from deuteron.backend.cuda.context import CUDAContext
from deuteron.backend.gpu.shared_tile import SharedTile
from deuteron.backend.gpu.words import CONSTRAINTS, struct_members, struct_type
from deuteron.backend.llvm.builder import Builder, Touches
from deuteron.backend.llvm.types import Value, byte_width, const
from deuteron.ir.types import bf16, bit_width_of, element_type_of, f8e4m3, f8e5m2, f16, f32, i8
from deuteron.layout.linear import LinearLayout
from deuteron.layout.wgmma import SharedMatrix, shared_matrix

_NAMES = {f16: "f16", bf16: "bf16", f32: "tf32", f8e4m3: "e4m3", f8e5m2: "e5m2", i8: "s8"}
_SWIZZLES = {128: 1, 64: 2, 32: 3}
STEP_BITS = 256
ADDRESS_MASK = (1 << 18) - 1  # of a descriptor, in bytes


def instruction_k(element: Attribute) -> int:
    """How deep one instruction is."""
    return STEP_BITS // bit_width_of(element)


class Matrix:
    """An operand in shared memory: gives the descriptor at a row and a column."""

    def __init__(self, ctx: CUDAContext, tile: SharedTile, warp_columns: Sequence[tuple[int, int]]):
        """`warp_columns`: by how many rows and columns each bit of the warp's number moves the operand."""
        self._b, self._size = ctx.b, byte_width(tile.type)
        self.form = shared_matrix(tile.layout, self._size)
        assert self.form is not None, "the verifier has seen that wgmma reads this layout"
        self._to_offset: LinearLayout = tile.layout.right_inverse()
        self._origin = tile.origin or (0, 0)
        moves = [self._byte_offset(*column) for column in warp_columns]
        start = _add(ctx.b, _within_block(ctx, tile.address), ctx.threads.uniform_image(moves))
        address = ctx.b.zext(ctx.b.lshr(start, const("i32", 4)), "i64")
        self._first = ctx.b.or_(address, const("i64", _constant_part(self.form)), "disjoint")

    def at(self, row: int, column: int) -> Value:
        offset = self._byte_offset(row + self._origin[0], column + self._origin[1]) >> 4
        return self._b.add(self._first, const("i64", offset)) if offset else self._first

    def _byte_offset(self, row: int, column: int) -> int:
        return self._size * self._to_offset(dim0=row, dim1=column)[0]


def _within_block(ctx: CUDAContext, address: Value) -> Value:
    """Of the addresses of a cluster, the highest bits are the rank of the CTA: a descriptor has no room for them."""
    number = ctx.b.ptrtoint(address, "i32")
    return ctx.b.and_(number, const("i32", ADDRESS_MASK)) if ctx.options.num_ctas > 1 else number


def _add(b: Builder, address: Value, offset: Value | None) -> Value:
    return address if offset is None else b.add(address, offset)


def _constant_part(form: SharedMatrix) -> int:
    return _SWIZZLES[form.span] << 62 | form.rows_bytes >> 4 << 32 | form.panel_bytes >> 4 << 16


@dataclass(frozen=True)
class Step:
    """One instruction: which accumulators it adds to, its operand a (words or a descriptor), and that of b."""

    tile: int
    a: Sequence[Value]
    b: Value


@dataclass(frozen=True)
class Instructions:
    """The instructions of one dot. `a_axis`, `b_axis`: where a (if in memory) and b have neighbouring elements."""

    n: int
    a_type: Attribute
    b_type: Attribute
    sum_type: str
    a_axis: int | None
    b_axis: int

    def issue(
        self, b: Builder, tiles: Sequence[Sequence[Value]], steps: Sequence[Step], wait: bool
    ) -> list[list[Value]]:
        """Issue them as one group of asynchronous dots; gives the accumulators, which are in flight unless waited
        for. One piece of assembly: nothing else gets between the fence and the dots that read registers.
        """
        sums = [value for tile in tiles for value in tile]
        from_zero = all(value == const(self.sum_type, 0) for value in sums)
        inputs = [] if from_zero else list(sums)
        text = ["wgmma.fence.sync.aligned;"]
        begun: set[int] = set()
        for step in steps:
            first = len(sums) + len(inputs)
            inputs += [*step.a, step.b]
            names = [f"${first + index}" for index in range(len(step.a) + 1)]
            adds = not from_zero or step.tile in begun
            text.append(self._text(step, names, adds))
            begun.add(step.tile)
        text.append("wgmma.commit_group.sync.aligned;")
        text += ["wgmma.wait_group.sync.aligned 0;"] if wait else []
        return self._emit(b, "{ .reg .pred p, q; setp.eq.b32 p, 0, 0; setp.ne.b32 q, 0, 0; " + " ".join(text) + " }",
                          tiles, inputs, from_zero)  # fmt: skip

    def _emit(
        self, b: Builder, text: str, tiles: Sequence[Sequence[Value]], inputs: list[Value], from_zero: bool
    ) -> list[list[Value]]:
        sums = [value for tile in tiles for value in tile]
        ties = [] if from_zero else [str(index) for index in range(len(sums))]
        others = [CONSTRAINTS[value.type] for value in inputs[len(ties) :]]
        constraints = ",".join([f"={CONSTRAINTS[self.sum_type]}"] * len(sums) + ties + others)
        type = struct_type(self.sum_type, len(sums))
        result = b.assembly(Touches.READS, type, text, constraints, *inputs, attributes="convergent nounwind")
        made = struct_members(b, result, self.sum_type, len(sums))
        size = len(tiles[0])
        return [made[begin : begin + size] for begin in range(0, len(made), size)]

    def _text(self, step: Step, names: Sequence[str], adds: bool) -> str:
        count = self.n // 2
        sums = ", ".join(f"${index}" for index in range(step.tile * count, (step.tile + 1) * count))
        *a, b = names
        operand_a = a[0] if self.a_axis is not None else "{" + ", ".join(a) + "}"
        predicate = "p" if adds else "q"
        operands = f"{{{sums}}}, {operand_a}, {b}, {predicate}{self._modifiers()}"
        return f"wgmma.mma_async.sync.aligned.{self._name()} {operands};"

    def _name(self) -> str:
        total = "s32" if self.sum_type == "i32" else "f32"
        types = ".".join(_NAMES[element_type_of(type)] for type in (self.a_type, self.b_type))
        return f"m64n{self.n}k{instruction_k(self.a_type)}.{total}.{types}"

    def _modifiers(self) -> str:
        """Factors of a and b, then whether a 16-bit operand lies along M or N instead of along K."""
        if self.sum_type == "i32":
            return ""
        if bit_width_of(self.a_type) != 16:
            return ", 1, 1"
        a_transposed = [] if self.a_axis is None else [int(self.a_axis == 0)]
        return ", " + ", ".join(map(str, [1, 1, *a_transposed, int(self.b_axis == 1)]))
