"""erfinv, erfcinv and normcdfinv, in double: polynomials in w = -log((1 - x) (1 + x)) and its root.

w < 6.25             x P(w)
root of w < 4, 6.25  +-P(root)
beyond               +-root P(1 / root)        for erfcinv of numbers as small as there are
"""

from __future__ import annotations

import math

from deuteron.backend.math import logarithms
from deuteron.backend.math.coefficients_special import ERFINV_CENTRAL, ERFINV_FAR, ERFINV_FARTHEST, ERFINV_TAIL
from deuteron.backend.math.extern.shared import branch, shared
from deuteron.backend.math.number import Number, polynomial, square_root, with_sign_of


def _erfinv(x: Number) -> Number:
    return _inverse(x, (1.0 - x) * (x + 1.0))


def _erfcinv(x: Number) -> Number:
    return _inverse(1.0 - x, x * (2.0 - x))


def _normcdfinv(x: Number) -> Number:
    return _erfcinv(x + x) * -math.sqrt(2.0)


def _inverse(x: Number, product: Number) -> Number:
    """erfinv(x), where `product` is (1 - x) (1 + x)."""
    w = -x.make(logarithms.log(x.b, product.value))
    return branch(w < 6.25, lambda: x * polynomial(w - 3.125, ERFINV_CENTRAL), lambda: with_sign_of(_tail(w), x))


def _tail(w: Number) -> Number:
    root = square_root(w)
    return branch(
        root < 4.0,
        lambda: polynomial(root - 3.25, ERFINV_TAIL),
        lambda: branch(
            root < 6.25,
            lambda: polynomial(root - 5.0, ERFINV_FAR),
            lambda: polynomial(1.0 / root - 0.1, ERFINV_FARTHEST) * root,
        ),
    )


erfinv, erfcinv, normcdfinv = shared("erfinv", _erfinv), shared("erfcinv", _erfcinv), shared("normcdfinv", _normcdfinv)
