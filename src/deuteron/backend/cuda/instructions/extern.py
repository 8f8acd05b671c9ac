"""Functions of libdevice that PTX has: arithmetic in each rounding, and fast functions, which are those instructions.

add_rd    add.rm.f32, add.rm.f64        fast_expf    ex2.approx of the product with log2 e
"""

from __future__ import annotations

import math
from functools import partial

from deuteron.backend.cuda.instructions import (
    float_angles,
    float_errors,
    float_functions,
    float_gamma,
    float_logarithms,
    float_powers,
    float_roots,
    functions,
)
from deuteron.backend.cuda.instructions.float_functions import exp2, instruction
from deuteron.backend.math.extern.logarithm import acosh, asinh, atanh
from deuteron.backend.math.extern.modulo import remainder_by
from deuteron.backend.math.number import Function, Number

_MODES = {"rn": "rn", "rz": "rz", "rd": "rm", "ru": "rp"}


def _of_language(symbol: str) -> Function:
    emit = functions.FUNCTIONS[symbol.removesuffix("f")]
    return lambda *x: x[0].make(emit(x[0].b, *(one.value for one in x)))


def _rounded(name: str, mode: str) -> Function:
    return lambda *x: instruction(f"{name}.{mode}.{'d' if x[0].is_double else 'f'}", *x)


def _difference(mode: str) -> Function:
    add = _rounded("add", mode)
    return lambda x, y: add(x, -y)


def _log2(x: Number) -> Number:
    return instruction("lg2.approx.f", x)


def _sine(x: Number) -> Number:
    return instruction("sin.approx.f", x)


def _cosine(x: Number) -> Number:
    return instruction("cos.approx.f", x)


def _divide(x: Number, y: Number) -> Number:
    return instruction("div.approx.f", x, y)


FUNCTIONS: dict[str, Function] = {
    **float_functions.FUNCTIONS,
    **float_powers.FUNCTIONS,
    **float_roots.FUNCTIONS,
    **float_angles.FUNCTIONS,
    **float_errors.FUNCTIONS,
    **float_gamma.FUNCTIONS,
    "log10f": float_logarithms.log10,
    "log1pf": float_logarithms.log1p,
    **{f"{f.__name__}f": partial(f, log1p=float_logarithms.log1p) for f in (asinh, acosh, atanh)},
    **{name: _of_language(name) for name in ("sqrtf", "rsqrtf", "sinf", "cosf", "log", "log2")},
    "fmod": _of_language("remainder"),
    "remainder": remainder_by(_of_language("remainder")),
    "fast_sinf": _sine,
    "fast_cosf": _cosine,
    "fast_tanf": lambda x: _divide(_sine(x), _cosine(x)),
    "fast_log2f": _log2,
    "fast_logf": lambda x: _log2(x) * math.log(2.0),
    "fast_log10f": lambda x: _log2(x) * math.log10(2.0),
    "fast_expf": lambda x: exp2(x * math.log2(math.e)),
    "fast_exp10f": lambda x: exp2(x * math.log2(10.0)),
    "fast_powf": lambda x, y: exp2(y * _log2(x)),
    "fast_dividef": _divide,
}
for _mode, _suffix in _MODES.items():
    for _name in ("add", "mul", "div", "fma", "rcp", "sqrt"):
        FUNCTIONS[f"{_name}_{_mode}"] = _rounded(_name, _suffix)
    FUNCTIONS[f"sub_{_mode}"] = _difference(_suffix)
FLUSHING: dict[str, Function] = {**FUNCTIONS, **float_functions.FLUSHING}
