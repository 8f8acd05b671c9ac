"""Block pointers: a block of a tensor in memory, which is loaded and stored, and moved over the tensor.

    x_block = tl.make_block_ptr(x_ptr, (M, K), (stride, 1), (pid * 64, 0), (64, 32), (1, 0))
    for k in range(0, K, 32):
        x = tl.load(x_block, boundary_check=(0, 1))
        x_block = tl.advance(x_block, (0, 32))

Triton has dropped them for tensor descriptors, which say less: any stride may be any number here, and an access says in
which dimensions it is checked.
"""

from __future__ import annotations

from collections.abc import Sequence

from deuteron.language.builtin import builtin
from deuteron.language.functions.function import must_use_result
from deuteron.language.tensor import tensor

Scalar = tensor | int


@builtin
def make_block_ptr(
    base: tensor,
    shape: Sequence[Scalar],
    strides: Sequence[Scalar],
    offsets: Sequence[Scalar],
    block_shape: Sequence[int],
    order: Sequence[int],
) -> tensor:
    """A pointer to a block of a tensor in memory, for `tl.load`, `tl.store` and `tl.advance`.

    :param base: pointer to the first element of the tensor; one to int1 counts as one to int8.
    :param shape: extents of the tensor (integers of any type); what is negative counts as 0.
    :param strides: distances between neighbours in each dimension, in elements (integers of any type).
    :param offsets: where the block begins, one for each dimension, in elements; they may be negative.
    :param block_shape: extents of the block, powers of two known at compile time.
    :param order: the dimensions, the fastest changing one first: a permutation of 0, 1 ... A hint; strides that are
        known to be 1 say it as well.

    `p.type` and `p.dtype` are pointers to a `tl.block_type`, `x.to(p.dtype.element_ty)` converts to the elements' type.
    Loops, branches, tuples and functions take block pointers as they take scalars.

    Errors: no pointer, lists of different lengths, an order that is no permutation, a block that is no tile.
    """


@must_use_result("It moves nothing: write `p = tl.advance(p, offsets)`.")
@builtin
def advance(base: tensor, offsets: Sequence[Scalar]) -> tensor:
    """The block pointer that is `offsets` elements further, one for each dimension. `base.advance(offsets)` as well.

    Errors: no block pointer, another number of offsets.
    """
