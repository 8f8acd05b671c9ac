"""A function of scalars applied to each element, with control flow of its own for each.

@triton.jit
def selu(x, alpha):
    if x > 0:
        return x
    else:
        return alpha * (tl.exp(x) - 1)

y = tl.map_elementwise(selu, x, alpha)
"""

from __future__ import annotations

from collections.abc import Callable

from deuteron.language.builtin import builtin
from deuteron.language.tensor import tensor


@builtin
def map_elementwise(scalar_fn: Callable, *args: tensor, pack: int = 1) -> tensor | tuple[tensor, ...]:
    """`scalar_fn` of each element. Where it branches, only what an element needs is computed.

    :param scalar_fn: a @jit function of scalars. It may compute, load through scalar pointers, branch and loop, but not
        store, print, wait or make tiles. With `pack` = p it has p parameters for each of `args`, and returns p scalars
        for each result: first those of the first.
    :param args: tiles and scalars, broadcast to one shape.
    :param pack: how many elements a call is given. Which ones come together is open; where they are too few, some are
        given twice.
    :returns: a tuple with a tile for each result, or one tile where the function returns a scalar and no tuple.

    Errors: a function that is not @jit, that works on tiles, or has another effect than loads; scalars only; a number
    of returned scalars that `pack` does not divide.
    """
