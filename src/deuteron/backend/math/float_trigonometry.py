"""sin and cos of float in float and integers alone, on GPUs and on CPUs that fuse multiply-adds.

Right for every argument. Worst error found: 0.9 ulp; of `near_sin` and `near_cos`, which take about half of the
instructions, 1.54 (all floats below 2**17; CUDA's own are within 2).

    n = round(x / (pi/2)),  r = x - n pi/2,  |r| <= 0.79;  the last two bits of n choose between +-sin r and +-cos r

r is a sum of two floats, of which the near ones keep the first. Up to 2**17, pi/2 is taken in three parts (Cody and
Waite): x less the first part times n is exact, that times the second as a sum of two, and what the difference loses is
found by Knuth's sum. Beyond, a function of the module multiplies x with the bits of 1 / (2 pi) that matter (Payne and
Hanek):

    { float r, float rest, i32 n } @reduce_large.float(float x)       NaN for infinity

x is m * 2**k with a whole m of 24 bits. Of the bits of 1 / (2 pi) only 96 matter, those from position k on: what stands
before gives whole turns, what comes after is below the result's precision. m times them, as three products of 32-bit
words, is the fraction of a turn in 64 bits; its first two bits, rounded, are n.
"""

from __future__ import annotations

from collections.abc import Sequence

from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, const, element
from deuteron.backend.math import trigonometry
from deuteron.backend.math.polynomial import FLOAT, bits_of, evaluate, number
from deuteron.backend.math.quadrant import LargeAngles, replace_large

_TWO_OVER_PI = 0.6366197723675814
# The first two from below, so that x less n of them keeps the sign of zero.
_PI_OVER_2 = (1.570796251296997, 7.549789415861596e-08, 5.390302953474238e-15)
_LARGE = 2.0**17

# sin r = r + r**3 S(r**2), cos r = 1 - r**2 / 2 + r**4 C(r**2) = 1 + r**2 (-1/2, *C)(r**2)
_SIN = (-0.16666653752326965, 0.00833214819431305, -0.0001951353915501386)
_COS = (0.04166664555668831, -0.0013887298991903663, 2.4431163183180615e-05)

_TAU = (6.2831854820251465, -1.7484555314695172e-07)

Reduced = tuple[Value, Value, Value]


def sin(b: Builder, x: Value) -> Value:
    if element(x.type) == "double":
        return trigonometry.sin(b, x)
    y = _of_quadrant(b, x, 0)
    return b.select(b.fcmp("oeq", x, number(x, 0.0)), x, y)  # the sign of zero


def cos(b: Builder, x: Value) -> Value:
    return trigonometry.cos(b, x) if element(x.type) == "double" else _of_quadrant(b, x, 1)


def near_sin(b: Builder, x: Value) -> Value:
    return trigonometry.sin(b, x) if element(x.type) == "double" else _near_quadrant(b, x, 0)


def near_cos(b: Builder, x: Value) -> Value:
    return trigonometry.cos(b, x) if element(x.type) == "double" else _near_quadrant(b, x, 1)


def _of_quadrant(b: Builder, x: Value, first_quadrant: int) -> Value:
    """sin(x + first_quadrant * pi/2)."""
    r, rest, n = reduce_angle(b, x)
    square = _mul(b, r, r)
    sine, cosine = _sine(b, r, rest, square), _cosine(b, r, rest, square)
    return _turned(b, sine, cosine, b.add(n, const(n.type, first_quadrant)))


def _near_quadrant(b: Builder, x: Value, first_quadrant: int) -> Value:
    r, n = replace_large(b, x, _near_small, _LARGE, _near_large)
    square = _mul(b, r, r)
    # 0.0 is added so that what is multiplied with a zero has no sign
    sine = b.fma(r, b.fma(square, evaluate(b, square, _SIN), number(r, 0.0)), r)
    cosine = b.fma(square, evaluate(b, square, (-0.5, *_COS)), number(r, 1.0))
    return _turned(b, sine, cosine, b.add(n, const(n.type, first_quadrant)))


def _turned(b: Builder, sine: Value, cosine: Value, n: Value) -> Value:
    """sin(r + n * pi/2), of sin r and cos r."""
    is_odd = b.icmp("ne", b.and_(n, const(n.type, 1)), const(n.type, 0))
    bits = bits_of(b, b.select(is_odd, cosine, sine))
    return b.bitcast(b.xor(bits, b.shl(b.and_(n, const(n.type, 2)), const(n.type, 30))), sine.type)


def _sine(b: Builder, r: Value, rest: Value, square: Value) -> Value:
    cube = _mul(b, r, square)
    return _add(b, r, b.fma(cube, evaluate(b, square, _SIN), rest))


def _cosine(b: Builder, r: Value, rest: Value, square: Value) -> Value:
    """1 - r**2 / 2 with what its rounding loses, and -r rest, added to what follows."""
    one, half = number(r, 1.0), _mul(b, square, number(r, 0.5))
    main = _sub(b, one, half)
    lost = b.fma(b.fneg(r), rest, _sub(b, _sub(b, one, main), half))
    return _add(b, main, b.fma(_mul(b, square, square), evaluate(b, square, _COS), lost))


def reduce_angle(b: Builder, x: Value) -> Reduced:
    """r, what is left of it, and n modulo 4 at least."""
    r, rest, n = replace_large(b, x, _reduce_small, _LARGE, _reduce_large)
    return r, rest, n


def _near_large(b: Builder, x: Value) -> list[Value]:
    r, rest, n = _reduce_large(b, x)
    return [_add(b, r, rest), n]


def _near_small(b: Builder, x: Value) -> list[Value]:
    shifted, whole = _quarter_turns(b, x)
    r, minus = x, b.fneg(whole)
    for part in _PI_OVER_2:
        r = b.fma(minus, number(x, part), r)
    return [r, bits_of(b, shifted)]


def _quarter_turns(b: Builder, x: Value) -> tuple[Value, Value]:
    """How many, in the low bits of a float, and as a float."""
    shifted = b.fma(x, number(x, _TWO_OVER_PI), number(x, FLOAT.rounder))
    return shifted, _sub(b, shifted, number(x, FLOAT.rounder))


def _reduce_small(b: Builder, x: Value) -> Reduced:
    shifted, whole = _quarter_turns(b, x)
    first, second, third = (number(x, part) for part in _PI_OVER_2)
    minus = b.fneg(whole)
    exact = b.fma(minus, first, x)
    product = _mul(b, minus, second)
    lost_product = b.fma(minus, second, b.fneg(product))
    r = _add(b, exact, product)
    seen = _sub(b, r, exact)
    lost = _add(b, _sub(b, exact, _sub(b, r, seen)), _sub(b, product, seen))
    return r, b.fma(minus, third, _add(b, lost, lost_product)), bits_of(b, shifted)


def _split(b: Builder, m: Value, window: Sequence[Value]) -> tuple[Value, Value, Value]:
    """The quarter turns nearest to a fraction of 2**64, and the angle that is left, as a sum of two floats."""
    turn = _multiply(b, m, *window)
    n = b.lshr(b.add(turn, const("i64", 1 << 61)), const("i64", 62))
    r, rest = _angle(b, b.sub(turn, b.shl(n, const("i64", 62))))
    return b.trunc(n, "i32"), r, rest


def _multiply(b: Builder, m: Value, *words: Value) -> Value:
    """The upper 64 of the low 96 bits of m times three words."""
    first, middle, last = (b.mul(b.zext(m, "i64"), b.zext(word, "i64")) for word in words)
    carried = b.add(middle, b.lshr(last, const("i64", 32)))
    return b.add(b.shl(first, const("i64", 32)), carried)


def _angle(b: Builder, fraction: Value) -> tuple[Value, Value]:
    """A signed fraction of 2**64 of a turn, in radians, as a sum of two floats."""
    high = b.sitofp(fraction, "float")
    low = b.sitofp(b.sub(fraction, b.fptosi(high, "i64")), "float")
    tau, rest_of_tau = (const("float", part * 2.0**-64) for part in _TAU)
    r = _mul(b, high, tau)
    rest = b.fma(high, tau, b.fneg(r))
    return r, b.fma(low, tau, b.fma(high, rest_of_tau, rest))


_reduce_large = LargeAngles("float", 32, 23, 8, _split).reduce  # k is 104 at most


def _mul(b: Builder, x: Value, y: Value) -> Value:
    return b.fmul(x, y, flags="")


def _add(b: Builder, x: Value, y: Value) -> Value:
    return b.fadd(x, y, flags="")


def _sub(b: Builder, x: Value, y: Value) -> Value:
    return b.fsub(x, y, flags="")
