"""The functions of CUDA's libdevice on tiles and scalars, on every target: `libdevice.tanh(x)`.

    from deuteron.language.extra import libdevice        as in Triton; also tl.math.tanh, tl.libdevice.tanh
    y = libdevice.pow(x, 2.5)

Operands are broadcast. A combination of types that a function does not have is promoted to one type as by an operator;
where it has not that either, the call is refused with a list of what there is. How exact each is: docs/math.md.
Functions of two types are named once, `tanh` for float and double. `_rn`, `_rz`, `_rd`, `_ru` say how it is rounded.
"""

# ruff: noqa: A001 (names of the language)
from __future__ import annotations

from deuteron.language.extern import converted, extern, name_all, of_floats, predicate, rounded, to_whole

# -- bits ---

clz = extern("How many of the highest bits are 0.", "int32 -> int32: clz", "int64 -> int32: clzll")
popc = extern("How many bits are 1.", "int32 -> int32: popc", "int64 -> int32: popcll")
ffs = extern(
    "The place of the lowest bit that is 1, from 1 on; of 0: 0.", "int32 -> int32: ffs", "int64 -> int32: ffsll"
)
brev = extern("The bits in reverse order.", "int32 -> int32: brev", "int64 -> int64: brevll")
byte_perm = extern(
    "Four of the eight bytes of two integers: the lowest three bits of each hexadecimal digit of `arg2`, from the "
    "lowest on, say which; the bytes of `arg0` are 0 to 3.",
    "int32, int32, int32 -> int32: byte_perm",
)
int_as_float = extern("The float with these bits.", "int32 -> fp32: int_as_float")
uint_as_float = extern("The float with these bits.", "uint32 -> fp32: uint_as_float")
float_as_int = extern("The bits of a float.", "fp32 -> int32: float_as_int")
float_as_uint = extern("The bits of a float, as int32, as in Triton.", "fp32 -> int32: float_as_uint")
longlong_as_double = extern("The double with these bits.", "int64 -> fp64: longlong_as_double")
double_as_longlong = extern("The bits of a double.", "fp64 -> int64: double_as_longlong")
hiloint2double = extern("The double with these upper and lower bits.", "int32, int32 -> fp64: hiloint2double")
double2loint = extern("The lower 32 bits of a double.", "fp64 -> int32: double2loint")
double2hiint = extern("The upper 32 bits of a double.", "fp64 -> int32: double2hiint")

# -- integers ---

mulhi = extern(
    "The upper half of the product.",
    "int32, int32 -> int32: mulhi",
    "uint32, uint32 -> uint32: umulhi",
    "int64, int64 -> int64: mul64hi",
    "uint64, uint64 -> uint64: umul64hi",
)
mul24 = extern(
    "The lower 32 bits of the product of the lower 24 bits of both.",
    "int32, int32 -> int32: mul24",
    "uint32, uint32 -> uint32: umul24",
)
sad = extern("|arg0 - arg1| + arg2.", "int32, int32, uint32 -> int32: sad", "uint32, uint32, uint32 -> uint32: usad")
hadd = extern(
    "The mean, rounded down, without overflow.", "int32, int32 -> int32: hadd", "uint32, uint32 -> uint32: uhadd"
)
rhadd = extern(
    "The mean, rounded up, without overflow.", "int32, int32 -> int32: rhadd", "uint32, uint32 -> uint32: urhadd"
)
abs = extern(
    "The absolute value; that of the least integer is itself.",
    "int32 -> int32: abs",
    "int64 -> int64: llabs",
    "fp32 -> fp32: fabsf",
    "fp64 -> fp64: fabs",
)
min = extern(
    "The smaller one; of a NaN and a number the number.",
    "int32, int32 -> int32: min",
    "uint32, uint32 -> uint32: umin",
    "int64, int64 -> int64: llmin",
    "uint64, uint64 -> uint64: ullmin",
    "fp32, fp32 -> fp32: fminf",
    "fp64, fp64 -> fp64: fmin",
)
max = extern(
    "The larger one; of a NaN and a number the number.",
    "int32, int32 -> int32: max",
    "uint32, uint32 -> uint32: umax",
    "int64, int64 -> int64: llmax",
    "uint64, uint64 -> uint64: ullmax",
    "fp32, fp32 -> fp32: fmaxf",
    "fp64, fp64 -> fp64: fmax",
)

# -- whole numbers, signs, parts of floats ---

floor = of_floats("Rounded down to a whole number.", "floor")
ceil = of_floats("Rounded up to a whole number.", "ceil")
trunc = of_floats("Rounded towards zero to a whole number.", "trunc")
rint = of_floats("Rounded to the nearest whole number, halves to the even one.", "rint")
nearbyint = of_floats("Rounded to the nearest whole number, halves to the even one.", "nearbyint")
round = of_floats("Rounded to the nearest whole number, halves away from zero.", "round")
llrint = to_whole("The nearest whole number, of halves the even one, as int64.", "llrint", "int64")
llround = to_whole("The nearest whole number, of halves the one away from zero, as int64.", "llround", "int64")
isnan = predicate("Whether it is NaN.", "fp32 -> int32: isnanf", "fp64 -> int32: isnand")
isinf = predicate("Whether it is an infinity.", "fp32 -> int32: isinff", "fp64 -> int32: isinfd")
finitef = predicate("Whether a float is neither NaN nor an infinity.", "fp32 -> int32: finitef")
isfinited = predicate("Whether a double is neither NaN nor an infinity.", "fp64 -> int32: isfinited")
signbit = extern(
    "1 where the sign is minus, of zeros and NaNs too; else 0.", "fp32 -> int32: signbitf", "fp64 -> int32: signbitd"
)
copysign = of_floats("`arg0` with the sign of `arg1`.", "copysign", 2)
nextafter = of_floats("The number next to `arg0` on the way to `arg1`.", "nextafter", 2)
fdim = of_floats("arg0 - arg1 where that is positive, else 0.", "fdim", 2)
saturatef = extern("Limited to [0, 1]; of NaN 0.", "fp32 -> fp32: saturatef")
ilogb = to_whole("The exponent of 2; of 0 and NaN the least int32, of infinities the greatest.", "ilogb", "int32")
logb = of_floats("The exponent of 2; of 0 minus infinity.", "logb")
ldexp = extern("arg0 * 2**arg1.", "fp32, int32 -> fp32: ldexpf", "fp64, int32 -> fp64: ldexp")
scalbn = extern("arg0 * 2**arg1.", "fp32, int32 -> fp32: scalbnf", "fp64, int32 -> fp64: scalbn")
fmod = of_floats("The exact remainder of division rounded towards zero, with the sign of `arg0`.", "fmod", 2)
remainder = of_floats("The exact remainder of division rounded to the nearest whole number.", "remainder", 2)

# -- arithmetic ---

fma = of_floats("arg0 * arg1 + arg2, rounded once.", "fma", 3)
sqrt = of_floats("The square root.", "sqrt")
rsqrt = of_floats("One over the square root.", "rsqrt")
rcp64h = extern("One over a double, as its upper 32 bits tell it; the lower ones are 0.", "fp64 -> fp64: rcp64h")
rsqrt_rn = extern("One over the square root, rounded to nearest even.", "fp32 -> fp32: frsqrt_rn")
add_rn, add_rz, add_rd, add_ru = rounded("The sum", "add", 2)
sub_rn, sub_rz, sub_rd, sub_ru = rounded("The difference", "sub", 2)
mul_rn, mul_rz, mul_rd, mul_ru = rounded("The product", "mul", 2)
div_rn, div_rz, div_rd, div_ru = rounded("The quotient", "div", 2)
fma_rn, fma_rz, fma_rd, fma_ru = rounded("arg0 * arg1 + arg2", "fma", 3)
rcp_rn, rcp_rz, rcp_rd, rcp_ru = rounded("One over the argument", "rcp", 1)
sqrt_rn, sqrt_rz, sqrt_rd, sqrt_ru = rounded("The square root", "sqrt", 1)

# -- conversions: what is too large becomes the largest; NaN 0, or the highest bit where 64 bits are involved ---

_TO_FLOAT, _TO_INTEGER = "As a float of the other type", "As an integer, the nearest one where it is too large"
double2float_rn, double2float_rz, double2float_rd, double2float_ru = converted(
    _TO_FLOAT, "double2float", "fp64", "fp32"
)
double2int_rn, double2int_rz, double2int_rd, double2int_ru = converted(_TO_INTEGER, "double2int", "fp64", "int32")
double2uint_rn, double2uint_rz, double2uint_rd, double2uint_ru = converted(
    f"{_TO_INTEGER}; unsigned, although its type is int32, as in Triton", "double2uint", "fp64", "int32"
)
double2ll_rn, double2ll_rz, double2ll_rd, double2ll_ru = converted(_TO_INTEGER, "double2ll", "fp64", "int64")
double2ull_rn, double2ull_rz, double2ull_rd, double2ull_ru = converted(
    f"{_TO_INTEGER}; unsigned, although its type is int64, as in Triton", "double2ull", "fp64", "int64"
)
float2int_rn, float2int_rz, float2int_rd, float2int_ru = converted(_TO_INTEGER, "float2int", "fp32", "int32")
float2uint_rn, float2uint_rz, float2uint_rd, float2uint_ru = converted(
    f"{_TO_INTEGER}; unsigned, although its type is int32, as in Triton", "float2uint", "fp32", "int32"
)
float2ll_rn, float2ll_rz, float2ll_rd, float2ll_ru = converted(_TO_INTEGER, "float2ll", "fp32", "int64")
float2ull_rn, float2ull_rz, float2ull_rd, float2ull_ru = converted(
    f"{_TO_INTEGER}; unsigned, although its type is int64, as in Triton", "float2ull", "fp32", "int64"
)
int2double_rn = extern("As a double.", "int32 -> fp64: int2double_rn")
uint2double_rn = extern("As a double.", "uint32 -> fp64: uint2double_rn")
int2float_rn, int2float_rz, int2float_rd, int2float_ru = converted(_TO_FLOAT, "int2float", "int32", "fp32")
uint2float_rn, uint2float_rz, uint2float_rd, uint2float_ru = converted(_TO_FLOAT, "uint2float", "uint32", "fp32")
ll2float_rn, ll2float_rz, ll2float_rd, ll2float_ru = converted(_TO_FLOAT, "ll2float", "int64", "fp32")
ull2float_rn, ull2float_rz, ull2float_rd, ull2float_ru = converted(_TO_FLOAT, "ull2float", "uint64", "fp32")
ll2double_rn, ll2double_rz, ll2double_rd, ll2double_ru = converted(_TO_FLOAT, "ll2double", "int64", "fp64")
ull2double_rn, ull2double_rz, ull2double_rd, ull2double_ru = converted(_TO_FLOAT, "ull2double", "uint64", "fp64")

# -- exponentials, logarithms, powers ---

exp = of_floats("e to the power of the argument.", "exp")
exp2 = of_floats("2 to the power of the argument.", "exp2")
exp10 = of_floats("10 to the power of the argument.", "exp10")
expm1 = of_floats("exp(arg0) - 1, exact near 0 as well.", "expm1")
log = of_floats("The natural logarithm.", "log")
log2 = of_floats("The logarithm to base 2.", "log2")
log10 = of_floats("The logarithm to base 10.", "log10")
log1p = of_floats("log(1 + arg0), exact near 0 as well.", "log1p")
pow = extern(
    "`arg0` to the power of `arg1`.",
    "fp32, int32 -> fp32: powif",
    "fp64, int32 -> fp64: powi",
    "fp32, fp32 -> fp32: powf",
    "fp64, fp64 -> fp64: pow",
)
cbrt = of_floats("The cube root.", "cbrt")
rcbrt = of_floats("One over the cube root.", "rcbrt")
hypot = of_floats("The square root of the sum of the squares, without overflow on the way.", "hypot", 2)
rhypot = of_floats("One over the square root of the sum of the squares.", "rhypot", 2)
norm3d = of_floats("The square root of the sum of the squares.", "norm3d", 3)
rnorm3d = of_floats("One over the square root of the sum of the squares.", "rnorm3d", 3)
norm4d = of_floats("The square root of the sum of the squares.", "norm4d", 4)
rnorm4d = of_floats("One over the square root of the sum of the squares.", "rnorm4d", 4)

# -- angles, hyperbolic functions ---

sin = of_floats("The sine of an angle in radians.", "sin")
cos = of_floats("The cosine of an angle in radians.", "cos")
tan = of_floats("The tangent of an angle in radians.", "tan")
sinpi = of_floats("sin(pi * arg0).", "sinpi")
cospi = of_floats("cos(pi * arg0).", "cospi")
asin = of_floats("The angle whose sine it is.", "asin")
acos = of_floats("The angle whose cosine it is.", "acos")
atan = of_floats("The angle whose tangent it is.", "atan")
atan2 = of_floats("The angle of the point with y `arg0` and x `arg1`.", "atan2", 2)
sinh = of_floats("The hyperbolic sine.", "sinh")
cosh = of_floats("The hyperbolic cosine.", "cosh")
tanh = of_floats("The hyperbolic tangent.", "tanh")
asinh = of_floats("The inverse of sinh.", "asinh")
acosh = of_floats("The inverse of cosh, not negative.", "acosh")
atanh = of_floats("The inverse of tanh.", "atanh")

# -- special functions ---

erf = of_floats("The error function.", "erf")
erfc = of_floats("1 - erf(arg0), exact where that is small as well.", "erfc")
erfcx = of_floats("exp(arg0**2) * erfc(arg0).", "erfcx")
erfinv = of_floats("The inverse of erf.", "erfinv")
erfcinv = of_floats("The inverse of erfc.", "erfcinv")
normcdf = of_floats("The probability that a normally distributed number is at most this.", "normcdf")
normcdfinv = of_floats("The inverse of normcdf.", "normcdfinv")
lgamma = of_floats("The logarithm of the absolute value of the gamma function.", "lgamma")
tgamma = of_floats("The gamma function.", "tgamma")
j0 = of_floats("The Bessel function of the first kind of order 0.", "j0")
j1 = of_floats("The Bessel function of the first kind of order 1.", "j1")
jn = extern(
    "The Bessel function of the first kind of order `arg0`.", "int32, fp32 -> fp32: jnf", "int32, fp64 -> fp64: jn"
)
y0 = of_floats("The Bessel function of the second kind of order 0.", "y0")
y1 = of_floats("The Bessel function of the second kind of order 1.", "y1")
yn = extern(
    "The Bessel function of the second kind of order `arg0`.", "int32, fp32 -> fp32: ynf", "int32, fp64 -> fp64: yn"
)
cyl_bessel_i0 = of_floats("The modified Bessel function of the first kind of order 0.", "cyl_bessel_i0")
cyl_bessel_i1 = of_floats("The modified Bessel function of the first kind of order 1.", "cyl_bessel_i1")

# -- fast on a GPU, within the bounds that CUDA gives; as exact as the others on a CPU ---

fast_sinf = extern("The sine; on GPUs to 2**-21.4 in [-pi, pi], worse beyond.", "fp32 -> fp32: fast_sinf")
fast_cosf = extern("The cosine; on GPUs to 2**-21.2 in [-pi, pi], worse beyond.", "fp32 -> fp32: fast_cosf")
fast_tanf = extern("The quotient of the fast sine and cosine.", "fp32 -> fp32: fast_tanf")
fast_log2f = extern("The logarithm to base 2; on GPUs to 2**-22 near 1.", "fp32 -> fp32: fast_log2f")
fast_logf = extern("The natural logarithm; on GPUs to 2**-21.4 near 1.", "fp32 -> fp32: fast_logf")
fast_log10f = extern("The logarithm to base 10; on GPUs to 2**-24 near 1.", "fp32 -> fp32: fast_log10f")
fast_expf = extern("e to the power; on GPUs to 2 ulp, 1 more for each 0.85 of |arg0|.", "fp32 -> fp32: fast_expf")
fast_exp10f = extern("10 to the power; on GPUs to 2 ulp, 1 more for each 0.34 of |arg0|.", "fp32 -> fp32: fast_exp10f")
fast_powf = extern("2 ** (arg1 * log2(arg0)) of the fast functions.", "fp32, fp32 -> fp32: fast_powf")
fast_dividef = extern(
    "The quotient, to 2 ulp; on GPUs 0 where |arg1| is above 2**126.", "fp32, fp32 -> fp32: fast_fdividef"
)

SYMBOLS = name_all(globals())
