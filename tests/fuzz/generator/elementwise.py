"""Arithmetic, comparisons, choices, conversions, functions of one float.

Shifts may be by more bits than there are, divisors 0 and -1: both give what the language says.
"""

from __future__ import annotations

from tests.fuzz.case import BITS
from tests.fuzz.generator.builder import DTYPES, FLOATS, FP8, INTEGERS, SIGNED, Builder, Value, statement_of


@statement_of("elementwise")
def integer_arithmetic(b: Builder) -> None:
    dtype, shape = b.dtype(INTEGERS), b.shape()
    x, y = b.value(dtype, shape), _operand(b, dtype, shape)
    text = b.rng.choice(
        (
            "{x} + {y}",
            "{x} - {y}",
            "{x} * {y}",
            "{x} & {y}",
            "{x} | {y}",
            "{x} ^ {y}",
            "~{x}",
            "-{x}",
            "tl.abs({x})",
            "tl.minimum({x}, {y})",
            "tl.maximum({x}, {y})",
            "tl.clamp({x}, 1, 5)",
        )
    )
    b.define(text.format(x=x, y=y), dtype, shape)


def _operand(b: Builder, dtype: str, shape: tuple[int, ...]) -> str:
    if b.chance(0.3):
        return b.literal(dtype)
    if b.chance(0.2):
        return str(b.value(dtype, ()))
    if b.chance(0.3):
        return f"({b.value(dtype, shape)} {b.rng.choice('+-*')} {b.value(dtype, shape)})"
    return str(b.value(dtype, shape))


@statement_of("elementwise")
def shift(b: Builder) -> None:
    dtype, shape = b.dtype(INTEGERS), b.shape()
    x, bits = b.value(dtype, shape), BITS[dtype]
    within = f"({b.value(dtype, shape)} & {bits - 1})" if b.chance(0.5) else b.rng.choice((0, 1, 3, bits - 1))
    amount = b.value(dtype, shape) if b.chance(0.2) else within
    b.define(f"{x} {b.rng.choice(('<<', '>>'))} {amount}", dtype, shape)


@statement_of("elementwise")
def bits_as_floats(b: Builder) -> None:
    """Some bits of integers as numbers, as packed ones are taken out of words."""
    dtype, shape, float_type = b.dtype(INTEGERS), b.shape(), b.rng.choice(("float16", "bfloat16", "float32"))
    text, bits = str(b.value(dtype, shape)), BITS[dtype]
    for _ in range(b.rng.randint(1, 4)):
        amount, mask = b.rng.choice((0, 1, 3, 4, bits // 2, bits - 4)), b.rng.choice((1, 3, 7, 15, 0x3C, 0x70, 127))
        text = f"({text} {b.rng.choice((f'>> {amount}', f'<< {amount}', f'& {mask}', '- 8', '+ 3'))})"
    b.define(f"{text}.to(tl.{float_type})", float_type, shape)


@statement_of("elementwise")
def divide_integers(b: Builder) -> None:
    dtype, shape = b.dtype(INTEGERS), b.shape()
    x = b.value(dtype, shape)
    y = str(b.rng.choice((1, 2, 3, 7, 8, 16, 100)))
    if b.chance(0.2):
        y = b.literal(dtype)
    elif b.chance(0.6):
        y = str(b.value(dtype, shape)) if b.chance(0.6) else f"(({b.value(dtype, shape)} & 15) | 1)"
    text = b.rng.choice(("{x} // {y}", "{x} % {y}"))
    b.define(text.format(x=x, y=y), dtype, shape)


@statement_of("elementwise")
def number_of_python(b: Builder) -> None:
    """`int`, `float` and `bool` of a scalar."""
    x = b.value(b.dtype((*INTEGERS, *FLOATS)), ())
    name = b.rng.choice(("float", "bool", *(("int",) if x.dtype in INTEGERS else ())))
    as_float = "float64" if BITS[x.dtype] == 64 else "float32"
    b.define(f"{name}({x})", {"int": x.dtype, "bool": "int1", "float": as_float}[name], ())


@statement_of("elementwise")
def high_product(b: Builder) -> None:
    """And the lower half of the same product, or of one of which a factor has changed meanwhile."""
    dtype, shape = b.dtype(("int32", "uint32", "int64", "uint64")), b.shape()
    x, y = b.value(dtype, shape), b.value(dtype, shape)
    b.define(f"tl.umulhi({x}, {y})", dtype, shape)
    if b.chance(0.5):
        b.define(f"{x} * {y}", dtype, shape)
    if b.chance(0.3):
        turns, high, factor = b.rng.randint(2, 4), b.name(), b.name()
        b.emit(f"{high}, {factor} = {x}, {y}")
        b.emit(f"for {b.name()} in range({turns} + tl.program_id(2) % 2):")
        b.emit(f"    {high} ^= tl.umulhi({x}, {factor})")
        b.emit(f"    {factor} ^= {high} >> 3")
        b.emit(f"    {high} ^= {x} * {factor}")
        b.add_to_scope(Value(high, dtype, shape))


@statement_of("elementwise")
def float_arithmetic(b: Builder) -> None:
    dtype, shape = b.dtype(FLOATS), b.shape()
    x, y, z = b.value(dtype, shape), _operand(b, dtype, shape), _operand(b, dtype, shape)
    text = b.rng.choice(
        (
            "{x} + {y}",
            "{x} - {y}",
            "{x} * {y}",
            "{x} * {y} + {z}",
            "-{x}",
            "tl.abs({x})",
            "tl.minimum({x}, {y})",
            "tl.maximum({x}, {y})",
            "tl.maximum({x}, {y}, propagate_nan=tl.PropagateNan.ALL)",
            "tl.minimum({x}, {y}, propagate_nan=tl.PropagateNan.ALL)",
            "tl.clamp({x}, -1.0, 2.0)",
            "tl.fma({x}, {y}, {z})",
            "({x} / {y}).to(tl.{dtype})",
            "({x} % {y}).to(tl.{dtype})",
        )
    )
    b.define(text.format(x=x, y=y, z=z, dtype=dtype), dtype, shape)


@statement_of("elementwise")
def function_of_float(b: Builder) -> None:
    dtype, shape = b.rng.choice(("float32", "float32", "float64")), b.shape()
    names = ("exp", "exp2", "log", "log2", "sqrt", "rsqrt", "sin", "cos", "erf", "floor", "ceil", "sigmoid")
    precise = ("sqrt_rn", "floor", "ceil")
    name = b.rng.choice(precise if dtype == "float32" and b.chance(0.4) else names)
    x = b.value(dtype, shape)
    argument = f"tl.clamp({x}, -20.0, 20.0)" if name in ("exp", "exp2", "sin", "cos", "sigmoid") else str(x)
    if name in ("log", "log2", "sqrt", "rsqrt") and b.chance(0.7):
        argument = f"tl.abs({x})"
    b.define(f"tl.{name}({argument})", dtype, shape)


@statement_of("elementwise")
def exact_of_libdevice(b: Builder) -> None:
    """Functions of which every executor gives the same bits; where a NaN gives an integer, any."""
    dtype, shape = b.rng.choice(("float32", "float64")), b.shape()
    x, y, n = b.value(dtype, shape), _operand(b, dtype, shape), b.value("int32", shape)
    prefix = "float" if dtype == "float32" else "double"
    call, result = b.rng.choice(
        (
            ("rint({x})", dtype),
            ("round({x})", dtype),
            ("trunc({x})", dtype),
            ("copysign({x}, {y})", dtype),
            ("fdim({x}, {y})", dtype),
            ("nextafter({x}, {y})", dtype),
            ("ldexp({x}, {n})", dtype),
            ("add_rz({x}, {y})", dtype),
            ("mul_rd({x}, {y})", dtype),
            ("div_ru({x}, {y})", dtype),
            ("fma_rd({x}, {y}, {x})", dtype),
            ("isnan({x})", "int1"),
            ("ilogb({x})", "int32"),
            (f"{prefix}2int_rd({{x}})", "int32"),
            (f"{prefix}2ll_ru({{x}})", "int64"),
        )
    )
    b.define(f"tl.libdevice.{call.format(x=x, y=y, n=n)}", result, shape)


@statement_of("elementwise")
def bits_of_libdevice(b: Builder) -> None:
    shape = b.shape()
    dtype = b.rng.choice(("int32", "int64"))
    x, y, z = (b.value(dtype, shape) for _ in range(3))
    names = ("clz", "popc", "ffs", "brev")
    name = b.rng.choice(
        (*names, "mulhi", "byte_perm", "hadd", "rhadd", "mul24") if dtype == "int32" else (*names, "mulhi")
    )
    arguments = (x,) if name in names else (x, y, z) if name == "byte_perm" else (x, y)
    result = "int32" if name in names[:3] else dtype
    b.define(f"tl.libdevice.{name}({', '.join(map(str, arguments))})", result, shape)


@statement_of("elementwise")
def approximate_of_libdevice(b: Builder) -> None:
    dtype, shape = b.rng.choice(("float32", "float64")), b.shape()
    name = b.rng.choice(("tanh", "expm1", "log1p", "atan", "asinh", "cbrt", "erfc", "tan", "sinpi", "normcdf"))
    x = b.value(dtype, shape)
    argument = f"tl.abs({x})" if name == "log1p" else f"tl.clamp({x}, -8.0, 8.0)"
    b.define(f"tl.libdevice.{name}({argument})", dtype, shape)


@statement_of("elementwise")
def rounded_quotient(b: Builder) -> None:
    shape = b.shape()
    x, y = b.value("float32", shape), b.value("float32", shape)
    b.define(b.rng.choice((f"tl.div_rn({x}, {y})", f"tl.fdiv({x}, {y}, ieee_rounding=True)")), "float32", shape)


@statement_of("elementwise")
def compare(b: Builder) -> None:
    dtype, shape = b.dtype((*INTEGERS, *FLOATS)), b.shape()
    symbol = b.rng.choice(("<", "<=", ">", ">=", "==", "!="))
    b.define(f"{b.value(dtype, shape)} {symbol} {_operand(b, dtype, shape)}", "int1", shape)


@statement_of("elementwise")
def logic(b: Builder) -> None:
    shape = b.shape()
    x, y = b.value("int1", shape), b.value("int1", shape)
    b.define(b.rng.choice((f"{x} & {y}", f"{x} | {y}", f"{x} ^ {y}", f"~{x}", f"{x} == {y}")), "int1", shape)


@statement_of("elementwise")
def choose(b: Builder) -> None:
    dtype, shape = b.dtype(), b.shape()
    condition, x, y = b.value("int1", shape), b.value(dtype, shape), b.value(dtype, shape)
    b.define(f"tl.where({condition}, {x}, {y})", dtype, shape)


@statement_of("elementwise")
def convert(b: Builder) -> None:
    b.converted(b.pick(), b.dtype())


@statement_of("elementwise")
def narrow_towards_zero(b: Builder) -> None:
    dtype = b.rng.choice(("float16", "bfloat16", *FP8))
    x = b.value("float32", b.shape())
    rounding = b.rng.choice(("rtz", "rtne")) if dtype not in FP8 else "rtne"
    b.define(f'{x}.to(tl.{dtype}, fp_downcast_rounding="{rounding}")', dtype, x.shape)


@statement_of("elementwise")
def reinterpret(b: Builder) -> None:
    x = b.pick(lambda v: v.dtype != "int1")
    dtype = b.rng.choice([name for name in dict.fromkeys(DTYPES) if BITS[name] == BITS[x.dtype]] or [x.dtype])
    b.define(f"{x}.to(tl.{dtype}, bitcast=True)", dtype, x.shape)


@statement_of("elementwise")
def mixed_types(b: Builder) -> None:
    """What the operands are promoted to is converted to a type that holds it."""
    shape = b.shape()
    x, y = b.value(b.dtype(SIGNED), shape), b.value(b.dtype((*INTEGERS, "float32")), shape)
    dtype = "float32" if y.dtype == "float32" else "int64"
    b.define(f"({x} {b.rng.choice('+-*')} {y}).to(tl.{dtype})", dtype, shape)


@statement_of("elementwise")
def broadcast_operands(b: Builder) -> None:
    """A column and a row."""
    dtype = b.dtype((*INTEGERS, *FLOATS))
    rows, columns = b.shape(1, 1, 32), b.shape(1, 1, 32)
    x, y = b.value(dtype, rows), b.value(dtype, columns)
    b.define(f"{x}[:, None] {b.rng.choice('+-*')} {y}[None, :]", dtype, (*rows, *columns))
