"""The functions of the dialect `math`, division and its remainder, for scalars of float and double on any GPU.

    FUNCTIONS["exp"](b, x)

A target replaces those for which it has instructions.
"""

from __future__ import annotations

from collections.abc import Callable

from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, const
from deuteron.backend.math.error_function import erf
from deuteron.backend.math.exponentials import exp, exp2, tanh
from deuteron.backend.math.float_trigonometry import cos, sin
from deuteron.backend.math.logarithms import log, log2
from deuteron.backend.math.remainder import remainder

Emit = Callable[..., Value]

# Of one argument, with a branch for few arguments, in the language and in libdevice: one for a vector is cheaper.
BRANCHING = frozenset({"sin", "cos"})


def precise_divide(b: Builder, x: Value, y: Value) -> Value:
    return b.fdiv(x, y, flags="")


def precise_rsqrt(b: Builder, x: Value) -> Value:
    return b.fdiv(const(x.type, 1.0), b.sqrt(x), flags="")


OPERATORS = frozenset({"divide", "remainder"})
FUNCTIONS: dict[str, Emit] = {
    "exp": exp,
    "exp2": exp2,
    "log": log,
    "log2": log2,
    "sin": sin,
    "cos": cos,
    "tanh": tanh,
    "erf": erf,
    "sqrt": Builder.sqrt,
    "rsqrt": precise_rsqrt,
    "divide": precise_divide,
    "remainder": remainder,
}
