"""Types of the language: element types, pointers to them, and tiles of either.

    float16                              fp16                 16 bits, floating
    pointer_type(float16)                pointer<fp16>        what a kernel gets for an array
    block_type(float32, (64, 32))        fp32[64, 32]         a tile

Signedness is part of a type here (`int32`, `uint32`); in tile IR it is part of the op. Types are values: compare them
with `==`, use them as keys, pass them to kernels as constexpr arguments. There is one object for each element type, so
that kernels may ask `x.dtype is tl.float32`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any, ClassVar

from deuteron.dtypes import FLOATS, INTEGERS

SINT_BITS = {type.name: type.bits for type in INTEGERS if type.is_signed}
UINT_BITS = {type.name: type.bits for type in INTEGERS if not type.is_signed}
FLOATS_BY_NAME = {type.dtype_name: type for type in FLOATS}
FLOAT_BITS = {name: type.bits for name, type in FLOATS_BY_NAME.items()}

TRITON_MAX_TENSOR_NUMEL = 1 << 20  # elements of a tile, at most

ALL_BITS = {**SINT_BITS, **UINT_BITS, **FLOAT_BITS, "void": 0}


class dtype:
    """The type of one element. `name` is Triton's: `int1`, `int32`, `uint8`, `fp16`, `bf16`, `fp8e4nv`, `void` ..."""

    SINT_TYPES = list(SINT_BITS)
    UINT_TYPES = list(UINT_BITS)
    FP_TYPES = list(FLOAT_BITS)
    STANDARD_FP_TYPES = [name for name, bits in FLOAT_BITS.items() if bits > 8]
    OTHER_TYPES = ["void"]

    class SIGNEDNESS(Enum):
        """Whether an integer is signed; a bool is unsigned."""

        SIGNED = 0
        UNSIGNED = 1

    class KIND(Enum):
        """The order of promotion: bool < integer < floating."""

        BOOLEAN = 0
        INTEGRAL = 1
        FLOATING = 2

    _known: ClassVar[dict[str, dtype]] = {}

    def __new__(cls, *args: Any, **kwargs: Any) -> dtype:
        """Of a name that was seen before the same object."""
        made = super().__new__(cls)
        return dtype._known.setdefault(args[0], made) if cls is dtype and args and args[0] in ALL_BITS else made

    def __reduce__(self) -> Any:
        return (dtype, (self.name,)) if type(self) is dtype else super().__reduce__()

    def __init__(self, name: str):
        if name not in ALL_BITS:
            raise ValueError(f"No such type: {name!r}. Types are {', '.join(ALL_BITS)}.")
        self.name = name
        self.primitive_bitwidth = ALL_BITS[name]
        self.itemsize = self.primitive_bitwidth // 8
        if self.is_int():
            self.int_bitwidth = self.primitive_bitwidth
            signed = name in SINT_BITS
            self.int_signedness = dtype.SIGNEDNESS.SIGNED if signed else dtype.SIGNEDNESS.UNSIGNED
        if self.is_floating():
            self.fp_mantissa_width = FLOATS_BY_NAME[name].mantissa_bits
            self.exponent_bias = FLOATS_BY_NAME[name].bias

    def is_floating(self) -> bool:
        return self.name in FLOAT_BITS

    def is_standard_floating(self) -> bool:
        """Whether it is a float that is no fp8."""
        return self.name in dtype.STANDARD_FP_TYPES

    def is_fp8(self) -> bool:
        return self.name.startswith("fp8")

    def is_int(self) -> bool:
        """Whether it is an integer; a bool is one."""
        return self.name in SINT_BITS or self.name in UINT_BITS

    def is_int_signed(self) -> bool:
        return self.name in SINT_BITS

    def is_int_unsigned(self) -> bool:
        """Whether it is an unsigned integer; a bool is one."""
        return self.name in UINT_BITS

    def is_bool(self) -> bool:
        return self.name == "int1"

    def is_void(self) -> bool:
        return self.name == "void"

    def is_ptr(self) -> bool:
        return False

    def is_const(self) -> bool:
        """Whether it is a pointer that must not be stored through."""
        return False

    def is_block(self) -> bool:
        return False

    @staticmethod
    def is_dtype(name: str) -> bool:
        return name in ALL_BITS

    def kind(self) -> KIND:
        if self.is_bool():
            return dtype.KIND.BOOLEAN
        return dtype.KIND.INTEGRAL if self.is_int() else dtype.KIND.FLOATING

    def get_int_max_value(self) -> int:
        return 2 ** (self.int_bitwidth - self.is_int_signed()) - 1

    def get_int_min_value(self) -> int:
        return -(2 ** (self.int_bitwidth - 1)) if self.is_int_signed() else 0

    @property
    def scalar(self) -> dtype:
        """The element type: of a tile its elements', of anything else itself."""
        return self

    def with_element_ty(self, element_ty: dtype) -> dtype:
        """The type of this shape over other elements."""
        return element_ty

    def codegen_name(self) -> str:
        """The name in Python: `float16` of `fp16`."""
        return FLOATS_BY_NAME[self.name].name if self.name in FLOATS_BY_NAME else self.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, dtype) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return self.name

    @property
    def cache_key_part(self) -> str:
        """What it is in keys: the same whether `triton` is Deuteron or not."""
        return str(self)

    def __repr__(self) -> str:
        """Python that gives it, where its package is imported: `triton`, once that is Deuteron."""
        return f"{type(self).__module__.partition('.')[0]}.language.{self.codegen_name()}"


def _name_predicate(name: str):
    def predicate(self: dtype) -> bool:
        return self.name == name

    predicate.__name__ = f"is_{name}"
    return predicate


# is_fp16(), is_uint8() ...: one for each name, as Triton has them.
for _name in (*SINT_BITS, *UINT_BITS, *FLOAT_BITS):
    setattr(dtype, f"is_{_name}", _name_predicate(_name))


class pointer_type(dtype):
    """A pointer to elements of a type; `const` where a kernel must not store through it."""

    def __init__(self, element_ty: dtype, address_space: str = "global", const: bool = False):
        if not isinstance(element_ty, dtype):
            raise TypeError(f"A pointer points to a dtype, got {element_ty!r}.")
        self.element_ty = element_ty
        self.address_space = address_space
        self.const = const
        self.name = f"const_pointer<{element_ty}>" if const else f"pointer<{element_ty}>"
        self.primitive_bitwidth = 64
        self.itemsize = 8

    def is_ptr(self) -> bool:
        return True

    def is_const(self) -> bool:
        return self.const

    def __eq__(self, other: object) -> bool:
        return isinstance(other, pointer_type) and (self.name, self.address_space) == (other.name, other.address_space)

    __hash__ = dtype.__hash__

    def __repr__(self) -> str:
        return self.name


class block_type(dtype):
    """A tile: elements of a type in a shape of powers of two."""

    def __init__(self, element_ty: dtype, shape: Sequence[int]):
        if not shape:
            raise TypeError("A tile has at least one dimension; the type of a scalar is its dtype.")
        self.element_ty = element_ty
        self.shape = tuple(shape)
        self.numel = math.prod(self.shape)
        self.name = f"{element_ty}[{', '.join(map(str, self.shape))}]"

    def is_block(self) -> bool:
        return True

    def get_block_shapes(self) -> tuple[int, ...]:
        return self.shape

    @property
    def scalar(self) -> dtype:
        return self.element_ty

    @property
    def nbytes(self) -> int:
        return self.numel * self.element_ty.itemsize

    def with_element_ty(self, element_ty: dtype) -> dtype:
        return block_type(element_ty, self.shape)

    def __repr__(self) -> str:
        return self.name


class tensor_descriptor_type(dtype):
    """A descriptor of a tensor in memory, which is accessed in blocks of `block_type`.

    `padding` is what is loaded from out of bounds: "zero" or "nan".
    """

    def __init__(self, block_type: block_type, padding: str = "zero"):
        self.block_type = block_type
        self.padding = padding
        self.name = f"tensor_descriptor<{block_type}>"

    def __repr__(self) -> str:
        return self.name


class constexpr_type(dtype):
    """What a value that is known at compile time has for a type: `value` is that value, and equal ones are equal."""

    def __init__(self, value: Any):
        self.value = value
        self.name = f"constexpr[{value}]"
        self.primitive_bitwidth = self.itemsize = 0

    def __eq__(self, other: object) -> bool:
        if isinstance(other, tuple_type):
            return isinstance(self.value, tuple) and other == tuple_type(map(constexpr_type, self.value))
        return isinstance(other, constexpr_type) and (type(self.value), self.value) == (type(other.value), other.value)

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return self.name


class tuple_type(dtype):
    """What a tuple has for a type: the types of its items, and the names of its fields, if it has any."""

    def __init__(self, types: Sequence[dtype], fields: Sequence[str] | None = None):
        self.types = list(types)
        self.fields = list(fields) if fields else None
        names = [f"{name}:{type}" for name, type in zip(self.fields or (), self.types, strict=False)]
        self.name = f"[{','.join(names or map(str, self.types))}]"
        self.primitive_bitwidth = self.itemsize = 0

    def __eq__(self, other: object) -> bool:
        if isinstance(other, constexpr_type):
            return other == self
        return isinstance(other, tuple_type) and (self.types, self.fields) == (other.types, other.fields)

    def __hash__(self) -> int:
        return hash(self.name)

    def __iter__(self) -> Iterator[dtype]:
        return iter(self.types)

    def __getitem__(self, index: int) -> dtype:
        return self.types[index]

    def __repr__(self) -> str:
        return self.name


void = dtype("void")
int1, int8, int16, int32, int64 = (dtype(name) for name in ("int1", "int8", "int16", "int32", "int64"))
uint8, uint16, uint32, uint64 = (dtype(name) for name in ("uint8", "uint16", "uint32", "uint64"))
float8e4nv, float8e5 = dtype("fp8e4nv"), dtype("fp8e5")
float8e4b8, float8e5b16, float8e4b15 = dtype("fp8e4b8"), dtype("fp8e5b16"), dtype("fp8e4b15")
float16, bfloat16, float32, float64 = (dtype(name) for name in ("fp16", "bf16", "fp32", "fp64"))
pi32_t = pointer_type(int32)


def get_int_dtype(bitwidth: int, signed: bool) -> dtype:
    """The integer type of a width: `get_int_dtype(16, True)` is int16."""
    if bitwidth == 1:
        return int1
    return dtype(f"int{bitwidth}" if signed else f"uint{bitwidth}")
