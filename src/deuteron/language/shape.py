"""Shapes: broadcasting, reshaping, permuting, joining. No element is computed.

    x[:, None]                            expand_dims(x, 1)
    tl.broadcast_to(x, (64, 32))
    tl.trans(k)                           the last two dimensions swapped
    tl.split(tl.join(a, b))               (a, b)

Shapes are known at compile time, and their extents are powers of two.
"""

from __future__ import annotations

from collections.abc import Sequence

from deuteron.language.builtin import builtin
from deuteron.language.tensor import tensor


@builtin
def broadcast(input: tensor, other: tensor) -> tuple[tensor, tensor]:
    """Both operands in their common shape, as an arithmetic operator brings them there.

    A scalar takes the other's shape; missing leading dimensions count as 1; a dimension of extent 1 is repeated.

    Error: extents that differ and are not 1.
    """


@builtin
def broadcast_to(input: tensor, *shape: int) -> tensor:
    """`input` repeated to `shape`.

    :param input: a scalar, or a tile of the same rank whose extents are 1 or those of `shape`.
    :param shape: extents, as one tuple or one by one: `broadcast_to(x, (32, 32))`, `broadcast_to(x, 32, 32)`.

    Errors: another rank (index with None first), an extent that is neither 1 nor the wanted one.
    """


@builtin
def trans(input: tensor, *dims: int) -> tensor:
    """`input` with its dimensions permuted; without `dims` the last two are swapped.

    :param dims: for each dimension of the result the dimension of `input` it is, as one tuple or one by one.

    Errors: a tile of less than two dimensions and no `dims`, `dims` that are no permutation.
    """


@builtin
def permute(input: tensor, *dims: int) -> tensor:
    """`input` with its dimensions permuted.

    :param dims: for each dimension of the result the dimension of `input` it is, as one tuple or one by one.

    Error: `dims` that are no permutation of the dimensions of `input`.
    """


@builtin
def cat(input: tensor, other: tensor, can_reorder: bool = False, dim: int = 0) -> tensor:
    """Two tiles of one shape one after the other.

    :param can_reorder: whether the elements of the result may be in any order (one dimension only).
    :param dim: the dimension that becomes twice as long.

    Errors: different shapes or types, scalars.
    """


@builtin
def join(a: tensor, b: tensor) -> tensor:
    """`a` and `b` along a new last dimension of extent 2: of shape (4, 8) each, they give (4, 8, 2).

    The two are broadcast to one shape first; two scalars give shape (2). `split` undoes it.

    Error: different element types.
    """


@builtin
def split(a: tensor) -> tuple[tensor, tensor]:
    """The two halves of a tile along its last dimension, whose extent is 2; shape (2) gives two scalars.

    Error: a last dimension of another extent (reshape first).
    """


@builtin
def reshape(input: tensor, *shape: int, can_reorder: bool = False) -> tensor:
    """The same elements in another shape, in row-major order.

    :param shape: extents, as one tuple or one by one; `()` makes a scalar of a tile of one element.
    :param can_reorder: whether the elements may be in any order.

    Errors: another number of elements, extents that are no powers of two.
    """


@builtin
def view(input: tensor, *shape: int) -> tensor:
    """The same elements in another shape, possibly in another order. Prefer `reshape`.

    Errors: those of `reshape`.
    """


@builtin
def item(input: tensor) -> tensor:
    """The scalar in a tile of one element.

    Error: a tile of more elements.
    """


@builtin
def expand_dims(input: tensor, axis: int | Sequence[int]) -> tensor:
    """`input` with dimensions of extent 1 inserted; `x[:, None]` is `expand_dims(x, 1)`.

    :param axis: where in the result the new dimension is, or several of them; negative counts from the end.

    Errors: an axis outside of the result, the same axis twice.
    """
