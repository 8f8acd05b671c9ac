"""Integers: what is defined here and not in MLIR, where a run may leave it open."""

from __future__ import annotations

import numpy as np
from xdsl.dialects import arith

from deuteron.ir.rule_table import Rule
from deuteron.ir.types import bit_width_of
from tests.fuzz.perturb.noise import Noise, Wrappers

_QUOTIENTS = (arith.DivSIOp, arith.DivUIOp, arith.RemSIOp, arith.RemUIOp)
_SHIFTS = (arith.ShLIOp, arith.ShRSIOp, arith.ShRUIOp)


class Integers:
    """Quotients by 0, the least integer by -1, shifts by as many bits as there are."""

    def __init__(self, noise: Noise):
        self._noise = noise

    def wrappers(self) -> Wrappers:
        if not self._noise.licence.has_undefined:
            return {}
        return {**dict.fromkeys(_QUOTIENTS, self._quotient), **dict.fromkeys(_SHIFTS, self._shift)}

    def _quotient(self, rule: Rule) -> Rule:
        def perturbed(ctx, op, a, b):
            is_least = np.asarray(a) == -(1 << bit_width_of(op.results[0].type) - 1)
            return self._noise.anything(rule(ctx, op, a, b), (np.asarray(b) == 0) | (is_least & (np.asarray(b) == -1)))

        return perturbed

    def _shift(self, rule: Rule) -> Rule:
        def perturbed(ctx, op, a, b):
            bits = bit_width_of(op.results[0].type)
            return self._noise.anything(rule(ctx, op, a, b), (np.asarray(b) < 0) | (np.asarray(b) >= bits))

        return perturbed
