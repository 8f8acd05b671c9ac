"""Operands of different types, and numbers of Python among them: the language chooses the type that is computed in.
Results are widened, so that a statement does not have to know it.

Nothing that is an error: quotients of integers of different signs, numbers that the other operand's type cannot hold.
"""

from __future__ import annotations

from tests.fuzz.case import BITS, MANTISSA
from tests.fuzz.generator.builder import FLOATS, INTEGERS, UNSIGNED, Builder, Value, statement_of
from tests.fuzz.generator.memory import mask, offsets, size_of

ANY = ("int1", *INTEGERS, *FLOATS)
WHOLE = ("int1", *INTEGERS)
OF_FLOATS = ("0.1", "-2.5", "3.0", "1e300", "1e-40", '-float("inf")')
OF_INTEGERS = ("0", "1", "3", "100", "127")
OF_WORDS = ("-1", "-100", "65537", "2147483647")


def _any(b: Builder, shape: tuple[int, ...], dtypes: tuple[str, ...] = ANY) -> Value:
    """A tile, a scalar at times."""
    return b.value(b.dtype(dtypes), shape if b.chance(0.8) else ())


def _number(b: Builder, beside: Value, dtypes: tuple[str, ...] = ANY) -> str:
    """One that the type of the other operand can hold, if that decides."""
    if dtypes == ANY and b.chance(0.4):
        return b.rng.choice(OF_FLOATS)
    if b.chance(0.1):
        return b.rng.choice(("True", "False"))
    has_sign = beside.dtype not in UNSIGNED and BITS[beside.dtype] not in (8, 16)
    return b.rng.choice((*OF_INTEGERS, *OF_WORDS) if has_sign else OF_INTEGERS)


def _operand(b: Builder, x: Value, dtypes: tuple[str, ...] = ANY) -> tuple[str, str]:
    """The other operand, with its type: "" is that of a whole number."""
    if b.chance(0.4):
        text = _number(b, x, dtypes)
        return text, "float32" if text in OF_FLOATS else ""
    y = _any(b, x.shape, dtypes)
    return str(y), y.dtype


def _widened(b: Builder, text: str, shape: tuple[int, ...], *dtypes: str) -> Value:
    wide = "float64" if any(dtype in MANTISSA for dtype in dtypes) else "int64"
    return b.define(f"({text}).to(tl.{wide})", wide, shape)


@statement_of("promotion")
def arithmetic(b: Builder) -> None:
    x = _any(b, b.shape())
    y, other = _operand(b, x)
    symbol = b.rng.choice("+-*")
    text = f"{x} {symbol} {y}" if b.chance(0.5) else f"{y} {symbol} {x}"
    _widened(b, text, x.shape or _shape_of(b, y), x.dtype, other)


def _shape_of(b: Builder, text: str) -> tuple[int, ...]:
    return next((value.shape for value in b.values() if value.text == text), ())


@statement_of("promotion")
def division(b: Builder) -> None:
    dtypes = (*FLOATS, "int8", "int16", "int32", "int64")
    x = _any(b, b.shape(), dtypes)
    y = b.rng.choice((*OF_FLOATS, *OF_INTEGERS)) if b.chance(0.4) else str(_any(b, x.shape, dtypes))
    text = f"{x} / {y}" if b.chance(0.5) else f"{y} / {x}"
    _widened(b, text, x.shape or _shape_of(b, y), "float32")


@statement_of("promotion")
def quotient(b: Builder) -> None:
    """Of integers of one sign, some of them numbers."""
    dtypes = UNSIGNED if b.chance(0.5) else ("int8", "int16", "int32", "int64")
    x = _any(b, b.shape(), dtypes)
    y = b.rng.choice(("1", "3", "7", "16", "127")) if b.chance(0.4) else str(_any(b, x.shape, dtypes))
    symbol = b.rng.choice(("//", "%"))
    text = f"{x} {symbol} {y}" if b.chance(0.6) else f"{y} {symbol} {x}"
    _widened(b, text, x.shape or _shape_of(b, y), x.dtype)


@statement_of("promotion")
def bitwise(b: Builder) -> None:
    x = _any(b, b.shape(), WHOLE)
    y, _ = _operand(b, x, WHOLE)
    _widened(b, f"{x} {b.rng.choice('&|^')} {y}", x.shape or _shape_of(b, y), x.dtype)


@statement_of("promotion")
def shift(b: Builder) -> None:
    """By less than the bits of the narrower one."""
    x = _any(b, b.shape(), INTEGERS)
    y = _any(b, x.shape, INTEGERS)
    amount = f"({y} & {min(BITS[x.dtype], BITS[y.dtype]) - 1})"
    _widened(b, f"{x} {b.rng.choice(('<<', '>>'))} {amount}", x.shape or y.shape, x.dtype)


@statement_of("promotion")
def comparison(b: Builder) -> None:
    x = _any(b, b.shape())
    y, _ = _operand(b, x)
    symbol = b.rng.choice(("<", "<=", ">", ">=", "==", "!="))
    text = f"{x} {symbol} {y}" if b.chance(0.6) else f"{y} {symbol} {x}"
    b.define(text, "int1", x.shape or _shape_of(b, y))


@statement_of("promotion")
def choice(b: Builder) -> None:
    """Of where, minimum and maximum, clamp, fma."""
    x = _any(b, b.shape())
    y, other = _operand(b, x)
    shape, dtypes = x.shape or _shape_of(b, y), (x.dtype, other)
    kind = b.rng.choice(("where", "minimum", "maximum", "fma"))
    if kind == "where":
        condition = b.value("int1", shape)
        _widened(b, f"tl.where({condition}, {y}, {x})", shape, *dtypes)
    elif kind == "fma":
        z = b.value("float32", shape)
        _widened(b, f"tl.fma({x}, {y}, {z})", shape, "float32")
    else:
        _widened(b, f"tl.{kind}({x}, {y})", shape, *dtypes)


@statement_of("promotion")
def sign(b: Builder) -> None:
    x = _any(b, b.shape())
    _widened(b, b.rng.choice(("-{x}", "tl.abs({x})", "({x} == 0) + {x}")).format(x=x), x.shape, x.dtype)


@statement_of("promotion")
def number_in_memory(b: Builder) -> None:
    """Numbers are stored, exchanged, loaded where a mask excludes what is in memory."""
    dtype, shape = b.dtype(ANY), b.shape()
    size = size_of(shape)
    name = b.array(dtype, size * b.programs, prefix="io")
    index = offsets(b, shape, unique=True)
    pointers = f"{name} + pid * {size} + {index}"
    in_range = ("0", "1", "100", "True", "0.1", "2.75")
    number = b.rng.choice((*in_range, "300", "-1", "1e300", "4294967295") if dtype in FLOATS else in_range)
    kind = b.rng.choice(("store", "load", "add"))
    if kind == "store":
        b.emit(f"tl.store({pointers}, {number}, mask={mask(b, shape, index)})")
    elif kind == "load" or BITS[dtype] < 32:
        b.define(f"tl.load({pointers}, mask={mask(b, shape, index)}, other={number})", dtype, shape)
    else:
        b.emit(f"tl.atomic_add({pointers}, {number})")


@statement_of("promotion")
def number_as_tensor(b: Builder) -> None:
    dtype, shape = b.rng.choice(ANY), b.shape()
    number = b.rng.choice(("0", "1", "100", "True", *(("0.1", "1e-40", "65537") if dtype in MANTISSA else ())))
    text = b.rng.choice(("tl.cast({n}, tl.{t})", "tl.full((), {n}, tl.{t})", "tl.to_tensor({n}).to(tl.{t})"))
    if dtype == "int1":
        text = "tl.cast({n}, tl.{t})"
    b.define(f"tl.full({shape}, {text.format(n=number, t=dtype)}, tl.{dtype})", dtype, shape)


@statement_of("promotion")
def reduction(b: Builder) -> None:
    """Of flags, and of integers that are narrower than what they are summed in."""
    x = b.value(b.dtype(("int1", *INTEGERS)), b.shape(1))
    name = b.rng.choice(("sum", "max", "min", "argmax", "argmin", "cumsum"))
    if x.dtype == "int1" and name not in ("sum", "cumsum"):
        name = "sum"
    axis = b.rng.randrange(len(x.shape))
    shape = x.shape if name == "cumsum" else (*x.shape[:axis], *x.shape[axis + 1 :])
    dtype = b.rng.choice(("", "", ", dtype=tl.int64", ", dtype=tl.float32")) if name in ("sum", "cumsum") else ""
    _widened(b, f"tl.{name}({x}, {axis}{dtype})", shape, "float32" if "float" in dtype else "int64")
