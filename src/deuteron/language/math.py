"""Elementwise functions: `tl.exp`, also as `tl.math.exp` and as methods `x.exp()`.

    p = tl.exp2((scores - row_max[:, None]) * 1.44269504)
    rstd = 1 / tl.sqrt(variance + eps)

Most take fp32 and fp64 only, as in Triton: convert narrower floats with `.to(tl.float32)` first.
"""

from __future__ import annotations

from typing import Any

from deuteron.language.builtin import builtin
from deuteron.language.extra import libdevice
from deuteron.language.tensor import tensor

Operand = tensor | float


@builtin
def exp(x: Operand) -> tensor:
    """e to the power of `x`. On GPUs fp32 results below 2**-126 are 0. Types: fp32, fp64; any other is an error."""


@builtin
def exp2(x: Operand) -> tensor:
    """2 to the power of `x`. On GPUs fp32 results below 2**-126 are 0. Types: fp32, fp64; any other is an error."""


@builtin
def log(x: Operand) -> tensor:
    """The natural logarithm of `x`. Types: fp32, fp64; any other is an error."""


@builtin
def log2(x: Operand) -> tensor:
    """The logarithm of `x` to base 2. Types: fp32, fp64; any other is an error."""


@builtin
def cos(x: Operand) -> tensor:
    """The cosine of `x` radians. Types: fp32, fp64; any other is an error."""


@builtin
def sin(x: Operand) -> tensor:
    """The sine of `x` radians. Types: fp32, fp64; any other is an error."""


@builtin
def sqrt(x: Operand) -> tensor:
    """The square root of `x`, at a GPU's usual precision. Types: fp32, fp64; any other is an error."""


@builtin
def sqrt_rn(x: Operand) -> tensor:
    """The square root of `x`, correctly rounded. Type: fp32; any other is an error."""


@builtin
def rsqrt(x: Operand) -> tensor:
    """One over the square root of `x`. Types: fp32, fp64; any other is an error."""


@builtin
def erf(x: Operand) -> tensor:
    """The error function of `x`. Types: fp32, fp64; any other is an error."""


@builtin
def floor(x: Operand) -> tensor:
    """`x` rounded down to a whole number, still a float. Types: fp32, fp64; any other is an error."""


@builtin
def ceil(x: Operand) -> tensor:
    """`x` rounded up to a whole number, still a float. Types: fp32, fp64; any other is an error."""


@builtin
def abs(x: Operand) -> tensor:
    """The absolute value of `x`; Python's `abs(x)` in a kernel.

    All integers and floats. The least signed integer stays as it is, unsigned ones do anyway. Error: pointers.
    """


@builtin
def fdiv(x: Operand, y: Operand, ieee_rounding: bool = False, approx: bool = False) -> tensor:
    """`x / y` of floats.

    :param ieee_rounding: whether the quotient is correctly rounded.
    :param approx: whether it may be off by two units in the last place; fp32 only.

    Errors: integers, both options at once, `approx` of another type than fp32.
    """


@builtin
def div_rn(x: Operand, y: Operand) -> tensor:
    """`x / y`, correctly rounded. Type: fp32; any other is an error."""


@builtin
def fma(x: Operand, y: Operand, z: Operand) -> tensor:
    """`x * y + z`, rounded once. Operands are broadcast and promoted to one float type.

    Error: operands that are all integers (use `x * y + z`).
    """


@builtin
def umulhi(x: Operand, y: Operand) -> tensor:
    """The high half of the product of `x` and `y` as unsigned integers.

    Types: int32, uint32, int64, uint64; any other is an error.
    """


def __getattr__(name: str) -> Any:
    """What older versions of Triton had here, too: the functions of libdevice."""
    return getattr(libdevice, name)
