"""Rules for `tt.extern_elementwise`: the functions of libdevice, by name, in NumPy.

Of floats up to f32 a function is computed in float64 and rounded once. `numerics/special_functions.py` has those that
neither NumPy nor Python has, `rounding.py` beside it arithmetic in other roundings.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from deuteron.analysis.extern_functions import name_of
from deuteron.errors import CompilationError
from deuteron.interpreter.math import count_ones, leading_zeros, round_half_away, trailing_zeros
from deuteron.interpreter.numerics import norms, special_functions
from deuteron.interpreter.numerics.extrema import larger, smaller
from deuteron.interpreter.numerics.rounding import ROUNDED, float_to_integer
from deuteron.interpreter.values import as_unsigned, dtype_of
from deuteron.ir.rule_table import RuleTable
from deuteron.ir.tt.extern import ExternElementwiseOp
from deuteron.language.extern import PREFIX
from deuteron.language.extra.libdevice import SYMBOLS

RULES = RuleTable()


@RULES.on(ExternElementwiseOp)
def extern_elementwise(ctx, op, *operands):
    name_of(op)
    return compute(op.symbol.data, *operands).astype(dtype_of(op.result.type), copy=False)


def is_exact(symbol: str) -> bool:
    """Whether the function is exact, or correctly rounded, on every executor."""
    return symbol.removeprefix(PREFIX) in _EXACT or SYMBOLS[symbol][0] in _EXACT


def compute(symbol: str, *operands: np.ndarray) -> np.ndarray:
    """The function of a symbol, before it is rounded to its type."""
    name, _ = SYMBOLS[symbol]
    shape = np.shape(operands[0])
    return _compute(name, symbol, *map(np.atleast_1d, operands)).reshape(shape)


def _compute(name: str, symbol: str, *operands: np.ndarray) -> np.ndarray:
    function = _EXACT.get(symbol.removeprefix(PREFIX)) or _EXACT.get(name)
    if function is not None:
        return np.asarray(function(*operands))
    if name not in _FUNCTIONS:
        raise CompilationError(f"libdevice.{name} is not supported yet.")
    wide = [np.asarray(x, np.float64) if x.dtype.kind == "f" else x for x in operands]
    return np.asarray(_FUNCTIONS[name](*wide), np.float64)


def _elements(function: Callable[..., float]) -> Callable:
    """A function of Python's floats: where it is undefined NaN, where it overflows an infinity."""

    def element(*values):
        try:
            return function(*map(float, values))
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf

    made = np.frompyfunc(element, function.__code__.co_argcount if hasattr(function, "__code__") else 1, 1)
    return lambda *arrays: made(*arrays).astype(np.float64)


# -- bits and integers ---


def _ffs(x):
    return np.where(x == 0, 0, trailing_zeros(x) + 1)


def _reverse(x):
    octets = np.ascontiguousarray(as_unsigned(x))[..., None].view(np.uint8)
    bits = np.unpackbits(octets, axis=-1, bitorder="little")[..., ::-1]
    return np.packbits(bits, axis=-1, bitorder="little").view(x.dtype).reshape(np.shape(x))


def _byte_perm(x, y, selector):
    wide = as_unsigned(x).astype(np.uint64) | as_unsigned(y).astype(np.uint64) << np.uint64(32)
    result = np.zeros(np.shape(x), np.uint64)
    for place in range(4):
        chosen = as_unsigned(selector).astype(np.uint64) >> np.uint64(4 * place) & np.uint64(7)
        result |= (wide >> chosen * np.uint64(8) & np.uint64(0xFF)) << np.uint64(8 * place)
    return result.astype(np.uint32).view(np.int32)


def _as_objects(signed: bool, function: Callable) -> Callable:
    """A function of Python's integers, wrapped to the type of the first operand."""

    def rule(*operands):
        dtype = operands[0].dtype
        exact = [(x if signed else as_unsigned(x)).astype(object) for x in operands]
        mask = (1 << 8 * dtype.itemsize) - 1
        return np.asarray(function(*exact) & mask).astype(f"u{dtype.name}").view(dtype)

    return rule


def _high(signed: bool) -> Callable:
    return lambda x, y: _as_objects(signed, lambda a, b: a * b >> 8 * x.dtype.itemsize)(x, y)


def _low_24(x, signed: bool):
    low = x & 0xFFFFFF
    return low - ((low & 0x800000) << 1) if signed else low


def _pair(signed: bool, choose: Callable) -> Callable:
    return lambda x, y: choose(x, y) if signed else choose(as_unsigned(x), as_unsigned(y)).view(x.dtype)


# -- floats ---


def _number_first(choose: Callable) -> Callable:
    """fmin, fmax; of zeros of both signs the negative one is less."""

    def rule(x, y):
        chosen = choose(x, y)
        is_less = choose is smaller
        zero = np.where(np.signbit(x) | np.signbit(y) if is_less else np.signbit(x) & np.signbit(y), -0.0, 0.0)
        return np.where((x == 0) & (y == 0), zero.astype(x.dtype), chosen)

    return rule


def _ilogb(x):
    _, exponent = np.frexp(x)
    exponent = np.where((x == 0) | np.isnan(x), -(2**31), exponent - 1)
    return np.where(np.isinf(x), 2**31 - 1, exponent)


def _logb(x):
    return np.where(x == 0, -np.inf, np.where(np.isfinite(x), _ilogb(x), np.abs(x)))


def _saturate(x):
    return np.where(x > 0, np.minimum(x, 1), 0)


def _fdim(x, y):
    return np.where(x <= y, x.dtype.type(0), x - y)


def _ldexp(x, n):
    return np.ldexp(x, np.clip(n, -5000, 5000))


def _remainder(x, y):
    """IEEE's, which Python has."""
    return _elements(lambda a, b: math.remainder(a, b))(x, y)


def _of_half_turns(function: Callable) -> Callable:
    """sin or cos of pi x: x is first brought to [-1, 1], exactly."""

    def rule(x):
        rest = np.fmod(x, 2.0)
        turns = np.round(2.0 * rest)
        angle = np.pi * (rest - 0.5 * turns)
        quadrant = (turns.astype(np.int64) + (function is np.cos)) % 4
        value = np.where(quadrant % 2 == 1, np.cos(angle), np.sin(angle))
        value = np.where(quadrant >= 2, -value, value)
        return np.where((x == np.round(x)) & (function is np.sin), np.copysign(0.0, x) + 0.0 * x * 0, value)

    return rule


# Of the operands as they are.
_EXACT: dict[str, Callable] = {
    **ROUNDED,
    "clz": leading_zeros,
    "popc": lambda x: count_ones(as_unsigned(x)),
    "ffs": _ffs,
    "brev": _reverse,
    "byte_perm": _byte_perm,
    "int_as_float": lambda x: x.view(np.float32),
    "uint_as_float": lambda x: x.view(np.float32),
    "float_as_int": lambda x: x.view(np.int32),
    "float_as_uint": lambda x: x.view(np.int32),
    "longlong_as_double": lambda x: x.view(np.float64),
    "double_as_longlong": lambda x: x.view(np.int64),
    "hiloint2double": lambda high, low: (
        high.astype(np.int64) << np.int64(32) | as_unsigned(low).astype(np.int64)
    ).view(np.float64),
    "double2loint": lambda x: x.view(np.int64).astype(np.int32),
    "double2hiint": lambda x: (x.view(np.int64) >> np.int64(32)).astype(np.int32),
    "mulhi": _high(signed=True),
    "umulhi": _high(signed=False),
    "mul64hi": _high(signed=True),
    "umul64hi": _high(signed=False),
    "mul24": _as_objects(True, lambda x, y: _low_24(x, True) * _low_24(y, True)),
    "umul24": _as_objects(False, lambda x, y: _low_24(x, False) * _low_24(y, False)),
    "sad": _as_objects(True, lambda x, y, z: abs(x - y) + z),
    "usad": _as_objects(False, lambda x, y, z: abs(x - y) + z),
    "hadd": _as_objects(True, lambda x, y: x + y >> 1),
    "uhadd": _as_objects(False, lambda x, y: x + y >> 1),
    "rhadd": _as_objects(True, lambda x, y: x + y + 1 >> 1),
    "urhadd": _as_objects(False, lambda x, y: x + y + 1 >> 1),
    "abs": np.abs,
    "min": _pair(True, np.minimum),
    "umin": _pair(False, np.minimum),
    "llmin": _pair(True, np.minimum),
    "ullmin": _pair(False, np.minimum),
    "fminf": _number_first(smaller),
    "fmin": _number_first(smaller),
    "max": _pair(True, np.maximum),
    "umax": _pair(False, np.maximum),
    "llmax": _pair(True, np.maximum),
    "ullmax": _pair(False, np.maximum),
    "fmaxf": _number_first(larger),
    "fmax": _number_first(larger),
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "rint": np.rint,
    "nearbyint": np.rint,
    "round": round_half_away,
    "llrint": lambda x: float_to_integer(np.rint(x), 64, signed=True),
    "llround": lambda x: float_to_integer(round_half_away(x), 64, signed=True),
    "isnan": np.isnan,
    "isinf": np.isinf,
    "finitef": np.isfinite,
    "isfinited": np.isfinite,
    "signbit": np.signbit,
    "copysign": np.copysign,
    "nextafter": np.nextafter,
    "fdim": _fdim,
    "saturatef": _saturate,
    "ilogb": _ilogb,
    "ldexp": _ldexp,
    "scalbn": _ldexp,
    "fmod": np.fmod,
    "sqrt": np.sqrt,
    "fma": ROUNDED["fma_rn"],
    "rcp64h": lambda x: ((1.0 / x).view(np.int64) & -(1 << 32)).view(np.float64),
}

# Of float64, rounded once.
_FUNCTIONS: dict[str, Callable] = {
    "logb": _logb,
    "remainder": _remainder,
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "rsqrt_rn": lambda x: 1.0 / np.sqrt(x),
    "exp": np.exp,
    "exp2": np.exp2,
    "exp10": lambda x: np.power(10.0, x),
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "pow": lambda x, y: np.power(x, np.asarray(y, np.float64)),
    "hypot": norms.norm,
    "norm3d": norms.norm,
    "norm4d": norms.norm,
    "rhypot": norms.rnorm,
    "rnorm3d": norms.rnorm,
    "rnorm4d": norms.rnorm,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "sinpi": _of_half_turns(np.sin),
    "cospi": _of_half_turns(np.cos),
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "erf": _elements(math.erf),
    "erfc": _elements(math.erfc),
    **{name: _elements(function) for name, function in special_functions.FUNCTIONS.items()},
    "fast_sinf": np.sin,
    "fast_cosf": np.cos,
    "fast_tanf": np.tan,
    "fast_log2f": np.log2,
    "fast_logf": np.log,
    "fast_log10f": np.log10,
    "fast_expf": np.exp,
    "fast_exp10f": lambda x: np.power(10.0, x),
    "fast_powf": lambda x, y: np.exp2(y * np.log2(x)),
    "fast_dividef": np.divide,
}
