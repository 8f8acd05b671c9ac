"""Layouts in IR: encodings of tile types, and descriptors of tiles in shared memory.

    tensor<16x8xf32, #ttg.linear<{register = [[0, 1], [8, 0]], lane = [...], warp = [], block = []}>>
    !ttg.memdesc<64x64xf16, #ttg.shared_linear<{offset = [[0, 1], ...], block = []}, alignment = 16>, ...>

There is one kind of layout, the linear one; the named layouts are constructors in `deuteron.layout`.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntAttr, TensorType
from xdsl.ir import Attribute, Data, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from deuteron.ir.types import byte_width_of, is_tile, shape_of, tensor_type
from deuteron.layout.linear import REGISTER, LinearLayout, dim_names


def _print_bases(layout: LinearLayout, printer: Printer) -> None:
    entries = (f"{name} = [{', '.join(str(list(basis)) for basis in bases)}]" for name, bases in layout.bases)
    printer.print_string("{" + ", ".join(entries) + "}")


def _parse_bases(parser: AttrParser) -> LinearLayout:
    begin = parser.pos

    def vector() -> tuple[int, ...]:
        return tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer))

    def entry() -> tuple[str, list[tuple[int, ...]]]:
        name = parser.parse_identifier()
        parser.parse_punctuation("=")
        return name, parser.parse_comma_separated_list(parser.Delimiter.SQUARE, vector)

    bases = dict(parser.parse_comma_separated_list(parser.Delimiter.BRACES, entry))
    vectors = [vector for entries in bases.values() for vector in entries]
    rank = len(vectors[0]) if vectors else 1
    sizes = [1 << max((v[axis] for v in vectors if axis < len(v)), default=0).bit_length() for axis in range(rank)]
    try:
        return LinearLayout.make(bases, dict(zip(dim_names(rank), sizes, strict=True)))
    except ValueError as error:
        parser.raise_error(str(error), begin, parser.pos)


@irdl_attr_definition
class LinearEncodingAttr(Data[LinearLayout]):
    """The layout of a tile in registers: inputs register, lane, warp, block; it reaches every element."""

    name = "ttg.linear"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> LinearLayout:
        with parser.in_angle_brackets():
            return _parse_bases(parser)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            _print_bases(self.data, printer)


@irdl_attr_definition
class SharedLinearEncodingAttr(ParametrizedAttribute):
    """The layout of a tile in shared memory: inputs offset (in elements) and block; `alignment` in bytes."""

    name = "ttg.shared_linear"

    layout: LinearEncodingAttr = param_def()
    alignment: IntAttr = param_def()

    def __init__(self, layout: LinearLayout | LinearEncodingAttr, alignment: int | IntAttr = 16):
        super().__init__(
            layout if isinstance(layout, LinearEncodingAttr) else LinearEncodingAttr(layout),
            alignment if isinstance(alignment, IntAttr) else IntAttr(alignment),
        )

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            _print_bases(self.layout.data, printer)
            printer.print_string(f", alignment = {self.alignment.data}")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            layout = _parse_bases(parser)
            parser.parse_punctuation(",")
            parser.parse_keyword("alignment")
            parser.parse_punctuation("=")
            place, alignment = parser.pos, parser.parse_integer()
            if alignment < 1 or alignment & (alignment - 1):
                parser.raise_error(f"an alignment is a power of two, got {alignment}", place)
            return LinearEncodingAttr(layout), IntAttr(alignment)


@irdl_attr_definition
class SharedMemorySpaceAttr(ParametrizedAttribute):
    """Shared memory as the space of a descriptor."""

    name = "ttg.shared_memory"


@irdl_attr_definition
class MemDescType(ParametrizedAttribute, TypeAttribute):
    """A tile in shared memory: shape, element type, layout."""

    name = "ttg.memdesc"

    tile: TensorType = param_def()

    def __init__(self, tile: TensorType):
        super().__init__(tile)

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_dimension_list(shape_of(self.tile))
            printer.print_string("x")
            printer.print_attribute(self.tile.element_type)
            printer.print_string(", ")
            printer.print_attribute(self.tile.encoding)
            printer.print_string(", ")
            printer.print_attribute(SharedMemorySpaceAttr())
            printer.print_string(", mutable")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            shape, element_type = parser.parse_ranked_shape()
            parser.parse_punctuation(",")
            encoding = parser.parse_attribute()
            parser.parse_punctuation(",")
            parser.parse_attribute()
            if parser.parse_optional_punctuation(","):
                parser.parse_keyword("mutable")
            return [TensorType(element_type, shape, encoding)]


def layout_of(type: Attribute) -> LinearLayout:
    """The layout of a tile in registers, or of a descriptor in shared memory."""
    if type.__class__ is MemDescType:
        encoding = type.tile.encoding
        assert isinstance(encoding, SharedLinearEncodingAttr)
        return encoding.layout.data
    assert is_tile(type) and type.encoding.__class__ is LinearEncodingAttr, f"{type} has no layout"
    return type.encoding.data


def words_in_thread(type: Attribute) -> int:
    """How many 32-bit registers of a thread a tile takes, narrow elements packed into them."""
    return layout_of(type).in_size(REGISTER) * byte_width_of(type) // 4


def with_layout(type: Attribute, layout: LinearLayout) -> Attribute:
    """The tile type with that layout; a scalar stays as it is."""
    if not isinstance(type, TensorType):
        return type
    return tensor_type(type.element_type, type.get_shape(), LinearEncodingAttr(layout))


ATTRIBUTES = [LinearEncodingAttr, SharedLinearEncodingAttr, SharedMemorySpaceAttr, MemDescType]
