"""Descriptors of arrays as arguments of a kernel, which accesses them in blocks.

    from deuteron.tools.tensor_descriptor import TensorDescriptor

    a_desc = TensorDescriptor.from_tensor(a, [128, 64])
    kernel[grid](a_desc, ...)                                in the kernel: a_desc.load([i, j])

A kernel gets the address of the first element, the shape, and the strides but the last, which is 1. What TMA asks for
holds on every target: the address and the strides but the last are multiples of 16 bytes. It is checked at each launch,
for a descriptor may be changed.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

from deuteron.backend.arrays import array_specialiser, is_read_only, read_only_token, split_token
from deuteron.backend.dlpack import dlpack_tensor
from deuteron.errors import LaunchError, UsageError
from deuteron.language.signature import DESCRIPTOR, SCALARS
from deuteron.tracebacks import api_boundary

MAX_RANK = 5
MAX_SIZE = 2**31 - 1  # of a dimension: kernels get it as int32
PADDINGS = ("zero", "nan")


class Tokens(NamedTuple):
    """The tokens of a kind of descriptor: for any size, and for rows of a multiple of 16 bytes."""

    plain: str
    whole_rows: str
    element_bytes: int


_tokens: dict[tuple, Tokens] = {}


class TensorDescriptor:
    """An array with a shape, strides in elements, and the shape of the blocks that a kernel accesses."""

    @api_boundary
    def __init__(
        self,
        base: Any,
        shape: Sequence[int],
        strides: Sequence[int],
        block_shape: Sequence[int],
        padding: str = "zero",
        round_f32_to_tf32: bool = False,
    ):
        """Raises UsageError for what no kernel can take. `padding` is what is loaded from out of bounds."""
        if round_f32_to_tf32:
            raise UsageError("a TensorDescriptor that rounds fp32 to tf32 is not supported: tl.dot does it")
        self.base = base
        self.shape = _listed("shape", shape)
        self.strides = _listed("strides", strides)
        self.block_shape = _listed("block_shape", block_shape)
        self.padding = padding
        _check(self)

    @staticmethod
    @api_boundary
    def from_tensor(
        tensor: Any, block_shape: Sequence[int], padding: str = "zero", round_f32_to_tf32: bool = False
    ) -> TensorDescriptor:
        """The descriptor of a whole array of NumPy, torch, or any library that kernels take arrays of."""
        strides = strides_of(tensor)
        return TensorDescriptor(tensor, tensor.shape, strides, block_shape, padding, round_f32_to_tf32)

    def __repr__(self) -> str:
        return f"TensorDescriptor(shape={self.shape}, strides={self.strides}, block_shape={self.block_shape})"

    @property
    def arguments(self) -> list[Any]:
        """What it is to a kernel, in order: the array, the shape, the strides but the last."""
        return [self.base, *self.shape, *self.strides[:-1]]


def strides_of(array: Any) -> tuple[int, ...]:
    """The strides of an array in elements."""
    if callable(getattr(array, "stride", None)):
        return tuple(array.stride())
    if hasattr(array, "strides") and hasattr(array, "itemsize"):
        return tuple(step // array.itemsize for step in array.strides)
    return dlpack_tensor(array).strides


def _listed(what: str, numbers: Any) -> list[int]:
    try:
        listed = list(numbers)
    except TypeError:
        raise UsageError(f"the {what} of a TensorDescriptor is a list, got {numbers!r}. Write [{numbers!r}].") from None
    return _whole(what, listed)


def _whole(what: str, numbers: Sequence[Any]) -> list[int]:
    try:
        return list(map(operator.index, numbers))
    except TypeError:
        raise UsageError(f"the {what} of a TensorDescriptor has whole numbers, got {list(numbers)}") from None


def _check(descriptor: TensorDescriptor) -> None:
    rank = len(descriptor.shape)
    if not 1 <= rank <= MAX_RANK or len(descriptor.strides) != rank or len(descriptor.block_shape) != rank:
        raise UsageError(
            f"a TensorDescriptor has one to {MAX_RANK} dimensions, as many strides and a block of as many: "
            f"got {descriptor}"
        )
    if not all(1 <= size <= MAX_SIZE for size in descriptor.shape):
        raise UsageError(f"the sizes of a TensorDescriptor are from 1 to {MAX_SIZE}, got {descriptor}")
    if descriptor.strides[-1] != 1:
        raise UsageError(f"the last dimension of a TensorDescriptor has stride 1, got {descriptor}")
    if descriptor.padding not in PADDINGS:
        raise UsageError(f"the padding of a TensorDescriptor is one of {PADDINGS}, got {descriptor.padding!r}")
    specialise(descriptor)


def specialise(descriptor: TensorDescriptor) -> tuple[str, tuple[int, ...]]:
    """The token of a launch, and what is passed to the compiled kernel."""
    base = descriptor.base
    specialiser = array_specialiser(type(base))
    if specialiser is None:
        raise LaunchError(f"a TensorDescriptor is of an array, got an object of type '{type(base).__name__}'")
    pointer, address = specialiser(base)
    key = (pointer, tuple(descriptor.block_shape), descriptor.padding)
    tokens = _tokens.get(key)
    if tokens is None:
        tokens = _tokens[key] = _tokens_of(*key)
    size = tokens.element_bytes
    if address & 15 or any(stride * size & 15 for stride in descriptor.strides[:-1]):
        raise LaunchError(
            f"{descriptor}, elements of {size} bytes at address {address:#x}: the address and the strides but the last "
            "must be multiples of 16 bytes. Pad the rows, or copy the array to where it is aligned."
        )
    token = tokens.plain if descriptor.shape[-1] * size & 15 else tokens.whole_rows
    if is_read_only(pointer):
        token = read_only_token(token)
    return token, (address, *descriptor.shape, *descriptor.strides[:-1])


def _tokens_of(pointer: str, block_shape: tuple[int, ...], padding: str) -> Tokens:
    """As those of the array: `tensordesc<fp16[128,64]>@cuda:0:16`."""
    element = split_token(pointer)[0][1:]
    suffix = "" if padding == "zero" else f",{padding}"
    device = pointer.partition("@")[2]
    extents = _whole("block_shape", block_shape)  # which a hook may have changed
    plain = f"{DESCRIPTOR}{element}[{','.join(map(str, extents))}]{suffix}>"
    plain += f"@{device.rpartition(':')[0]}:" if device else ""
    return Tokens(plain, f"{plain}16" if device else f"{plain}:16", SCALARS[element].itemsize)


def flatten(args: Sequence[Any], is_deep: bool = False) -> list[Any]:
    """Arguments with what descriptors are to a kernel in place of descriptors; `is_deep`: of tuples too."""
    found: list[Any] = []
    for arg in args:
        if is_deep and isinstance(arg, tuple):
            found.extend(flatten(arg, is_deep))
        else:
            found.extend(arg.arguments if isinstance(arg, TensorDescriptor) else [arg])
    return found
