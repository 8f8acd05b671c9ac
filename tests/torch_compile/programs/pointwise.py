"""Chains of elementwise operations: every type, every family of functions, shapes that broadcast, layouts."""

import torch
from torch.nn import functional as F
from torch_compile.declaration import declare, integers, normal, program, strided, uniform

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
INTEGERS = (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8)


def _float_chain(x, y):
    return torch.relu(x * 2 - y) + torch.exp(-x.abs()) * torch.sigmoid(y), (x + 1) / (y.abs() + 1)


def _integer_chain(x, y):
    return (x * 3 - y) // 5, x & ~y, torch.maximum(x, y) << 1, (x ^ y) >> 2, x % 7


for dtype in FLOATS:
    declare(f"chain_{dtype}".replace("torch.", ""), _float_chain, normal(37, 29, dtype=dtype), normal(29, dtype=dtype))
for dtype in INTEGERS:
    name = f"chain_{dtype}".replace("torch.", "")
    declare(name, _integer_chain, integers(37, 29, dtype=dtype), integers(37, 29, high=30, dtype=dtype))

FUNCTIONS = {
    "exponentials": (lambda x: (torch.exp(x), torch.exp2(x), torch.expm1(x), torch.sigmoid(x)), normal(513)),
    "logarithms": (
        lambda x: (torch.log(x), torch.log2(x), torch.log10(x), torch.log1p(x), torch.rsqrt(x), torch.sqrt(x)),
        uniform(513, low=0.01, high=9),
    ),
    "trigonometry": (lambda x: (torch.sin(x), torch.cos(x), torch.tan(x), torch.sinc(x)), normal(513)),
    "arcs": (lambda x: (torch.asin(x), torch.acos(x), torch.atan(x), torch.atanh(x)), uniform(513, low=-0.9, high=0.9)),
    "hyperbolic": (lambda x: (torch.sinh(x), torch.cosh(x), torch.tanh(x), torch.asinh(x)), normal(513)),
    "error_functions": (lambda x: (torch.erf(x), torch.erfc(x), torch.erfinv(torch.tanh(x) * 0.9)), normal(513)),
    "gamma": (lambda x: (torch.lgamma(x), torch.acosh(x + 1)), uniform(513, low=0.5, high=20)),
    "bessel": (lambda x: (torch.special.i0(x), torch.special.i1(x), torch.special.bessel_j0(x)), normal(513)),
    "rounding": (
        lambda x: (torch.floor(x), torch.ceil(x), torch.trunc(x), torch.round(x), torch.frac(x)),
        normal(513, scale=9),
    ),
    "signs": (lambda x: (torch.sign(x), torch.signbit(x), torch.copysign(x * x, x), x.abs(), -x), normal(513)),
    "powers": (
        lambda x: (x**2, x**3, x**0.5, x**-1, torch.pow(x, x), torch.pow(2.0, x)),
        uniform(513, low=0.1, high=4),
    ),
}
for name, (function, maker) in FUNCTIONS.items():
    declare(name, function, maker)

ACTIVATIONS = {
    "rectifiers": lambda x: (F.relu(x), F.relu6(x), F.leaky_relu(x), F.elu(x), F.selu(x), F.celu(x)),
    "smooth_activations": lambda x: (F.gelu(x), F.gelu(x, approximate="tanh"), F.silu(x), F.mish(x), F.softplus(x)),
    "hard_activations": lambda x: (F.hardswish(x), F.hardsigmoid(x), F.hardtanh(x), F.hardshrink(x), F.softsign(x)),
}
for name, function in ACTIVATIONS.items():
    declare(name, function, normal(19, 31), gradients=True)
declare("smooth_activations_bfloat16", ACTIVATIONS["smooth_activations"], normal(19, 31, dtype=torch.bfloat16))


@program(normal(513, scale=9), uniform(513, low=0.5, high=3))
def remainders(x, y):
    return torch.fmod(x, y), torch.remainder(x, y), torch.floor_divide(x, y), torch.div(x, y, rounding_mode="trunc")


@program(integers(257, low=-50, high=50), integers(257, low=1, high=9))
def integer_division(x, y):
    return x // y, x % y, torch.div(x, -y, rounding_mode="trunc"), torch.fmod(x, y), x / y, torch.gcd(x, y)


@program(normal(257), normal(257))
def two_arguments(x, y):
    return (
        torch.atan2(x, y),
        torch.hypot(x, y),
        torch.nextafter(x, y),
        torch.logaddexp(x, y),
        torch.xlogy(x.abs(), y.abs()),
    )


@program(normal(41, 23), normal(41, 23))
def comparisons(x, y):
    return x < y, x >= y, (x == y) | (x > 0), torch.logical_xor(x > 0, y > 0), torch.isclose(x, y), ~(x < 0)


@program(normal(41, 23), normal(41, 23))
def selections(x, y):
    return torch.where(x > y, x, -y), x.clamp(-0.5, 0.5), torch.lerp(x, y, 0.3), x.masked_fill(y > 0, -1.0)


@program(normal(257), normal(257), normal(257), gradients=True)
def fused_arithmetic(x, y, z):
    return (
        torch.addcmul(x, y, z, value=0.5),
        torch.addcdiv(x, y, z.abs() + 1, value=2),
        torch.fmax(x, y) + torch.fmin(y, z),
    )


@program(normal(257, scale=50), config={"emulate_precision_casts": True})
def casts(x):
    whole = x.round().clamp(-120, 120)
    small = [whole.to(dtype) for dtype in (torch.int8, torch.int16, torch.int32, torch.int64)]
    return *small, whole.abs().to(torch.uint8), x.to(torch.float16).to(torch.float32), x.bool(), whole.long().double()


# For older GPUs Inductor takes apart the number that a float8 is in the place of its bits.
@program(normal(257), config={"emulate_precision_casts": True}, capability=89)
def float8(x):
    narrow = x.to(torch.float8_e4m3fn)
    return narrow.to(torch.float32) * 2, x.to(torch.float8_e5m2).to(torch.float32)


@program(integers(257, low=-9, high=9, dtype=torch.int32))
def bits(x):
    return x.view(torch.float32).view(torch.int32), x << 3, x >> 1, x.to(torch.uint8) >> 1, x.to(torch.int64) << 40


@program(integers(37, 5, high=2, dtype=torch.bool), integers(37, 5, high=2, dtype=torch.bool))
def booleans(x, y):
    return x & y, x | y, x ^ y, ~x, x.int() + y, x.float() * 0.5


@program(normal(257))
def special_values(x):
    inf, nan = float("inf"), float("nan")
    y = torch.where(x > 1, inf, torch.where(x < -1, nan, x))
    return (
        torch.isnan(y),
        torch.isinf(-y),
        torch.isfinite(y),
        torch.nan_to_num(y, 3.0, 4.0),
        y.clamp(max=0.5),
        torch.relu(y),
    )


@program(normal(3, 1, 5, 1), normal(4, 1, 7), normal(7))
def broadcasting(x, y, z):
    return (x * y + z).tanh(), x - y.sum()


@program(strided(normal(23, 41), lambda x: x.t()), strided(normal(82, 23), lambda x: x[::2]))
def layouts(x, y):
    return x + y, (x * 2).t().contiguous() - y.t(), x.flip(0)


@program(normal(2, 3, 5, 7), strided(normal(2, 3, 5, 7), lambda x: x.contiguous(memory_format=torch.channels_last)))
def channels_last(x, y):
    return x + y, (y * 2).contiguous(), torch.sigmoid(y)


@program(normal(3, 5, 2, 7, 2), normal(5, 1, 7, 1))
def five_dimensions(x, y):
    return (x * y).permute(4, 0, 3, 1, 2).contiguous() + 1


@program(normal(1), normal(1))
def one_element(x, y):
    return x + y, x.expand(3) * 2, (x > y).int()


@program(normal(4013))
def long_chain(x):
    for step in range(12):
        x = torch.sin(x * 1.01) + x * (0.5 + 0.01 * step)
    return x


@program(normal(31, 17), normal(31, 17), normal(17))
def wide_chain(x, y, z):
    terms = [torch.tanh(x * number + y) * (z - number) for number in range(16)]
    return sum(terms), terms[3] * terms[5]


@program(normal(129), normal(129))
def in_place(x, y):
    x.mul_(2).add_(y)
    y.copy_(x.relu())
    return x - y


@program(integers(65, high=50), normal(65))
def mixed_types(x, y):
    return x * y, x + 1.5, y.double() * x, x.to(torch.float16) * 2, (x > 10) * y
