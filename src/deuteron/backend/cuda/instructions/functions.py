"""Mathematical functions on f32 and f64, of PTX's approximations where they are as good as Triton's, else expanded.

    exp     2 ** (x log2 e) by ex2.approx: 2 ulp and 1 for each 2**6 that |x| has       exp2    ex2.approx, 2 ulp
    sqrt    sqrt.approx, 1 ulp            rsqrt   rsqrt.approx, 2 ulp            x / y   div.full, 2 ulp
    sin cos     in float alone (float_trigonometry.py), 1.54 ulp
    log         in float float_logarithms.py, 0.92 ulp
    log2 tanh erf, and everything in f64: the expansions of backend/math, 2.6 ulp at most

Results of exp and exp2 below 2**-126 are zero, as Triton's are: without .ftz, each ex2 is four instructions. With the
option `enable_reflect_ftz=False` they are not.
LLVM must not see llvm.exp, llvm.log, llvm.sin and their like: on NVPTX they end the process.
"""

from __future__ import annotations

from functools import partial

from deuteron.backend.cuda.instructions import float_logarithms
from deuteron.backend.cuda.instructions.float_remainders import remainder
from deuteron.backend.cuda.instructions.quotients import near_quotient
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, const
from deuteron.backend.math import functions, logarithms
from deuteron.backend.math.exponentials import LOG2_E
from deuteron.backend.math.float_trigonometry import near_cos, near_sin
from deuteron.backend.math.functions import Emit, precise_divide, precise_rsqrt
from deuteron.backend.math.number import FloatUnit, Number


def _exponentials(instruction: str) -> dict[str, Emit]:
    """exp and exp2 by an instruction of f32."""

    def fast_exp2(b: Builder, x: Value) -> Value:
        return functions.exp2(b, x) if x.type == "double" else b.call("float", instruction, x)

    def fast_exp(b: Builder, x: Value) -> Value:
        if x.type == "double":
            return functions.exp(b, x)
        return fast_exp2(b, b.fmul(x, const("float", LOG2_E), flags=""))

    return {"exp": fast_exp, "exp2": fast_exp2}


def fast_sqrt(b: Builder, x: Value) -> Value:
    return b.sqrt(x) if x.type == "double" else b.call("float", "llvm.nvvm.sqrt.approx.f", x)


def fast_rsqrt(b: Builder, x: Value) -> Value:
    return precise_rsqrt(b, x) if x.type == "double" else b.call("float", "llvm.nvvm.rsqrt.approx.f", x)


def fast_divide(b: Builder, x: Value, y: Value) -> Value:
    return precise_divide(b, x, y) if x.type == "double" else b.call("float", "llvm.nvvm.div.full", x, y)


def near_log(b: Builder, x: Value) -> Value:
    if x.type == "double":
        return logarithms.log(b, x, divide=near_quotient)
    return float_logarithms.log(Number(b, x, FloatUnit(fuses=True, rounds=True, doubles=False))).value


FUNCTIONS: dict[str, Emit] = {
    **functions.FUNCTIONS,
    **_exponentials("llvm.nvvm.ex2.approx.ftz.f32"),
    "sqrt": fast_sqrt,
    "rsqrt": fast_rsqrt,
    "divide": fast_divide,
    "sin": near_sin,
    "cos": near_cos,
    "remainder": remainder,
    "log": near_log,
    "log2": partial(logarithms.log2, divide=near_quotient),
}
WITH_SUBNORMALS: dict[str, Emit] = {**FUNCTIONS, **_exponentials("llvm.nvvm.ex2.approx.f32")}
