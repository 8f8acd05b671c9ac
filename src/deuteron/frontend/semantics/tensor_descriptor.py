"""Descriptors of tensors in memory: sizes and offsets become int32, strides int64, then the ops of ir/tt/descriptor.py.

    tl.make_tensor_descriptor(p, [M, N], [N, 1], [64, 32])      N as i64 for the stride; the 1 must be a constant
    d.load([i, 0])                                              the offset 0 as an i32

Values that are stored are converted to the type of the elements and must have the shape of a block.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerType, Signedness, TensorType
from xdsl.ir import SSAValue

from deuteron import language as tl
from deuteron.frontend.context import Context
from deuteron.frontend.semantics.arithmetic import minimum
from deuteron.frontend.semantics.constant import as_tensor, number
from deuteron.frontend.semantics.convert import convert, convert_bits
from deuteron.frontend.semantics.memory import check_pointer
from deuteron.frontend.semantics.shapes import check_shape, is_integer
from deuteron.frontend.semantics.types import ir_type, tensor
from deuteron.frontend.values import Descriptor, Tensor, Value, describe
from deuteron.ir.tt.descriptor import (
    MAX_RANK,
    DescriptorGatherOp,
    DescriptorLoadOp,
    DescriptorReduceKind,
    DescriptorReduceOp,
    DescriptorScatterOp,
    DescriptorStoreOp,
    MakeTensorDescriptorOp,
    Padding,
    TensorDescType,
)
from deuteron.language.types import (
    block_type,
    dtype,
    int8,
    int16,
    int32,
    int64,
    tensor_descriptor_type,
    uint8,
    uint16,
)

PADDINGS = {"zero": Padding.ZERO, "nan": Padding.NAN}
MIN_ROW_BYTES = 16
_ADD_TYPES = ("int32", "uint32", "uint64", "fp16", "bf16", "fp32")
_ROW_TYPES = (int8, uint8, int16, uint16, int32)
_INTEGER_TYPES = ("int32", "uint32", "int64", "uint64")
_EXTREMUM_TYPES = (*_INTEGER_TYPES, "fp16", "bf16")


def make_tensor_descriptor(
    ctx: Context, base: Value, shape: Value, strides: Value, block_shape: Value, padding_option: str = "zero"
) -> Descriptor:
    name = "tl.make_tensor_descriptor"
    check_pointer(ctx, name, base)
    if base.shape:
        raise ctx.error(f"{name} takes the pointer to the first element, got {base.type}.")
    extents = check_shape(ctx, block_shape)
    shape = _scalars(ctx, shape, len(extents), int32, f"the shape of {name}")
    distances = _scalars(ctx, strides, len(extents), int64, f"the strides of {name}")
    if not is_integer(strides[-1]) or strides[-1] != 1:
        raise ctx.error(
            f"The last stride of {name} is 1, got {describe(strides[-1])}. Elements of the last dimension are "
            "neighbours: order the dimensions so, and give the constant 1."
        )
    padding = _padding(ctx, padding_option, base.dtype.element_ty)
    return build_descriptor(ctx, base, shape, distances, block_type(base.dtype.element_ty, extents), padding)


def build_descriptor(
    ctx: Context,
    base: Tensor,
    shape: Sequence[Tensor],
    strides: Sequence[Tensor],
    block: block_type,
    padding: Padding = Padding.ZERO,
) -> Descriptor:
    """The descriptor of checked operands."""
    _check_block(ctx, block)
    op = MakeTensorDescriptorOp(
        base.handle,
        [extent.handle for extent in shape],
        [stride.handle for stride in strides],
        TensorDescType(TensorType(_described(block.element_ty), block.shape)),
        padding,
    )
    return Descriptor(ctx.builder.value(op), tensor_descriptor_type(block), tuple(shape), tuple(strides))


def _described(element: dtype):
    """The element type in a descriptor: an integer says whether it is signed."""
    if not element.is_int():
        return ir_type(element)
    return IntegerType(element.int_bitwidth, Signedness.SIGNED if element.is_int_signed() else Signedness.UNSIGNED)


def _check_block(ctx: Context, block: block_type) -> None:
    element, row = block.element_ty, block.shape[-1]
    if len(block.shape) > MAX_RANK:
        raise ctx.error(f"A tensor descriptor has 1 to {MAX_RANK} dimensions, got {len(block.shape)}.")
    if element.is_ptr() or element.is_bool():
        raise ctx.error(f"A tensor descriptor is of numbers, got elements of {element}. Use a pointer to int8.")
    if row * element.itemsize < MIN_ROW_BYTES:
        raise ctx.error(
            f"A block's last dimension has at least {MIN_ROW_BYTES} bytes, got {row} of {element}. "
            f"Use {MIN_ROW_BYTES // element.itemsize} or more."
        )


def _padding(ctx: Context, option: Value, element: dtype) -> Padding:
    if option not in PADDINGS:
        raise ctx.error(f"No padding_option {describe(option)}. Use one of {', '.join(PADDINGS)}.")
    if PADDINGS[option] == Padding.NAN and not element.is_floating():
        raise ctx.error(f"padding_option 'nan' is for floats, the elements are {element}. Use 'zero'.")
    return PADDINGS[option]


def _scalars(ctx: Context, values: Value, rank: int, type: dtype, what: str) -> tuple[Tensor, ...]:
    """One integer scalar for each dimension."""
    if not isinstance(values, (tuple, list)) or len(values) != rank:
        expected = f"expected {rank} integer{'s' * (rank != 1)}, as the block has"
        raise ctx.error(f"{what[0].upper()}{what[1:]}: {expected}, got {describe(values)}.")
    return tuple(_scalar(ctx, value, type, what) for value in values)


def _scalar(ctx: Context, value: Value, type: dtype, what: str) -> Tensor:
    """An integer of the type, or the largest one: no offset is beyond a size of 2^31 - 1."""
    if is_integer(value):
        return number(ctx, min(value, type.get_int_max_value()), type)
    value = as_tensor(ctx, value, f"Each of {what}")
    if value.shape or not value.dtype.is_int() or value.dtype.is_bool():
        raise ctx.error(f"Each of {what} is an integer scalar, got {value.type}.")
    if value.dtype.get_int_max_value() > type.get_int_max_value():
        value = minimum(ctx, value, type.get_int_max_value())
    return convert(ctx, value, type)


def experimental_make_tensor_descriptor(
    ctx: Context, base: Value, shape: Value, strides: Value, block_shape: Value
) -> Descriptor:
    ctx.tell_old_spelling("tl._experimental_make_tensor_descriptor is called tl.make_tensor_descriptor")
    return make_tensor_descriptor(ctx, base, shape, strides, block_shape)


def experimental_descriptor_load(ctx: Context, desc: Value, offsets: Value, shape: Value, dtype: Value) -> Tensor:
    block = _checked(ctx, "tl._experimental_descriptor_load", desc).type.block_type
    is_taken_for = dtype != block.element_ty and _may_hold(block.element_ty, dtype)
    if check_shape(ctx, shape) != block.shape or not (dtype == block.element_ty or is_taken_for):
        raise ctx.error(
            f"tl._experimental_descriptor_load asks for {describe(shape)} of {describe(dtype)}, but the descriptor has "
            f"blocks of {block}. It is called desc.load(offsets) now, and has the descriptor's shape."
        )
    ctx.tell_old_spelling("tl._experimental_descriptor_load is called desc.load(offsets)")
    loaded = load(ctx, desc, offsets)
    return convert_bits(ctx, loaded, dtype) if is_taken_for else loaded


def experimental_descriptor_store(ctx: Context, desc: Value, value: Value, offsets: Value) -> None:
    element = _checked(ctx, "tl._experimental_descriptor_store", desc).type.block_type.element_ty
    value = as_tensor(ctx, value, "The value of tl._experimental_descriptor_store")
    if value.dtype.is_floating() and element.is_int_unsigned():
        value = _bits_of(ctx, value, element)
    ctx.tell_old_spelling("tl._experimental_descriptor_store is called desc.store(offsets, value)")
    store(ctx, desc, offsets, value)


def _bits_of(ctx: Context, value: Tensor, element: dtype) -> Tensor:
    """Floats as the integers that a descriptor of an address alone has."""
    if not _may_hold(element, value.dtype):
        raise ctx.error(
            f"tl._experimental_descriptor_store got {value.type}, but the descriptor has elements of "
            f"{element.itemsize} bytes. Convert the value to the type of the elements with .to(...)."
        )
    return convert_bits(ctx, value, element)


def _may_hold(element: dtype, other: dtype) -> bool:
    """Whether elements may be taken for another type: a descriptor of an address has integers of as many bits."""
    return element.is_int_unsigned() and element.primitive_bitwidth == other.primitive_bitwidth


def load_tensor_descriptor(ctx: Context, desc: Value, offsets: Value) -> Tensor:
    return load(ctx, _checked(ctx, "tl.load_tensor_descriptor", desc), offsets)


def store_tensor_descriptor(ctx: Context, desc: Value, offsets: Value, value: Value) -> None:
    store(ctx, _checked(ctx, "tl.store_tensor_descriptor", desc), offsets, value)


def load(ctx: Context, desc: Descriptor, offsets: Value) -> Tensor:
    op = DescriptorLoadOp(desc.handle, _indices(ctx, "load", desc, offsets))
    return tensor(ctx, op, desc.type.block_type)


def store(ctx: Context, desc: Descriptor, offsets: Value, value: Value) -> None:
    indices = _indices(ctx, "store", desc, offsets)
    ctx.builder.insert(DescriptorStoreOp(desc.handle, _block(ctx, "store", desc, value), indices))


def _checked(ctx: Context, name: str, desc: Value) -> Descriptor:
    if not isinstance(desc, Descriptor):
        raise ctx.error(f"{name} takes a tensor descriptor, got {describe(desc)}. Use tl.make_tensor_descriptor.")
    return desc


def _indices(ctx: Context, name: str, desc: Descriptor, offsets: Value) -> list[SSAValue]:
    what = f"the offsets of a descriptor's {name}"
    for offset in offsets if isinstance(offsets, (tuple, list)) else ():
        _check_narrow(ctx, offset, what)
    return [offset.handle for offset in _scalars(ctx, offsets, len(desc.shape), int32, what)]


def _check_narrow(ctx: Context, offset: Value, what: str) -> None:
    """An offset of 64 bits would lose its upper half, and be somewhere else."""
    if isinstance(offset, Tensor) and offset.dtype.is_int() and offset.dtype.int_bitwidth > 32:
        raise ctx.error(f"Each of {what} has 32 bits, got {offset.type}. Convert it with .to(tl.int32).")


def _block(ctx: Context, name: str, desc: Descriptor, value: Value) -> SSAValue:
    """What is stored, in the type of a block."""
    return _stored(ctx, name, desc, value, desc.type.block_type.shape)


def _stored(ctx: Context, name: str, desc: Descriptor, value: Value, shape: Sequence[int]) -> SSAValue:
    """What is stored, in the type of the elements."""
    value = as_tensor(ctx, value, f"The value of a descriptor's {name}")
    if value.shape != tuple(shape):
        raise ctx.error(f"A descriptor's {name} takes a block of {list(shape)}, got {value.type}.")
    return convert(ctx, value, desc.type.block_type.element_ty).handle


def _reduction(name: str, kind: DescriptorReduceKind, types: Sequence[str]):
    def reduce(ctx: Context, desc: Descriptor, offsets: Value, value: Value) -> None:
        element = desc.type.block_type.element_ty
        if element.name not in types:
            raise ctx.error(f"A descriptor's {name} does not work on {element}: the types are {', '.join(types)}.")
        indices = _indices(ctx, name, desc, offsets)
        ctx.builder.insert(DescriptorReduceOp(kind, desc.handle, _block(ctx, name, desc, value), indices))

    return reduce


def gather(ctx: Context, desc: Descriptor, x_offsets: Value, y_offset: Value) -> Tensor:
    rows, column = _rows(ctx, "gather", desc, x_offsets, y_offset)
    block = desc.type.block_type
    op = DescriptorGatherOp(desc.handle, rows.handle, column.handle)
    return tensor(ctx, op, block_type(block.element_ty, (rows.shape[0], block.shape[1])))


def scatter(ctx: Context, desc: Descriptor, value: Value, x_offsets: Value, y_offset: Value) -> None:
    rows, column = _rows(ctx, "scatter", desc, x_offsets, y_offset)
    shape = rows.shape[0], desc.type.block_type.shape[1]
    stored = _stored(ctx, "scatter", desc, value, shape)
    ctx.builder.insert(DescriptorScatterOp(desc.handle, rows.handle, column.handle, stored))


def _rows(ctx: Context, name: str, desc: Descriptor, x_offsets: Value, y_offset: Value) -> tuple[Tensor, Tensor]:
    """The rows as a vector of int32, and the column where they begin."""
    shape = desc.type.block_type.shape
    if len(shape) != 2 or shape[0] != 1:
        raise ctx.error(
            f"A descriptor's {name} is of parts of rows, got blocks of {list(shape)}. Make the descriptor with a "
            "block_shape of one row, such as [1, 64]."
        )
    is_vector = isinstance(x_offsets, Tensor) and len(x_offsets.shape) == 1
    if not is_vector or x_offsets.dtype not in _ROW_TYPES:
        raise ctx.error(
            f"A descriptor's {name} takes a vector of rows, int32 or narrower, got {describe(x_offsets)}. Convert it "
            "with .to(tl.int32)."
        )
    what = f"the columns of a descriptor's {name}"
    _check_narrow(ctx, y_offset, what)
    return convert(ctx, x_offsets, int32), _scalar(ctx, y_offset, int32, what)


METHODS = {
    "load": load,
    "store": store,
    "atomic_add": _reduction("atomic_add", DescriptorReduceKind.ADD, _ADD_TYPES),
    "atomic_min": _reduction("atomic_min", DescriptorReduceKind.MIN, _EXTREMUM_TYPES),
    "atomic_max": _reduction("atomic_max", DescriptorReduceKind.MAX, _EXTREMUM_TYPES),
    "atomic_and": _reduction("atomic_and", DescriptorReduceKind.AND, _INTEGER_TYPES),
    "atomic_or": _reduction("atomic_or", DescriptorReduceKind.OR, _INTEGER_TYPES),
    "atomic_xor": _reduction("atomic_xor", DescriptorReduceKind.XOR, _INTEGER_TYPES),
    "gather": gather,
    "scatter": scatter,
}
ATTRIBUTES = {
    "dtype": lambda ctx, desc: desc.type.block_type.element_ty,
    "type": lambda ctx, desc: desc.type,
    "block_type": lambda ctx, desc: desc.type.block_type,
    "block_shape": lambda ctx, desc: desc.type.block_type.shape,
    "shape": lambda ctx, desc: desc.shape,
    "strides": lambda ctx, desc: desc.strides,
}
RULES = {
    tl.make_tensor_descriptor: make_tensor_descriptor,
    tl.load_tensor_descriptor: load_tensor_descriptor,
    tl.store_tensor_descriptor: store_tensor_descriptor,
    tl._experimental_make_tensor_descriptor: experimental_make_tensor_descriptor,
    tl._experimental_descriptor_load: experimental_descriptor_load,
    tl._experimental_descriptor_store: experimental_descriptor_store,
}
