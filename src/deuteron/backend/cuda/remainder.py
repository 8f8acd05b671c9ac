"""The exact remainder of a division of floats (C's fmod), as a function of the module.

    double @float_remainder(double x, double y):    while |r| >= |y|:  r -= trunc(r / y) * y

Where a quotient q is the double nearest to r / y, r - q * y has an exact double, which a fused multiply-add gives; each
round takes 52 bits off. A remainder that was rounded past zero gets y added.
"""

from __future__ import annotations

from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.module import Module
from deuteron.backend.llvm.types import Value, const

_NAME = "float_remainder"


def remainder(b: Builder, x: Value, y: Value) -> Value:
    """x - trunc(x / y) * y of float or double, exactly."""
    _define(b.module)
    result = b.call("double", _NAME, b.fpext(x, "double"), b.fpext(y, "double"))
    return b.fptrunc(result, x.type)


def _define(module: Module) -> None:
    if module.has_function(_NAME):
        return
    b = module.function(_NAME, "double", [("double", "x"), ("double", "y")], attributes="nounwind noinline")
    x, y = b.parameters
    before, head, body, end = b.current_block, b.block("head"), b.block("body"), b.block("end")
    b.br(head)
    b.position(head)
    rest = b.phi("double", [(x, before)])
    b.cond_br(b.fcmp("oge", _magnitude(b, rest), _magnitude(b, y)), body, end)
    b.position(body)
    quotient = b.intrinsic("llvm.trunc", "double", b.fdiv(rest, y, flags=""))
    b.add_incoming(rest, b.intrinsic("llvm.fma", "double", b.fneg(quotient), y, rest), body)
    b.br(head)
    b.position(end)
    b.ret(_with_sign_of(b, rest, x, y))


def _with_sign_of(b: Builder, rest: Value, x: Value, y: Value) -> Value:
    """The remainder moved to the side of zero that x is on."""
    size = b.intrinsic("llvm.copysign", "double", y, x)
    differs = b.fcmp("olt", b.fmul(rest, size, flags=""), const("double", 0.0))
    moved = b.select(differs, b.fadd(rest, size, flags=""), rest)
    return b.intrinsic("llvm.copysign", "double", moved, x)


def _magnitude(b: Builder, x: Value) -> Value:
    return b.intrinsic("llvm.fabs", "double", x)
