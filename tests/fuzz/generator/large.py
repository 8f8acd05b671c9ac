"""Tiles that fill the registers of threads: computed on, summed, turned and multiplied, so that little is left of them.

    x = tl.load(p + tl.arange(0, 4096))
    s = tl.cumsum(tl.libdevice.tanh(x), 0)
    v = tl.max(s, 0)

Of a program in few warps they are what is cut into slices, stored early and waited for at once; in sixteen warps
what is exchanged by all of them.
"""

from __future__ import annotations

from tests.fuzz.generator.builder import Builder, Unfit, Value, shape_text, statement_of
from tests.fuzz.generator.reductions import SUM_TYPE

SHAPES = ((2048,), (4096,), (2, 1024), (1024, 2), (64, 64), (16, 256), (256, 16), (128, 32), (8, 512), (4, 16, 64))
DTYPES = ("float32", "float32", "float16", "int32", "int64", "int8", "bfloat16", "float64")
FUNCTIONS = ("tanh", "expm1", "exp", "log1p", "rsqrt", "erf", "sin", "atan", "fmin", "ceil", "abs")
_OF_LANGUAGE = ("exp", "rsqrt", "erf", "sin", "ceil", "abs")


def _load(b: Builder, dtype: str, shape: tuple[int, ...]) -> Value:
    size = Value("", dtype, shape).numel
    name, terms, stride = b.array(dtype, size * b.programs, b.rng.choice(("normal", "small", "special"))), [], size
    for axis, extent in enumerate(shape):
        stride //= extent
        index = ", ".join(":" if other == axis else "None" for other in range(len(shape)))
        terms.append(f"tl.arange(0, {extent})[{index}] * {stride}")
    return b.define(f"tl.load({name} + pid * {size} + {' + '.join(terms)})", dtype, shape)


def _function(b: Builder, x: Value) -> str:
    name = b.rng.choice(FUNCTIONS)
    argument = f"tl.clamp({x}, -4.0, 4.0)"
    if name in ("log1p", "rsqrt"):
        argument = f"(tl.abs({x}) + 0.5)"
    prefix = "tl" if name in _OF_LANGUAGE else "tl.libdevice"
    return f"{prefix}.{name}({argument}{', 1.0' if name == 'fmin' else ''})"


def _step(b: Builder, x: Value) -> Value:
    axis, is_float = b.rng.randrange(len(x.shape)), "float" in x.dtype
    kind = b.rng.choice(("function", "sum", "scan", "turn", "choose", "rows", "again"))
    if kind == "function" and x.dtype in ("float32", "float64"):
        return b.define(_function(b, x), x.dtype, x.shape)
    if kind == "scan":
        name = b.rng.choice(("cumsum", "cumsum", "cumprod" if not is_float else "cumsum"))
        reverse = ", reverse=True" if b.chance(0.3) else ""
        return b.define(f"tl.{name}({x}, {axis}{reverse}).to(tl.{x.dtype})", x.dtype, x.shape)
    if kind == "turn":
        order = list(range(len(x.shape)))
        b.rng.shuffle(order)
        shape = tuple(x.shape[axis] for axis in order)
        turned = f"tl.permute({x}, {tuple(order)})" if len(order) > 1 else f"tl.flip({x}, 0)"
        return b.define(turned, x.dtype, shape if len(order) > 1 else x.shape)
    if kind == "choose":
        return b.define(f"tl.where({x} > 0, {x}, {_load(b, x.dtype, x.shape)})", x.dtype, x.shape)
    if kind == "rows":
        reduced = f"tl.{b.rng.choice(('max', 'min'))}({x}, {axis}, keep_dims=True)"
        return b.define(f"({x} - {reduced}).to(tl.{x.dtype})", x.dtype, x.shape)
    if kind == "sum":
        total = f"tl.sum({x}, {axis}, keep_dims=True)"
        return b.define(f"({x} + {total}).to(tl.{x.dtype})", x.dtype, x.shape)
    return b.define(f"({x} * {_load(b, x.dtype, x.shape)} + {x}).to(tl.{x.dtype})", x.dtype, x.shape)


@statement_of("large")
def computed(b: Builder) -> None:
    """Some steps of one tile, of which the ends are used again."""
    if b.depth > 2:
        raise Unfit
    x = first = _load(b, b.rng.choice(DTYPES), b.rng.choice(SHAPES))
    for _ in range(b.rng.randint(1, 5)):
        x = _step(b, x)
    if x.shape == first.shape and b.chance(0.5):
        x = b.define(f"({x} - {first}).to(tl.{x.dtype})", x.dtype, x.shape)
    _leave(b, x)


@statement_of("large")
def several_scans(b: Builder) -> None:
    """Of some tiles at once, of several types, along any axis; sums with the order of their segments beside."""
    if b.depth > 2:
        raise Unfit
    shape, name = b.rng.choice(SHAPES), b.name("combine")
    axis, kind = b.rng.randrange(len(shape)), b.rng.choice(("segments", "affine", "three"))
    dtypes = {
        "segments": (b.rng.choice(("int32", "int64")), b.rng.choice(("int8", "int32"))),
        "affine": ("int32", "int32"),
        "three": (b.rng.choice(("int32", "float32")), b.rng.choice(("int8", "int16", "uint8")), "int64"),
    }[kind]
    bodies = {
        "segments": "(a, c, b, d):\n    return tl.where(d != 0, b, a + b), c | d",
        "affine": "(a, c, b, d):\n    return a * b, c * b + d",
        "three": "(a, c, e, b, d, f):\n    return tl.maximum(a, b), c ^ d, e + f",
    }
    b.function(f"def {name}{bodies[kind]}")
    tiles = [_load(b, dtype, shape) for dtype in dtypes]
    if kind == "segments":
        tiles[1] = b.define(f"({tiles[1]} > {b.rng.choice((0, 3, 150))}).to(tl.{dtypes[1]})", dtypes[1], shape)
    results = [b.name() for _ in tiles]
    call = f"tl.associative_scan(({', '.join(map(str, tiles))}), {axis}, {name}, reverse={b.chance(0.4)})"
    b.emit(f"{', '.join(results)} = {call}")
    for result, dtype in zip(results, dtypes, strict=True):
        _leave(b, b.add_to_scope(Value(result, dtype, shape)))


def _leave(b: Builder, x: Value) -> None:
    """A part of it, or what it comes to."""
    axis = b.rng.randrange(len(x.shape))
    shape = (*x.shape[:axis], *x.shape[axis + 1 :])
    kind = b.rng.choice(("sum", "max", "argmax", "all"))
    if kind == "argmax":
        b.define(f"tl.argmax({x}, {axis})", "int32", shape)
    elif kind in ("sum", "max"):
        results = SUM_TYPE if kind == "sum" else {"int8": "int32", "float16": "float32", "bfloat16": "float32"}
        b.define(f"tl.{kind}({x}, {axis})", results.get(x.dtype, x.dtype), shape)
    b.use(x)
    if kind == "all" or b.chance(0.5):
        out = b.array(x.dtype, x.numel * b.programs, "poison", prefix="out")
        flat = f"tl.reshape({x}, {shape_text((x.numel,))})"
        b.emit(f"tl.store({out} + pid * {x.numel} + tl.arange(0, {x.numel}), {flat})")


@statement_of("large")
def products(b: Builder) -> None:
    """Dots whose operands and sums are needed again, as tiles and turned: few warps have no room for them."""
    if b.depth > 2:
        raise Unfit
    dtype, size = b.rng.choice(("float16", "bfloat16", "float16", "float32")), b.rng.choice((32, 64, 64))
    tiles = [_load(b, dtype, (size, size)) for _ in range(b.rng.randint(2, 3))]
    total = b.define(f"tl.zeros(({size}, {size}), tl.float32)", "float32", (size, size))
    precision = ', input_precision="ieee"' if dtype == "float32" else ""

    def multiply() -> None:
        x, y = b.rng.choice(tiles), b.rng.choice(tiles)
        right = f"tl.trans({y})" if b.chance(0.4) else str(y)
        product = f"tl.dot({x}, {right}{precision})"
        b.emit(
            b.rng.choice(
                (
                    f"{total} = tl.dot({x}, {right}, {total}{precision})",
                    f"{total} += {product} * {x}",
                    f"{total} = {total} * 0.5 + tl.trans({product})",
                    f"{total} = {total} - {product} * tl.trans({y}).to(tl.float32)",
                    f"{total} = tl.dot({total}.to(tl.{dtype}), {right}, {total} * 0.0625{precision})",
                )
            )
        )

    for _ in range(b.rng.randint(1, 3)):
        if b.chance(0.4):
            with b.block(f"for {b.name('k')} in range({b.number('int32', b.rng.randint(0, 3))}):"):
                multiply()
        else:
            multiply()
    _leave(b, total)
