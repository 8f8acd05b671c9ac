"""Tensor maps: the descriptors of tensors that a kernel takes, beside its arguments, for copies by TMA.

    TensorMap(element="fp16", box=(128, 64), swizzle=128, padding="zero", base=("argument", 0, 64),
              sizes=(("argument", 1, 32), ("argument", 2, 32)), strides=(("argument", 2, 32),), place="k.py:12")

    encoded = tensor_map.of_arguments([address, 1000, 512])      MapValues(address, (1000, 512), (1024,))

The kernel's metadata lists its maps; whoever launches it evaluates them and encodes them for the hardware. Dimensions
go from the outermost to the innermost, whose elements are neighbours. Expressions are those of
`analysis.addresses.argument_expressions`.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from deuteron.dtypes import FLOATS, as_signed
from deuteron.errors import LaunchError

SIZE, ALIGNMENT = 128, 64  # bytes of an encoded map
UNUSABLE = bytes(SIZE)
# What TMA copies: tensors whose address and strides, in bytes, are divisible by 16, with sizes and strides up to these.
# In C: aot/runtime/tensors.c.
DIVISIBILITY, MOST_SIZE, STRIDES_END = 16, 1 << 32, 1 << 40
Expression = tuple

# What cuda.h calls the types (CU_TENSOR_MAP_DATA_TYPE_...), with their numbers; other types are copied as bits.
DATA_TYPES = {
    "i8": ("UINT8", 0),
    "u8": ("UINT8", 0),
    **{type.signature: ("UINT8", 0) for type in FLOATS if type.bits == 8},
    "i16": ("UINT16", 1),
    "u16": ("UINT16", 1),
    "u32": ("UINT32", 2),
    "i32": ("INT32", 3),
    "u64": ("UINT64", 4),
    "i64": ("INT64", 5),
    "fp16": ("FLOAT16", 6),
    "fp32": ("FLOAT32", 7),
    "fp64": ("FLOAT64", 8),
    "bf16": ("BFLOAT16", 9),
}
SWIZZLES = {0: ("NONE", 0), 32: ("32B", 1), 64: ("64B", 2), 128: ("128B", 3)}


OTHERWISE = "compiled with plain_loads=True the kernel loads it through pointers"


class NotCopiedError(LaunchError):
    """TMA cannot copy what a kernel loads through pointers; one that is compiled with `plain_loads` loads it."""


class MapValues(NamedTuple):
    """A map for one launch: address, sizes in elements, strides but the last in bytes."""

    address: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(frozen=True)
class TensorMap:
    """A tensor in memory as expressions of the arguments, and the box of elements that a copy moves.

    `is_conditional`: made in a branch. Where TMA cannot copy such a tensor, the map is `UNUSABLE`, all zeros, and it is
    an error of the program to take that branch. `is_inferred`: made of pointers. Where TMA cannot copy such a tensor,
    as one of negative strides, a kernel that is compiled with `plain_loads` is launched.
    """

    element: str
    box: tuple[int, ...]
    swizzle: int
    padding: str
    base: Expression
    sizes: tuple[Expression, ...]
    strides: tuple[Expression, ...]
    place: str = ""
    is_conditional: bool = False
    is_inferred: bool = False

    @property
    def element_bytes(self) -> int:
        name = DATA_TYPES[self.element][0]
        return int("".join(char for char in name if char.isdigit())) // 8

    def of_arguments(self, arguments: Sequence[Any]) -> MapValues:
        """The map for these arguments; raises LaunchError where TMA cannot copy such a tensor."""
        address = evaluate(self.base, arguments) & (1 << 64) - 1
        sizes = tuple(evaluate(size, arguments) for size in self.sizes)
        strides = tuple(evaluate(stride, arguments) * self.element_bytes for stride in self.strides)
        self._check(address, sizes, strides)
        return MapValues(address, sizes, strides)

    def _check(self, address: int, sizes: tuple[int, ...], strides: tuple[int, ...]) -> None:
        if address % DIVISIBILITY:
            raise self.refusal(f"it begins at address {address:#x}, which is no multiple of 16 bytes")
        for size in sizes:
            if not 1 <= size <= MOST_SIZE:
                raise self.refusal(f"a size of it is {size}, sizes are from 1 to 2**32")
        for stride in strides:
            if stride % DIVISIBILITY or not 0 <= stride < STRIDES_END:
                raise self.refusal(f"a stride of it is {stride} bytes, strides are multiples of 16 bytes below 2**40")

    def refusal(self, what: str) -> LaunchError:
        """The error for what TMA, or the driver, does not take."""
        if self.is_inferred:
            return NotCopiedError(f"what is loaded in {self.place} cannot be copied by TMA: {what}; {OTHERWISE}")
        return LaunchError(f"the tensor descriptor in {self.place} cannot be copied by TMA: {what}")


def are_copied(maps: Sequence[TensorMap], arguments: Sequence[Any]) -> bool:
    """Whether TMA copies all of those that were made of pointers, for these arguments."""
    try:
        for described in maps:
            if described.is_inferred:
                described.of_arguments(arguments)
    except NotCopiedError:
        return False
    return True


def evaluate(expression: Expression, arguments: Sequence[Any]) -> int:
    """The value of an expression, a signed number."""
    name, *parts = expression
    if name == "constant":
        return parts[0]
    if name == "argument":
        return as_signed(int(arguments[parts[0]]), parts[1])
    bits, x, y = parts[0], evaluate(parts[1], arguments), evaluate(parts[2], arguments)
    return as_signed(_OPERATIONS[name](x, y), bits)


def arguments_of(expression: Expression) -> set[int]:
    """The arguments that an expression depends on, by index."""
    name, *parts = expression
    if name == "argument":
        return {parts[0]}
    return {index for part in parts if isinstance(part, tuple) for index in arguments_of(part)}


_OPERATIONS = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "max": max, "min": min}
