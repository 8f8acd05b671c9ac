"""Types of tile IR, and the questions that everybody asks of a type.

A value is a scalar (`i1` ... `i64`, `f16`, `bf16`, `f32`, `f64`, fp8), a pointer to one (`!tt.ptr<f32>`), a tile of
either (`tensor<64x32xf32>`, `tensor<64x!tt.ptr<f32>>`), or a pointer to a block of a tensor
(`!tt.ptr<tensor<64x32xf32>>`). Integers are signless: signedness lives in the op.

Classes of types are compared: nothing derives from them, and `isinstance` would ask abstract bases, thousands of times
in a compile.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from xdsl.dialects.builtin import (
    Builtin,
    IntAttr,
    IntegerType,
    NoneAttr,
    Signedness,
    TensorType,
)
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from deuteron.dtypes import BF16, FLOATS, FP8E4NV, FP8E5, FP16, FP32, FP64, FloatType

NO_LAYOUT = NoneAttr()
i1, i8, i16, i32, i64 = (IntegerType(width) for width in (1, 8, 16, 32, 64))


@irdl_attr_definition
class Float8E4M3B15Type(ParametrizedAttribute, TypeAttribute):
    """The fp8 of bias 15 in which every code is a number, which MLIR does not have: `!tt.f8E4M3B15`."""

    name = "tt.f8E4M3B15"


_CLASSES = {attribute.name: attribute for attribute in (*Builtin.attributes, Float8E4M3B15Type)}
# The declaration of each float type.
FLOAT_TYPES: dict[Attribute, FloatType] = {_CLASSES[type.ir_text](): type for type in FLOATS}
# By their classes, which have no parameters: floats all have one hash, so that a look-up compares many of them.
_FLOATS_BY_CLASS = {type.__class__: declared for type, declared in FLOAT_TYPES.items()}

f8e4m3, f8e5m2, f16, bf16, f32, f64 = (_CLASSES[type.ir_text]() for type in (FP8E4NV, FP8E5, FP16, BF16, FP32, FP64))


@irdl_attr_definition
class PointerType(ParametrizedAttribute, TypeAttribute):
    """A pointer to `pointee` in an address space (1 is global memory): `!tt.ptr<f32>`, `!tt.ptr<f32, 3>`."""

    name = "tt.ptr"

    pointee: Attribute = param_def()
    address_space: IntAttr = param_def()

    def __init__(self, pointee: Attribute, address_space: int | IntAttr = 1):
        if isinstance(address_space, int):
            address_space = IntAttr(address_space)
        super().__init__(pointee, address_space)

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_attribute(self.pointee)
            if self.address_space.data != 1:
                printer.print_string(f", {self.address_space.data}")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            pointee = parser.parse_type()
            space = parser.parse_integer() if parser.parse_optional_punctuation(",") else 1
        return pointee, IntAttr(space)


@lru_cache(maxsize=4096)
def tensor_type(element_type: Attribute, shape: tuple[int, ...], encoding: Attribute) -> TensorType:
    """One object for each type: xDSL takes 30 us to make and verify one, and printers keep the text of each object."""
    return TensorType(element_type, shape, encoding)


def tile(element_type: Attribute, shape: Sequence[int]) -> Attribute:
    """The tile type of that shape; the element type itself for shape ()."""
    return tensor_type(element_type, tuple(shape), NO_LAYOUT) if shape else element_type


_WIDTHS = frozenset((1, 8, 16, 32, 64))  # of integers
MAX_TILE_ELEMENTS = 1 << 20


def check_type(type: Attribute) -> None:
    """Raise VerifyException unless it is a type of tile IR (see above) or one of our dialects, and a tile has extents
    that are powers of two and is not too large."""
    if not is_tile(type):
        is_own = type.name.startswith(("tt.", "ttg.", "ttng.")) and type.__class__ is not PointerType
        if not is_scalar(type) and not is_own:
            raise VerifyException(f"{type} is no type of tile IR")
        return
    shape = shape_of(type)
    if not shape or any(extent < 1 or extent & (extent - 1) for extent in shape):
        raise VerifyException(f"extents must be powers of two, got {type}")
    if num_elements_of(type) > MAX_TILE_ELEMENTS:
        raise VerifyException(f"a tile has at most {MAX_TILE_ELEMENTS} elements, got {type}")
    if not is_scalar(type.element_type):
        raise VerifyException(f"{type.element_type} is no type of a tile's elements, which {type} has")


def is_scalar(type: Attribute) -> bool:
    """Whether it is an integer, a float, or a pointer to something that is a type."""
    if type.__class__ is IntegerType:
        return type.width.data in _WIDTHS and type.signedness.data is Signedness.SIGNLESS
    if type.__class__ is PointerType:
        return is_scalar(element_type_of(type.pointee))
    return type.__class__ in _FLOATS_BY_CLASS


def is_tile(type: Attribute) -> bool:
    return type.__class__ is TensorType


def shape_of(type: Attribute) -> tuple[int, ...]:
    """The shape of a tile, () for a scalar or a pointer."""
    return tuple([extent.data for extent in type.shape.data]) if type.__class__ is TensorType else ()


def element_type_of(type: Attribute) -> Attribute:
    """The element type of a tile, the type itself otherwise."""
    return type.element_type if is_tile(type) else type


def with_element_type(type: Attribute, element_type: Attribute) -> Attribute:
    """The same shape (and layout) over other elements."""
    if is_tile(type):
        return tensor_type(element_type, type.get_shape(), type.encoding)
    return element_type


def is_same_tile_of(type: Attribute, other: Attribute, element_type: Attribute) -> bool:
    """Whether it is `with_element_type(other, element_type)`, which takes ten times as long to make."""
    if not is_tile(other):
        return type == element_type
    return (
        is_tile(type)
        and type.element_type == element_type
        and type.shape == other.shape
        and type.encoding == other.encoding
    )


def is_pointer(type: Attribute) -> bool:
    """Whether the elements are pointers."""
    element = type.element_type if type.__class__ is TensorType else type
    return element.__class__ is PointerType


def is_block_pointer(type: Attribute) -> bool:
    """Whether it is a pointer to a block of a tensor: `!tt.ptr<tensor<64x32xf16>>`."""
    return type.__class__ is PointerType and is_tile(type.pointee)


def block_of(type: Attribute) -> TensorType:
    """What a block pointer points to."""
    assert isinstance(type, PointerType) and isinstance(type.pointee, TensorType)
    return type.pointee


def pointee_of(type: Attribute) -> Attribute:
    """What a pointer, or each pointer of a tile, points to."""
    pointer = element_type_of(type)
    assert isinstance(pointer, PointerType)
    return pointer.pointee


def is_integer(type: Attribute) -> bool:
    element = type.element_type if type.__class__ is TensorType else type
    return element.__class__ is IntegerType


def is_float(type: Attribute) -> bool:
    return element_type_of(type).__class__ in _FLOATS_BY_CLASS


def is_narrow_float(type: Attribute) -> bool:
    """Whether the elements are floats of 8 or 16 bits."""
    return is_float(type) and bit_width_of(type) < 32


def is_fp8(type: Attribute) -> bool:
    return is_float(type) and bit_width_of(type) == 8


def bit_width_of(type: Attribute) -> int:
    """Bits of one element as computed with: 1 for i1, 64 for a pointer."""
    element = type.element_type if type.__class__ is TensorType else type
    if element.__class__ is PointerType:
        return 64
    if element.__class__ is IntegerType:
        return element.width.data
    return _FLOATS_BY_CLASS[element.__class__].bits


def byte_width_of(type: Attribute) -> int:
    """Bytes of one element in memory: an i1 takes one."""
    return max(bit_width_of(type) // 8, 1)


def num_bytes_of(type: Attribute) -> int:
    """Of a tile or a scalar in memory."""
    return num_elements_of(type) * byte_width_of(type)


def num_elements_of(type: Attribute) -> int:
    count = 1
    for extent in shape_of(type):
        count *= extent
    return count
