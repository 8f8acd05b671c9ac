"""exp and exp2 on vectors of AVX-512, which multiplies by 2**n in one instruction, rounding once (VSCALEFPS and PD).

    exp(b, x)       y = e**r as everywhere;  y scaled by 2**n in the lanes whose result is not 0, which others are

A lane that is masked off takes no time, where one that underflows takes 90 ns. Bit by bit what `exponentials` gives.
"""

from __future__ import annotations

from deuteron.backend.cpu.math.functions import FUNCTIONS
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.intrinsics import SCALEF_PD, SCALEF_PS
from deuteron.backend.llvm.types import Value, const, element, vector, width, zero
from deuteron.backend.math import exponentials
from deuteron.backend.math.vectors import concatenated
from deuteron.machine.cpu import CPU

_INTRINSICS = {"float": (SCALEF_PS, 16), "double": (SCALEF_PD, 8)}
_ROUNDS_AS_SET = 4
_POWERS = {"exp": exponentials.exp_by, "exp2": exponentials.exp2_by}


def power(name: str, b: Builder, x: Value, target: CPU) -> Value:
    """exp or exp2."""
    _, lanes = _INTRINSICS[element(x.type)]
    if target.vector_bits < 512 or width(x.type) % lanes:
        return FUNCTIONS[name](b, x)
    return _POWERS[name](b, x, _scaled)


def _scaled(b: Builder, y: Value, n: Value, is_kept: Value) -> Value:
    """y * 2**n, register by register; 0 in lanes that are not kept."""
    intrinsic, lanes = _INTRINSICS[element(y.type)]
    type = vector(element(y.type), lanes)
    parts = []
    for first in range(0, width(y.type), lanes):
        numbers = range(first, first + lanes)
        own, by, kept = (b.shufflevector(value, value, numbers) for value in (y, n, is_kept))
        mask = b.bitcast(kept, f"i{lanes}")
        parts.append(b.call(type, intrinsic, own, by, zero(type), mask, const("i32", _ROUNDS_AS_SET)))
    return concatenated(b, parts)
