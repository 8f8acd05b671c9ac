"""Descriptors of tensors in memory: blocks of a tensor are loaded and stored at offsets, without pointers and masks.

    a = tl.make_tensor_descriptor(a_ptr, shape=[M, K], strides=[K, 1], block_shape=[BLOCK_M, BLOCK_K])
    x = a.load([i * BLOCK_M, k])
    a.store([i * BLOCK_M, k], x + 1)

What lies out of bounds loads as 0 and is not stored. A `TensorDescriptor` of the host, given to a kernel, is one too.
"""

from __future__ import annotations

from collections.abc import Sequence

from deuteron.language.builtin import builtin
from deuteron.language.tensor import tensor
from deuteron.language.traced import Traced
from deuteron.language.types import block_type as _block_type
from deuteron.language.types import dtype as _dtype

Scalar = tensor | int


class tensor_descriptor(Traced):
    """A tensor in memory of which a kernel accesses blocks."""

    dtype: _dtype
    """Type of one element."""
    block_type: _block_type
    """Type of a block."""
    block_shape: tuple[int, ...]
    """Extents of a block, known at compile time."""
    shape: tuple[tensor, ...]
    """Extents of the tensor (int32)."""
    strides: tuple[tensor, ...]
    """Distances between neighbours in each dimension, in elements (int64); the last one is 1."""

    def __init__(self) -> None:
        raise TypeError(
            "A tl.tensor_descriptor exists inside a kernel only: use tl.make_tensor_descriptor there, or pass a "
            "TensorDescriptor of deuteron.tools.tensor_descriptor."
        )

    def load(self, offsets: Sequence[Scalar]) -> tensor:
        """The block that begins at `offsets`, one for each dimension, counted in elements. They may be negative.

        Where the block lies outside of the tensor it is 0, or NaN if the descriptor was made so.
        """

    def store(self, offsets: Sequence[Scalar], value: tensor) -> None:
        """Store a block at `offsets`, none of them negative; what lies outside of the tensor is not stored.

        `value` has the shape of a block and is converted to the type of the elements.
        """

    def gather(self, x_offsets: tensor, y_offset: Scalar) -> tensor:
        """The rows `x_offsets` (a vector of integers, any of them negative) from column `y_offset` on, one block each.

        The descriptor has two dimensions and blocks of one row, `[1, N]`. Of rows and columns outside of the tensor it
        is 0, or NaN if the descriptor was made so.
        """

    def scatter(self, value: tensor, x_offsets: tensor, y_offset: Scalar) -> None:
        """Store the rows of `value` in the rows `x_offsets`, from column `y_offset` on.

        As `gather`; what lies outside of the tensor is not stored. Of equal rows any is stored.
        """

    def atomic_add(self, offsets: Sequence[Scalar], value: tensor) -> None:
        """Add a block to memory, each element atomically (relaxed); nothing comes back.

        Types: int32, uint32, uint64, float16, bfloat16, float32.
        """

    def atomic_min(self, offsets: Sequence[Scalar], value: tensor) -> None:
        """Let memory hold the smaller of itself and `value`. Types: integers of 32 and 64 bits."""

    def atomic_max(self, offsets: Sequence[Scalar], value: tensor) -> None:
        """Let memory hold the larger of itself and `value`. Types: integers of 32 and 64 bits."""

    def atomic_and(self, offsets: Sequence[Scalar], value: tensor) -> None:
        """Bitwise and of memory with `value`. Types: integers of 32 and 64 bits."""

    def atomic_or(self, offsets: Sequence[Scalar], value: tensor) -> None:
        """Bitwise or of memory with `value`. Types: integers of 32 and 64 bits."""

    def atomic_xor(self, offsets: Sequence[Scalar], value: tensor) -> None:
        """Bitwise exclusive or of memory with `value`. Types: integers of 32 and 64 bits."""


@builtin
def make_tensor_descriptor(
    base: tensor,
    shape: Sequence[Scalar],
    strides: Sequence[Scalar],
    block_shape: Sequence[int],
    padding_option: str = "zero",
) -> tensor_descriptor:
    """A descriptor of a tensor in memory.

    :param base: pointer to the first element, at a multiple of 16 bytes.
    :param shape: extents, one to five.
    :param strides: distances in elements; the last one is 1, the others are multiples of 16 bytes.
    :param block_shape: extents of a block, powers of two; the last one has at least 16 bytes.
    :param padding_option: what is loaded from out of bounds: "zero", or "nan" (floats only).

    Where base, shape and strides are computed from the kernel's arguments alone, blocks are copied by TMA on GPUs that
    have it; elsewhere by loads and stores with masks.

    Errors: no pointer, lists of different lengths, a last stride that is not known to be 1, a block that is too narrow,
    another padding option.
    """


@builtin
def load_tensor_descriptor(desc: tensor_descriptor, offsets: Sequence[Scalar]) -> tensor:
    """The same as `desc.load(offsets)`."""


@builtin
def store_tensor_descriptor(desc: tensor_descriptor, offsets: Sequence[Scalar], value: tensor) -> None:
    """The same as `desc.store(offsets, value)`."""


@builtin
def _experimental_make_tensor_descriptor(
    base: tensor, shape: Sequence[Scalar], strides: Sequence[Scalar], block_shape: Sequence[int]
) -> tensor_descriptor:
    """What `tl.make_tensor_descriptor` was called in Triton 3.2."""


@builtin
def _experimental_descriptor_load(
    desc: tensor_descriptor, offsets: Sequence[Scalar], shape: Sequence[int], dtype: _dtype
) -> tensor:
    """What `desc.load(offsets)` was called in Triton 3.0 to 3.3; `shape` and `dtype` are those of a block.

    Errors: no descriptor (a map that was encoded by hand is none: pass a TensorDescriptor), another shape or type.
    """


@builtin
def _experimental_descriptor_store(desc: tensor_descriptor, value: tensor, offsets: Sequence[Scalar]) -> None:
    """What `desc.store(offsets, value)` was called in Triton 3.0 to 3.3."""
