"""The functions of libdevice, by the names of `language/extra/libdevice.py`, for every target.

    FUNCTIONS["tanh"](Number(b, value, unit))        a Number: of float or double as its argument is
    lower(b, "tanh", "__nv_tanhf", values, unit)     the same of values of LLVM IR

number.py pair.py of the folder above      the notation: Python's operators, sums of two floats for twice the digits
exponential.py logarithm.py root.py angle.py error.py        expanded in line, on scalars and vectors
gamma.py inverse_error.py bessel.py         called, in double (shared.py)
whole.py bits.py convert.py rounding.py modulo.py           what is exact
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value
from deuteron.backend.math import exponentials, logarithms
from deuteron.backend.math.extern import (
    angle,
    bessel,
    bits,
    convert,
    error,
    exponential,
    gamma,
    inverse_error,
    logarithm,
    modulo,
    root,
    rounding,
    whole,
)
from deuteron.backend.math.number import FloatUnit, Function, Number, fused, square_root
from deuteron.errors import CompilationError
from deuteron.language.extern import PREFIX

NONE: Mapping[str, Function] = {}


def _emitted(emit) -> Function:
    """One of the language's own functions."""
    return lambda x: x.make(emit(x.b, x.value))


def _fma(x: Number, y: Number, z: Number) -> Number:
    return fused(x, y, z) if x.unit.fuses else rounding.FUNCTIONS["fma_rn"](x, y, z)


def _upper_reciprocal(x: Number) -> Number:
    return ((1.0 / x).bits() & -(1 << 32)).as_float("double")


# By the symbol where overloads differ in more than the width, else by the name.
FUNCTIONS: dict[str, Function] = {
    **bits.FUNCTIONS,
    **convert.FUNCTIONS,
    **rounding.FUNCTIONS,
    "fabsf": whole.absolute,
    "fabs": whole.absolute,
    "abs": whole.absolute,
    "llabs": whole.absolute,
    "fminf": whole.minimum,
    "fmin": whole.minimum,
    "fmaxf": whole.maximum,
    "fmax": whole.maximum,
    "powif": logarithm.powi,
    "powi": logarithm.powi,
    "floor": whole.floor,
    "ceil": whole.ceil,
    "trunc": whole.trunc,
    "rint": whole.rint,
    "nearbyint": whole.rint,
    "round": whole.round,
    "llrint": whole.llrint,
    "llround": whole.llround,
    "isnan": whole.isnan,
    "isinf": whole.isinf,
    "finitef": whole.isfinite,
    "isfinited": whole.isfinite,
    "signbit": whole.signbit,
    "copysign": whole.copysign,
    "nextafter": whole.nextafter,
    "fdim": whole.fdim,
    "saturatef": whole.saturate,
    "ilogb": whole.ilogb,
    "logb": whole.logb,
    "ldexp": whole.ldexp,
    "scalbn": whole.ldexp,
    "fma": _fma,
    "fmod": modulo.fmod,
    "remainder": modulo.remainder_by(modulo.fmod),
    "rcp64h": _upper_reciprocal,
    "fast_sinf": angle.sin,
    "fast_cosf": angle.cos,
    "fast_tanf": angle.tan,
    "fast_log2f": _emitted(logarithms.log2),
    "fast_logf": _emitted(logarithms.log),
    "fast_log10f": logarithm.log10,
    "fast_expf": _emitted(exponentials.exp),
    "fast_exp10f": exponential.exp10,
    "fast_powf": lambda x, y: _emitted(exponentials.exp2)(y * _emitted(logarithms.log2)(x)),
    "fast_dividef": lambda x, y: x / y,
    "sqrt": square_root,
    "rsqrt": root.rsqrt,
    "rsqrt_rn": root.rsqrt,
    "exp": _emitted(exponentials.exp),
    "exp2": _emitted(exponentials.exp2),
    "exp10": exponential.exp10,
    "expm1": exponential.expm1,
    "log": _emitted(logarithms.log),
    "log2": _emitted(logarithms.log2),
    "log10": logarithm.log10,
    "log1p": logarithm.log1p,
    "pow": logarithm.pow,
    "cbrt": root.cbrt,
    "rcbrt": root.rcbrt,
    "hypot": root.norm,
    "norm3d": root.norm,
    "norm4d": root.norm,
    "rhypot": root.rnorm,
    "rnorm3d": root.rnorm,
    "rnorm4d": root.rnorm,
    "sin": angle.sin,
    "cos": angle.cos,
    "tan": angle.tan,
    "sinpi": angle.sinpi,
    "cospi": angle.cospi,
    "asin": angle.asin,
    "acos": angle.acos,
    "atan": angle.atan,
    "atan2": angle.atan2,
    "sinh": exponential.sinh,
    "cosh": exponential.cosh,
    "tanh": exponential.tanh,
    "asinh": logarithm.asinh,
    "acosh": logarithm.acosh,
    "atanh": logarithm.atanh,
    "erf": error.erf,
    "erfc": error.erfc,
    "erfcx": error.erfcx,
    "normcdf": error.normcdf,
    "erfinv": inverse_error.erfinv,
    "erfcinv": inverse_error.erfcinv,
    "normcdfinv": inverse_error.normcdfinv,
    "lgamma": gamma.lgamma,
    "tgamma": gamma.tgamma,
    "j0": bessel.j0,
    "j1": bessel.j1,
    "jn": bessel.jn,
    "y0": bessel.y0,
    "y1": bessel.y1,
    "yn": bessel.yn,
    "cyl_bessel_i0": bessel.i0,
    "cyl_bessel_i1": bessel.i1,
}


def lower(
    b: Builder,
    name: str,
    symbol: str,
    values: Sequence[Value],
    unit: FloatUnit,
    own: Mapping[str, Function] = NONE,
) -> Value:
    """Emit a function: a target's own before the common one, that of the symbol before that of the name."""
    keys = symbol.removeprefix(PREFIX), name
    function = next((table[key] for table in (own, FUNCTIONS) for key in keys if key in table), None)
    if function is None:
        raise CompilationError(f"libdevice.{name} is not supported yet.")
    return function(*(Number(b, value, unit) for value in values)).value
