"""What a run of the interpreter may do otherwise, and by how much.

noise = Noise(np.random.default_rng(1), Licence(fuses=True))
noise.moved(result, noise.ulp(result, type), type)      a unit in the last place more or less, by lot
noise.anything(result, ~mask)                           random bits where nothing is said
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from xdsl.ir import Operation

from deuteron.interpreter.values import dtype_of, round_float
from deuteron.ir.rule_table import Rule
from deuteron.ir.types import element_type_of, f64
from tests.fuzz.exactness import LEAST, MANTISSA, wider

Wrappers = dict[type[Operation], Callable[[Rule], Rule]]
"""By op, what makes another rule of its rule."""


@dataclass
class Licence:
    """What a run may do. `taken` counts the operations that were perturbed.

    fuses  a product and a sum may be rounded once
    has_undefined  what is defined here and not in MLIR is anything: a quotient by 0, that of the least integer by -1,
                   a shift by as many bits as there are, or more
    """

    fuses: bool
    has_undefined: bool = False
    taken: int = 0


class Noise:
    """Of one run. `is_combining`: in a reduction or a scan, where the order is free."""

    def __init__(self, rng: np.random.Generator, licence: Licence):
        self.rng, self.licence = rng, licence
        self.is_combining = False

    def moved(self, result: np.ndarray, size: np.ndarray, type) -> np.ndarray:
        """`result` and up to `size` more or less, rounded to the type; what is not finite stays. Now and then all move
        the same way, as equal elements do, whose maximum would hardly ever be less. In one of two calls all move by
        the whole of `size`, so that few runs show how much it is; in the other by some of it, for what is between may
        be rounded to what neither end is: `s - max(s)` of products that are fused, as fp16.
        """
        self.licence.taken += 1
        wide = np.asarray(result, np.float64)
        sign = self.rng.choice((-1.0, 1.0), np.shape(wide) if self.rng.random() < 0.75 else ())
        share = 1.0 if self.rng.random() < 0.5 else self.rng.random(np.shape(wide))
        moved = np.where(np.isfinite(wide), wide + sign * share * size, wide)
        if element_type_of(type) == f64:
            return moved
        return np.asarray(round_float(np.asarray(moved), type), dtype_of(type))[()]

    def ulp(self, result: np.ndarray, type) -> np.ndarray:
        """The unit in the last place of each element."""
        element = element_type_of(type)
        with np.errstate(all="ignore"):
            exponent = np.frexp(np.abs(np.asarray(result, np.float64)))[1] - 1
            return np.maximum(np.ldexp(1.0, exponent - MANTISSA[element]), LEAST[element])

    def rounded(self, op, result: np.ndarray, exact: np.ndarray) -> np.ndarray:
        """With noise where a result was rounded."""
        type = op.results[0].type
        is_exact = (exact == wider(result)) | ~np.isfinite(result)
        if element_type_of(type) not in MANTISSA or np.all(is_exact):
            return result
        return self.moved(result, np.where(is_exact, 0.0, self.ulp(result, type)), type)

    def coins(self, like: np.ndarray) -> np.ndarray:
        return self.rng.integers(0, 2, np.shape(like))

    def either_sign(self, result: np.ndarray, where: np.ndarray) -> np.ndarray:
        """What is there has either sign."""
        if not np.any(where):
            return result
        self.licence.taken += 1
        return np.where(where & (self.coins(result) < 1), -result, result)[()].astype(result.dtype)

    def anything(self, result: np.ndarray, where: np.ndarray, is_finite: bool = True) -> np.ndarray:
        """Random bits there; of floats numbers around 0, and some that are none unless `is_finite`."""
        if not np.any(where):
            return result
        self.licence.taken += 1
        result = np.asarray(result)
        if result.dtype.kind == "b":
            random = self.rng.integers(0, 2, result.shape).astype(bool)
        elif result.dtype.kind == "f":
            numbers = self.rng.standard_normal(result.shape)
            others = self.rng.choice((np.nan, np.inf, -np.inf), result.shape)
            is_number = is_finite | (self.rng.random(result.shape) < 0.75)
            random = np.where(is_number, numbers, others).astype(result.dtype)
        else:
            random = self.rng.integers(0, 1 << 64, result.shape, np.uint64).astype(result.dtype)
        return np.where(where, random, result)[()]
