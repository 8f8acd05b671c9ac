"""Conversions between element types.

    acc.to(tl.float16)                       tl.cast(acc, tl.float16)
    bits = x.to(tl.int32, bitcast=True)      the same bits

Operators convert by themselves where their operands' types differ.
"""

from __future__ import annotations

from deuteron.language.builtin import builtin
from deuteron.language.tensor import tensor
from deuteron.language.types import dtype as _dtype


@builtin
def cast(
    input: tensor | float, dtype: _dtype, fp_downcast_rounding: str | None = None, bitcast: bool = False
) -> tensor:
    """`input` with its elements converted to `dtype`; as a method `x.to(dtype)`.

    Floats become integers by rounding towards zero (out of range: unspecified), anything becomes a bool by comparison
    with 0, integers wrap. Pointers convert to and from 64-bit integers and to other pointers.

    :param fp_downcast_rounding: "rtne" (to nearest even, the default) or "rtz" (towards zero), for a conversion to a
        narrower float only.
    :param bitcast: keep the bits instead of the value; both types have the same width.

    Errors: a rounding mode where no float is narrowed or that does not exist, a bitcast between different widths, a
    pointer to or from a float or a narrower integer.
    """


@builtin
def to_tensor(x: tensor | float) -> tensor:
    """A number as a runtime scalar; a tensor as it is.

    A bool becomes int1; an int the first of int32, uint32, int64, uint64 that holds it; a float fp32, or fp64 where it
    is out of fp32's range.

    Error: what is no number.
    """
