"""The functions that CPUs compute in several ways, of the language and of libdevice.

BY_TARGET["sin"](b, x, target)      in float where the CPU fuses multiply-adds, else in double
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from deuteron.backend.cpu.math.erf_pieces import erf
from deuteron.backend.cpu.math.log_pieces import log, log2
from deuteron.backend.cpu.math.powers import power
from deuteron.backend.cpu.math.tanh_pieces import tanh
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value
from deuteron.backend.math import float_trigonometry, trigonometry
from deuteron.machine.cpu import CPU


def sin(b: Builder, x: Value, target: CPU) -> Value:
    return (float_trigonometry if target.fuses else trigonometry).sin(b, x)


def cos(b: Builder, x: Value, target: CPU) -> Value:
    return (float_trigonometry if target.fuses else trigonometry).cos(b, x)


BY_TARGET: dict[str, Callable[[Builder, Value, CPU], Value]] = {
    "exp": partial(power, "exp"),
    "exp2": partial(power, "exp2"),
    "erf": erf,
    "log": log,
    "log2": log2,
    "sin": sin,
    "cos": cos,
    "tanh": tanh,
}
