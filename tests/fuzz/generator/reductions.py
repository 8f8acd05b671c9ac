"""Reductions and scans: the library's, and with functions of the program's own, of one tile or several."""

from __future__ import annotations

from tests.fuzz.generator.builder import FLOATS, FP8, INTEGERS, Builder, Unfit, Value, statement_of

NUMBERS = (*INTEGERS, *FLOATS)
SUM_TYPE = {"int8": "int32", "int16": "int32", "uint8": "uint32", "uint16": "uint32"}
COMPARED = {**dict.fromkeys(("int8", "int16", "uint8", "uint16"), "int32"), "float16": "float32", "bfloat16": "float32"}


def without(shape: tuple[int, ...], axis: int | None, keep_dims: bool) -> tuple[int, ...]:
    if axis is None:
        return (1,) * len(shape) if keep_dims else ()
    return (*shape[:axis], *((1,) if keep_dims else ()), *shape[axis + 1 :])


def _tile(b: Builder, dtypes: tuple[str, ...]) -> Value:
    """A tile; one that is there already if possible."""
    if b.values(lambda v: v.shape and v.dtype in dtypes) and b.chance(0.8):
        return b.pick(lambda v: v.shape and v.dtype in dtypes)
    return b.use(b.value(b.dtype(dtypes), b.shape(1)))


def _axis(b: Builder, x: Value) -> int | None:
    return None if b.chance(0.15) else b.rng.randrange(len(x.shape))


@statement_of("reduction")
def reduce(b: Builder) -> None:
    x = _tile(b, NUMBERS)
    axis, keep_dims = _axis(b, x), b.chance(0.2)
    is_integer = x.dtype in INTEGERS
    name = b.rng.choice(("sum", "sum", "max", "min", *(("xor_sum", "reduce_or") if is_integer else ())))
    if name == "reduce_or" and axis is None:
        axis = 0
    types = {"sum": SUM_TYPE, "max": COMPARED, "min": COMPARED}.get(name, {})
    arguments = f"{x}, {axis}" + (", keep_dims=True" if keep_dims else "")
    b.define(f"tl.{name}({arguments})", types.get(x.dtype, x.dtype), without(x.shape, axis, keep_dims))


@statement_of("reduction")
def arg_reduce(b: Builder) -> None:
    x = _tile(b, NUMBERS)
    axis, keep_dims = b.rng.randrange(len(x.shape)), b.chance(0.2)
    shape = without(x.shape, axis, keep_dims)
    name, keep = b.rng.choice(("max", "min")), ", keep_dims=True" if keep_dims else ""
    left = b.chance(0.8)
    if b.chance(0.5):
        b.define(f"tl.arg{name}({x}, {axis}, tie_break_left={left}{keep})", "int32", shape)
        return
    value, index = b.name(), b.name()
    ties = f"return_indices_tie_break_left={left}"
    b.emit(f"{value}, {index} = tl.{name}({x}, {axis}, return_indices=True, {ties}{keep})")
    b.add_to_scope(Value(value, x.dtype, shape))
    b.add_to_scope(Value(index, "int32", shape))


@statement_of("reduction")
def scan(b: Builder) -> None:
    x = _tile(b, NUMBERS)
    axis, reverse = b.rng.randrange(len(x.shape)), ", reverse=True" if b.chance(0.4) else ""
    name = b.rng.choice(("cumsum", "cumsum", "cumprod"))
    b.define(f"tl.{name}({x}, {axis}{reverse})", SUM_TYPE.get(x.dtype, x.dtype), x.shape)


@statement_of("reduction")
def softmax(b: Builder) -> None:
    x = _tile(b, ("float32", "float64"))
    b.define(f"tl.softmax({x}, {b.rng.randrange(len(x.shape))})", x.dtype, x.shape)


COMBINE = {
    "a + b": NUMBERS,
    "a * b": NUMBERS,
    "a & b": INTEGERS,
    "a ^ b": INTEGERS,
    "tl.where(a > b, a, b)": NUMBERS,
    "tl.maximum(a, b)": NUMBERS,
    "a + b + a * b": INTEGERS,
    "tl.where(b != 0, b, a)": NUMBERS,
    "b": NUMBERS,
    "a": NUMBERS,
}
"""Associative; the last ones keep an order."""
BUILTINS = ("tl.maximum", "tl.minimum", "tl.add", "tl.mul")


@statement_of("reduction")
def custom_reduce(b: Builder) -> None:
    is_scan = b.chance(0.5)
    text = b.rng.choice(list(COMBINE))
    x = _tile(b, COMBINE[text])
    name = b.name("combine")
    if b.chance(0.15) and x.dtype not in ("float16", "bfloat16"):
        name = b.rng.choice(BUILTINS)
    else:
        b.function(f"def {name}(a, b):\n    return ({text}).to(tl.{x.dtype})")
    axis = b.rng.randrange(len(x.shape))
    if is_scan:
        b.define(f"tl.associative_scan({x}, {axis}, {name}, reverse={b.chance(0.4)})", x.dtype, x.shape)
    else:
        b.define(f"tl.reduce({x}, {axis}, {name})", x.dtype, without(x.shape, axis, False))


@statement_of("reduction")
def combine_pairs(b: Builder) -> None:
    """Of two tiles: affine functions one after the other (a scan), the largest of pairs, sums of two types."""
    x = _tile(b, ("int32", "int64", "uint8", "float32", "float16"))
    is_integer = x.dtype in INTEGERS
    other = x.dtype if b.chance(0.5) else b.dtype(("int32", "int64"))
    axis, name = b.rng.randrange(len(x.shape)), b.name("combine")
    kind = b.rng.choice(("affine", "largest", "sums") if is_integer else ("largest", "sums"))
    if kind == "affine":
        other = x.dtype
    y = b.value(other, x.shape)
    body = {
        "affine": "return a0 * b0, (a1 * b0 + b1)",
        "largest": (
            "keep = (a0 > b0) | ((a0 == b0) & (a1 < b1))\n    return tl.where(keep, a0, b0), tl.where(keep, a1, b1)"
        ),
        "sums": "return a0 + b0, a1 + b1",
    }[kind]
    b.function(f"def {name}(a0, a1, b0, b1):\n    {body}")
    is_scan = b.chance(0.6 if kind == "affine" else 0.4)
    shape = x.shape if is_scan else without(x.shape, axis, False)
    scanned = f"tl.associative_scan(({x}, {y}), {axis}, {name}, reverse={b.chance(0.4)})"
    call = scanned if is_scan else f"tl.reduce(({x}, {y}), {axis}, {name})"
    first, second = b.name(), b.name()
    b.emit(f"{first}, {second} = {call}")
    b.add_to_scope(Value(first, x.dtype, shape))
    b.add_to_scope(Value(second, other, shape))


@statement_of("reduction")
def scan_of_matrices(b: Builder) -> None:
    """Products of matrices of 2 x 2, whose order matters, with a count of another type beside them."""
    dtype, other = b.dtype(INTEGERS), b.dtype(INTEGERS)
    shape, name = b.shape(1, 3, 256), b.name("combine")
    x, y, count = b.value(dtype, shape), b.value(dtype, shape), b.value(other, shape)
    cells = "a0 * b0 + a1 * b2, a0 * b1 + a1 * b3, a2 * b0 + a3 * b2, a2 * b1 + a3 * b3, n + m"
    b.function(f"def {name}(a0, a1, a2, a3, n, b0, b1, b2, b3, m):\n    return {cells}")
    results = [b.name() for _ in range(5)]
    axis, reverse = b.rng.randrange(len(shape)), b.chance(0.4)
    tiles = f"({x}, {y}, {y}, {x}, {count})"
    b.emit(f"{', '.join(results)} = tl.associative_scan({tiles}, {axis}, {name}, reverse={reverse})")
    for result, of_type in zip(results[1:], (dtype, dtype, dtype, other), strict=True):
        b.add_to_scope(Value(result, of_type, shape))


@statement_of("reduction")
def sums_of_three(b: Builder) -> None:
    """Of three types at once, along an axis or all."""
    x = _tile(b, NUMBERS)
    dtypes = (x.dtype, b.dtype(INTEGERS), b.dtype(("float32", "float64", "int64")))
    tiles = [x, *(b.value(dtype, x.shape) for dtype in dtypes[1:])]
    axis, name = _axis(b, x), b.name("combine")
    b.function(f"def {name}(a, b, c, d, e, f):\n    return (a + d).to(tl.{dtypes[0]}), b ^ e, tl.where(c > f, c, f)")
    results = [b.name() for _ in tiles]
    b.emit(f"{', '.join(results)} = tl.reduce(({', '.join(map(str, tiles))}), {axis}, {name})")
    for result, dtype in zip(results, dtypes, strict=True):
        b.add_to_scope(Value(result, dtype, without(x.shape, axis, False)))


@statement_of("reduction")
def rounded_first(b: Builder) -> None:
    """A sum of what was converted from fp8."""
    x = b.value(b.rng.choice(FP8), b.shape(1))
    b.define(f"tl.sum({x}.to(tl.float32), {len(x.shape) - 1})", "float32", x.shape[:-1])


@statement_of("reduction")
def rows_less_their_own(b: Builder) -> None:
    """What rows, or columns, have in common is computed of several sums, and taken from each of their elements."""
    shape = b.rng.choice(((16, 64), (64, 16), (8, 128), (32, 32), (4, 16, 16), (128, 8)))
    x, axis = (
        b.value(b.rng.choice(("float32", "int32", "float16", "int8", "int64")), shape),
        b.rng.randrange(len(shape)),
    )
    dtype = SUM_TYPE.get(x.dtype, x.dtype)
    common = [b.use(b.define(_statistic(b, x, axis), dtype, without(shape, axis, False), "s")) for _ in range(2)]
    ways = (
        f"{common[0]} * 3",
        f"{common[0]} - {common[1]}",
        f"tl.where({common[1]} > 2, {common[0]}, 1)",
        f"-{common[0]}",
    )
    total = b.use(b.define(f"({b.rng.choice(ways)}).to(tl.{dtype})", dtype, common[0].shape, "s"))
    index = ", ".join("None" if at == axis else ":" for at in range(len(shape)))
    b.define(f"({x} - {total}[{index}]).to(tl.{dtype})", dtype, shape)


def _statistic(b: Builder, x: Value, axis: int) -> str:
    name = b.rng.choice(("sum", "max", "min", "argmax"))
    return f"tl.{name}({x}, {axis}).to(tl.{SUM_TYPE.get(x.dtype, x.dtype)})"


@statement_of("reduction")
def one_tile_twice(b: Builder) -> None:
    """As several operands, of which the function makes something else each."""
    x = _tile(b, ("int32", "int64", "float32", "uint8", "int16"))
    y = x if b.chance(0.6) else b.value(x.dtype, x.shape)
    name, axis = b.name("combine"), b.rng.randrange(len(x.shape))
    last = "c | f" if x.dtype in INTEGERS else "tl.maximum(c, f)"
    b.function(f"def {name}(a, b, c, d, e, f):\n    return tl.maximum(a, d), tl.minimum(b, e), {last}")
    is_scan = b.chance(0.4)
    call = f"tl.{'associative_scan' if is_scan else 'reduce'}(({x}, {x}, {y}), {axis}, {name})"
    results, shape = [b.name() for _ in range(3)], x.shape if is_scan else without(x.shape, axis, False)
    b.emit(f"{', '.join(results)} = {call}")
    for result in results:
        b.add_to_scope(Value(result, x.dtype, shape))


@statement_of("reduction")
def branch_on_place(b: Builder) -> None:
    """Where an extreme is, of elements that are often equal, or NaN: all threads go one way, and load one row."""
    if b.depth > 2:
        raise Unfit
    size, columns = b.rng.choice((16, 64, 256)), b.rng.choice((8, 64))
    numbers = b.rng.choice(((1.0,), (1.0, 2.0), (float("nan"),), (float("nan"), 1.0), (0.0, -0.0)))
    name, rows = b.array("float32", size * b.programs, numbers), b.array("int32", size * columns)
    left = b.rng.choice((True, False))
    place = b.define(
        f"tl.arg{b.rng.choice(('max', 'min'))}(tl.load({name} + pid * {size} + tl.arange(0, {size})), 0, "
        f"tie_break_left={left})",
        "int32",
        (),
    )
    row = b.define(f"tl.load({rows} + {place} * {columns} + tl.arange(0, {columns}))", "int32", (columns,))
    with b.block(f"if {place} > {b.rng.choice((0, size // 2, size - 2))}:"):
        b.emit(f"{row} += tl.sum(tl.flip({row}, 0), 0)")


@statement_of("reduction")
def functions_in_combine(b: Builder) -> None:
    """What branches, or takes long, in the function of a reduction, a scan or of each element, and in a branch."""
    name, shape = b.name("combine"), b.shape(1, 3)
    x = b.value("float32", shape)
    function = b.rng.choice(("sin", "cos", "exp", "log", "sqrt", "erf"))
    large = b.rng.choice((1.0, 1e3, 1e6, 3e38))
    angle = f"tl.{function}(tl.abs({{}}) * {large} + 1.0)"
    kind, axis = b.rng.choice(("reduce", "associative_scan", "map", "branch")), b.rng.randrange(len(shape))
    if kind == "map":
        body = f"    if a > b:\n        return {angle.format('a')}\n    return {angle.format('b')} + a"
        b.function(f"def {name}(a, b):\n{body}")
        b.define(f"tl.map_elementwise({name}, {x}, {b.value('float32', shape)})", "float32", shape)
    elif kind == "branch":
        value = b.define(f"{x} + 0.0", "float32", shape)
        with b.block(f"if {b.value('int1', ())}:"):
            b.emit(f"{value} = {angle.format(value)}")
    else:  # of the larger one of two, whichever comes first
        keep = f"    return tl.where({angle.format('a')} >= -9.0, tl.maximum(a, b), tl.maximum(b, a))"
        b.function(f"def {name}(a, b):\n{keep}")
        result = shape if kind == "associative_scan" else without(shape, axis, False)
        b.define(f"tl.{kind}({x}, {axis}, {name})", "float32", result)
