"""The layouts of ttgir as data: which thread holds which element, where shared memory has it, what goes between.

    found = LayoutReader(located).read()
    found.layouts[found.values[0].layout].bases["lane"]       ((0, 2), (0, 4), (1, 0), ...)

A layout is linear over F2: an element's coordinates are the XOR of the bases of the bits that are set in the number of
its register, lane and warp, or in its offset in shared memory. Conflicts are of one access of a warp, computed from the
layouts, not measured.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Attribute, Operation, SSAValue

from deuteron.analysis.shared_memory.scratch import route_of, scratch_bytes, shared_conversion_of
from deuteron.explorer.model import Conversion, Dot, Layout, Layouts, Operand, SharedAccess, Value
from deuteron.explorer.tile_ir import LocatedModule
from deuteron.ir.nested import of_kind
from deuteron.ir.tt.dot import DotOp
from deuteron.ir.ttg.async_copy import AsyncCopyGlobalToLocalOp
from deuteron.ir.ttg.convert import ConvertLayoutOp
from deuteron.ir.ttg.layout import LinearEncodingAttr, MemDescType, layout_of
from deuteron.ir.ttg.memdesc_index import num_buffers
from deuteron.ir.ttg.shared import LocalAllocOp, LocalLoadOp, LocalStoreOp
from deuteron.ir.ttg.sliced_dot import SlicedDotOp
from deuteron.ir.ttng.warp_group_dot import WarpGroupDotOp, tile_of
from deuteron.ir.types import bit_width_of, byte_width_of, element_type_of, is_tile, shape_of
from deuteron.layout.conversion import RegisterRoute, ShuffleRoute, plan_shared
from deuteron.layout.linear import LinearLayout
from deuteron.layout.shared_access import ROW_BYTES, Offsets, conflicts, find_matrices
from deuteron.layout.wgmma import instruction_n

STEP_BITS = 256  # along K of a matrix instruction


class LayoutReader:
    """Reads one module. `matrices` says whether the target moves matrices when it loads, and when it stores."""

    def __init__(self, located: LocatedModule, matrices: dict[str, bool]):
        self._located, self._matrices = located, matrices
        self._layouts: dict[tuple[str, LinearLayout], Layout] = {}
        self._numbers: dict[tuple[str, LinearLayout], int] = {}

    def read(self) -> Layouts:
        """All that has a layout, in the order of the text."""
        ops = self._located.ops
        values = tuple(value for op in ops for value in self._values(op))
        conversions = tuple(map(self._conversion, of_kind(ops, ConvertLayoutOp)))
        dots = tuple(map(self._dot, of_kind(ops, DotOp | SlicedDotOp | WarpGroupDotOp)))
        accesses = tuple(access for op in ops for access in self._accesses(op))
        return Layouts(tuple(self._layouts.values()), values, conversions, dots, accesses)

    def _values(self, op: Operation) -> Iterator[Value]:
        for result in op.results:
            if _has_layout(result.type):
                name = self._located.names.get(result, "")
                yield Value(self._located.lines[op], name, *self._operand(result.type), _buffers(result.type))

    def _operand(self, type: Attribute) -> tuple[str, int, int]:
        """The type as text, the bits of an element, the number of its layout."""
        tile = tile_of(type)
        layout = layout_of(type)
        shape = "x".join(map(str, layout.shape))
        element = str(element_type_of(tile)).removeprefix("!tt.")
        return f"{shape}x{element}", bit_width_of(element_type_of(tile)), self._number(type)

    def _number(self, type: Attribute) -> int:
        is_shared = isinstance(type, MemDescType)
        encoding = type.tile.encoding if is_shared else type.encoding
        name = self._located.name_of_layout(encoding)
        return self._add(name, "shared" if is_shared else "registers", layout_of(type))

    def _add(self, name: str, space: str, layout: LinearLayout) -> int:
        key = (space, layout)
        if key not in self._numbers:
            self._numbers[key] = len(self._numbers)
            bases = {axis: vectors for axis, vectors in layout.bases if vectors or axis != "block"}
            self._layouts[key] = Layout(name, space, layout.shape, bases)
        return self._numbers[key]

    def _conversion(self, op: ConvertLayoutOp) -> Conversion:
        source, result, bits = layout_of(op.src.type), layout_of(op.result.type), 8 * byte_width_of(op.src.type)
        route, line = route_of(op), self._located.lines[op]
        common = (line, self._located.names[op.result], self._number(op.src.type), self._number(op.result.type), bits)
        if isinstance(route, RegisterRoute):
            return Conversion(*common, "registers", 0, None, 1, 0, (), ())
        if isinstance(route, ShuffleRoute):
            return Conversion(*common, "shuffles", route.num_shuffles, None, 1, 0, (), ())
        scratch = plan_shared(source, result, bits).scratch
        number = self._add(f"scratch of line {line + 1}", "shared", scratch)
        parts, size = shared_conversion_of(op).num_parts, scratch_bytes(op)
        written = self._access(line, "store", source, scratch, bits // 8, common[2], number)
        loaded = self._access(line, "load", result, scratch, bits // 8, common[3], number)
        return Conversion(*common, "shared memory", 0, number, parts, size, (written,), (loaded,))

    def _dot(self, op: DotOp | SlicedDotOp | WarpGroupDotOp) -> Dot:
        a, b, c = (Operand(*self._operand(value.type)) for value in (op.a, op.b, op.c))
        depth = STEP_BITS // a.element_bits
        if isinstance(op, WarpGroupDotOp):
            kind, shape = "wgmma", (64, instruction_n(layout_of(op.c.type)), depth)
        elif isinstance(op, DotOp) and _is_mma(layout_of(op.c.type)):
            kind, shape = "mma", (16, 8, depth)
        else:
            kind, shape = "multiply-adds", (1, 1, 1)
        return Dot(self._located.lines[op], self._located.names[op.result], kind, shape, a, b, c)

    def _accesses(self, op: Operation) -> Iterator[SharedAccess]:
        """The accesses of shared memory that threads do, with the layouts of both sides."""
        kind, registers, memory = _sides(op)
        if registers is None or memory is None:
            return
        size = byte_width_of(memory.type.tile)
        if len(layout_of(memory.type).shape) != len(layout_of(registers.type).shape):
            return
        numbers = self._number(registers.type), self._number(memory.type)
        layouts = layout_of(registers.type), layout_of(memory.type)
        yield self._access(self._located.lines[op], kind, *layouts, size, *numbers)

    def _access(
        self, line: int, kind: str, layout: LinearLayout, memory: LinearLayout, size: int, first: int, second: int
    ) -> SharedAccess:
        offsets = Offsets.of(layout, memory, size)
        matrices = find_matrices(offsets) if self._matrices.get(kind) else None
        if matrices is not None:
            how = f"{'ld' if kind == 'load' else 'st'}matrix{'.trans' if matrices.transposed else ''}"
            return SharedAccess(line, kind, first, second, how, ROW_BYTES, conflicts(matrices.rows, ROW_BYTES))
        vector = offsets.vector_bytes
        return SharedAccess(line, kind, first, second, "vectors", vector, conflicts(offsets.lanes, vector))


def _sides(op: Operation) -> tuple[str, SSAValue | None, SSAValue | None]:
    """What an op does to shared memory: the tile in registers, and the one there."""
    if isinstance(op, LocalAllocOp):
        return "store", op.src, op.result
    if isinstance(op, LocalStoreOp):
        return "store", op.src, op.dst
    if isinstance(op, LocalLoadOp):
        return "load", op.result, op.src
    if isinstance(op, AsyncCopyGlobalToLocalOp):
        return "copy", op.src, op.dst
    return "", None, None


def _has_layout(type: Attribute) -> bool:
    if isinstance(type, MemDescType):
        return shape_of(type.tile)[-1:] != (1,)  # an mbarrier has none to speak of
    return is_tile(type) and isinstance(type.encoding, LinearEncodingAttr)


def _buffers(type: Attribute) -> int:
    return num_buffers(type) if isinstance(type, MemDescType) else 1


def _is_mma(layout: LinearLayout) -> bool:
    """Whether lanes hold rows and columns as mma.sync gives its sums."""
    lanes = layout.of("lane")
    expected = ((0, 2), (0, 4), (1, 0), (2, 0), (4, 0))
    return tuple(basis[-2:] for basis in lanes) == expected
