"""Matrix products: of every type, alone, with an accumulator in a loop, chained, of a batch."""

from __future__ import annotations

from tests.fuzz.generator.builder import FP8, MAX_NUMEL, Builder, Unfit, Value, shape_text, statement_of
from tests.fuzz.generator.memory import strided

RESULT = {"int8": "int32", "float64": "float64"}
SIZES = (1, 2, 4, 8, 16, 32, 64, 128)
# Of tl.dot_scaled: the type of the numbers, and how many of them a byte or an element has.
FORMATS = {
    "e2m1": ("uint8", 2),
    "e4m3": ("float8e4nv", 1),
    "e5m2": ("float8e5", 1),
    "bf16": ("bfloat16", 1),
    "fp16": ("float16", 1),
}
# What is stored in fewer bits than a dot multiplies.
NARROWER = dict.fromkeys(("float16", "bfloat16"), ("int8", "uint8", "float8e5"))
LEAST_K = {"int8": 32, **dict.fromkeys(FP8, 32)}


def operand(b: Builder, dtype: str, shape: tuple[int, ...]) -> Value:
    """From memory, row- or column-major, sometimes computed on, or moved."""
    if b.chance(0.25):
        return b.value(dtype, shape)
    if b.chance(0.12) and shape[-1] > 1:
        return halves(b, dtype, shape)
    fill = b.rng.choice(("small", "normal", "normal"))
    name = b.array(dtype, Value("", dtype, shape).numel * b.programs, fill)
    order = list(range(len(shape)))
    if b.chance(0.4):
        order[-1], order[-2] = order[-2], order[-1]
    size = Value("", dtype, shape).numel
    loaded = b.define(f"tl.load({name} + pid * {size} + {strided(shape, order)})", dtype, shape)
    if b.chance(0.2) and dtype in ("float16", "float32", "bfloat16", "int8"):
        return b.define(f"({loaded} + 1).to(tl.{dtype})", dtype, shape)
    return loaded


def halves(b: Builder, dtype: str, shape: tuple[int, ...]) -> Value:
    """Of a tile of half the columns, and of what is computed of it, or of another one."""
    half = (*shape[:-1], shape[-1] // 2)
    low = operand(b, dtype, half)
    is_computed = b.chance(0.6) and dtype in ("float16", "float32", "bfloat16", "int8")
    high = b.define(f"({low} * 2).to(tl.{dtype})", dtype, half) if is_computed else operand(b, dtype, half)
    how = b.rng.choice(("tl.reshape(tl.join({}, {}), {})", "tl.interleave({}, {})", "tl.reshape(tl.permute({}), {})"))
    if "permute" in how:  # one half behind the other
        order = (*range(len(half) - 1), len(half), len(half) - 1)
        return b.define(how.format(f"tl.join({low}, {high}), {order}", shape_text(shape)), dtype, shape)
    return b.define(how.format(low, high, shape_text(shape)), dtype, shape)


@statement_of("dot")
def square(b: Builder) -> None:
    """Both operands are one tile, or made of one."""
    dtype = draw_type(b)
    size = max(b.rng.choice((16, 32, 32)), LEAST_K.get(dtype, 16))
    x = operand(b, dtype, (size, size))
    others = [str(x), f"tl.trans({x})"]
    others += [] if dtype in FP8 else [f"({x} + 1).to(tl.{dtype})", f"tl.abs({x})"]
    operands = [str(x), b.rng.choice(others)]
    b.rng.shuffle(operands)
    result = result_type(b, dtype)
    b.define(f"tl.dot({', '.join(operands)}{keywords(b, dtype, result)})", result, (size, size))


def keywords(b: Builder, dtype: str, result: str) -> str:
    if dtype == "float32":
        precision = b.rng.choice(("", "ieee", "ieee", "tf32x3", "bf16x3", "bf16x6"))
        return f', input_precision="{precision}"' if precision else ""
    more = f", max_num_imprecise_acc={b.rng.choice((0, 16, 64))}" if dtype in FP8 and b.chance(0.2) else ""
    return (", out_dtype=tl.float16" if result == "float16" else "") + more


def result_type(b: Builder, dtype: str) -> str:
    if dtype in ("float16", *FP8) and b.chance(0.15):
        return "float16"
    return RESULT.get(dtype, "float32")


def draw_type(b: Builder) -> str:
    return b.rng.choice(("float16", "float16", "bfloat16", "float32", "float32", "int8", "float64", *FP8))


@statement_of("dot")
def product(b: Builder) -> None:
    dtype = draw_type(b)
    m, n, k = (
        b.rng.choice((16, 32, 64)),
        b.rng.choice((8, 16, 32, 64)),
        max(b.rng.choice((16, 32)), LEAST_K.get(dtype, 16)),
    )
    n = max(n, 16) if b.chance(0.8) else n
    batch = b.rng.choice(((2,), (2,), (2, 1), (1, 2, 2))) if b.chance(0.15) else ()
    if b.chance(0.3):
        m, n, k = small_sizes(b)
    result = result_type(b, dtype)
    x_turned, y_turned = b.chance(0.1), b.chance(0.1)
    x = operand(b, dtype, (*batch, k, m) if x_turned else (*batch, m, k))
    other = b.rng.choice(FP8) if dtype in FP8 and b.chance(0.4) else dtype
    y = operand(b, other, (*batch, n, k) if y_turned else (*batch, k, n))
    accumulator = f", {b.value(result, (*batch, m, n))}" if b.chance(0.4) else ""
    older = f"{', trans_a=True' if x_turned else ''}{', trans_b=True' if y_turned else ''}"
    b.define(f"tl.dot({x}, {y}{accumulator}{keywords(b, dtype, result)}{older})", result, (*batch, m, n))


def rows_of(b: Builder, *usual: int) -> int:
    """Of a first operand in a loop: at times as few as a decode has."""
    return b.rng.choice((1, 2, 4, 8) if b.chance(0.25) else usual)


def small_sizes(b: Builder) -> tuple[int, int, int]:
    """Of any M, N and K, as far as tiles stay small."""
    while True:
        m, n, k = (b.rng.choice(SIZES) for _ in range(3))
        if max(m * n, m * k, n * k) <= MAX_NUMEL * 2:
            return m, n, k


@statement_of("dot")
def sums_of_halves(b: Builder) -> None:
    """Carried in fp16 by loops, of one dot or two, from zero or not, read in the loop or after it, nested or not."""
    if b.depth > 2:
        raise Unfit
    m, n, k = rows_of(b, 16, 32, 64), b.rng.choice((16, 32, 64)), b.rng.choice((16, 32))
    dtype = b.rng.choice(("float16", "float16", "float8e5"))
    k = max(k, LEAST_K.get(dtype, 16))
    x, y = operand(b, dtype, (m, k)), operand(b, dtype, (k, n))
    start = b.rng.choice((f"tl.zeros(({m}, {n}), tl.float16)", f"tl.full(({m}, {n}), 0.1, tl.float16)", None))
    acc = b.define(start or f"{b.value('float16', (m, n))} + 0.0", "float16", (m, n))
    dot = f"{acc} = tl.dot({x}, {y}, {acc}, out_dtype=tl.float16)"

    def loop(trips: int) -> str:
        return f"for {b.name('k')} in range({b.number('int32', trips) if b.chance(0.5) else trips}):"

    with b.block(loop(b.rng.randint(0, 3))):
        if b.chance(0.3):
            with b.block(loop(b.rng.randint(0, 2))):
                b.emit(dot)
        for _ in range(b.rng.randint(1, 2)):
            b.emit(dot)
        if b.chance(0.3):
            b.emit(b.rng.choice((f"{acc} = {acc} * 0.5", f"{acc} = tl.where({acc} > 1.0, 1.0, {acc})", "pass")))


@statement_of("dot")
def scaled(b: Builder) -> None:
    """Of two formats, with scales of both kinds or without, packed along each axis."""
    formats = [b.rng.choice(tuple(FORMATS)) for _ in range(2)]
    m, n, k = b.rng.choice((4, 16, 32, 64)), b.rng.choice((8, 16, 32)), b.rng.choice((32, 64))
    packs = [format != "e2m1" or b.chance(0.7) for format in formats]
    shapes = []
    for format, shape, k_axis, pack in zip(formats, ([m, k], [k, n]), (1, 0), packs, strict=True):
        shape[k_axis if pack else 1 - k_axis] //= FORMATS[format][1]
        shapes.append(tuple(shape))
    values = [operand(b, FORMATS[format][0], shape) for format, shape in zip(formats, shapes, strict=True)]
    scales = [scale_of(b, format, rows, k) for format, rows in zip(formats, (m, n), strict=True)]
    accumulator = f", {b.value('float32', (m, n))}" if b.chance(0.4) else ""
    extra = "".join(f", {side}_k_pack=False" for side, pack in zip(("lhs", "rhs"), packs, strict=True) if not pack)
    b.define(
        f'tl.dot_scaled({values[0]}, {scales[0]}, "{formats[0]}", {values[1]}, {scales[1]}, "{formats[1]}"'
        f"{accumulator}{extra})",
        "float32",
        (m, n),
    )


def scale_of(b: Builder, format: str, rows: int, k: int) -> str:
    if b.chance(0.4):
        return "None"
    dtype = "uint8" if format in ("bf16", "fp16") or b.chance(0.6) else "float8e4nv"
    shape = (rows, k // b.rng.choice((16, 32)))
    if dtype == "uint8" and b.chance(0.6):
        near_one = b.define(f"{b.value('uint8', shape)} % 16 + 120", dtype, shape)
        return str(near_one)
    return str(b.value(dtype, shape))


def computed(b: Builder, loaded: Value, dtype: str) -> Value:
    """What was loaded, as an operand: of fewer bits, and scaled or not."""
    if loaded.dtype == dtype:
        return loaded
    wide = b.define(f"{loaded}.to(tl.{dtype})", dtype, loaded.shape)
    return b.define(f"{wide} * 0.125", dtype, loaded.shape) if b.chance(0.5) else wide


@statement_of("dot")
def product_loop(b: Builder) -> None:
    """acc += a @ b over K, pointers advanced or computed, masked or not, b of each program or of all; maybe beside
    another product, of another K.
    """
    if b.depth > 2:
        raise Unfit
    dtype = draw_type(b)
    m, n, k = (
        rows_of(b, 16, 32, 64, 64),
        b.rng.choice((16, 32, 64, 64)),
        max(b.rng.choice((16, 32, 64)), LEAST_K.get(dtype, 16)),
    )
    trips = b.rng.randint(1, 4)
    result = result_type(b, dtype)
    total = trips * k
    x_stored, y_stored = (b.rng.choice(NARROWER.get(dtype, (dtype,))) if b.chance(0.25) else dtype for _ in range(2))
    x_name = b.array(x_stored, m * total * b.programs, b.rng.choice(("small", "normal")))
    y_name = b.array(y_stored, total * n * b.programs, b.rng.choice(("small", "normal")))
    acc = b.define(f"tl.zeros(({m}, {n}), dtype=tl.{result})", result, (m, n))
    rows, columns, ks, counter = b.name("r"), b.name("c"), b.name("ks"), b.name("k")
    for name, extent in ((rows, m), (columns, n), (ks, k)):
        b.emit(f"{name} = tl.arange(0, {extent})")
    x_is_row_major, y_is_row_major = b.chance(0.7), b.chance(0.7)
    x_step, y_step = (k if x_is_row_major else k * m), (k * n if y_is_row_major else k)
    x_at = f"{rows}[:, None] * {total} + {ks}[None, :]" if x_is_row_major else f"{rows}[:, None] + {ks}[None, :] * {m}"
    y_at = (
        f"{ks}[:, None] * {n} + {columns}[None, :]"
        if y_is_row_major
        else f"{ks}[:, None] + {columns}[None, :] * {total}"
    )
    x_ptrs, y_ptrs = b.name("p"), b.name("p")
    b.emit(f"{x_ptrs} = {x_name} + pid * {m * total} + {x_at}")
    b.emit(f"{y_ptrs} = {y_name} + {'' if b.chance(0.4) else f'pid * {total * n} + '}{y_at}")
    other = _Other(b, rows, columns, (m, n), trips) if b.chance(0.3) else None
    bound = b.number("int32", trips) if b.chance(0.5) else trips
    limit = b.number("int32", b.rng.choice((total, total - 3, k))) if b.chance(0.35) else None
    with b.block(f"for {counter} in range({bound}):"):
        masks = ["", ""]
        if limit is not None:
            masks = [
                f", mask={counter} * {k} + {ks}[None, :] < {limit}, other=0.0",
                f", mask={counter} * {k} + {ks}[:, None] < {limit}, other=0.0",
            ]
        advances = b.chance(0.6)
        x_where = x_ptrs if advances else f"{x_ptrs} + {counter} * {x_step}"
        y_where = y_ptrs if advances else f"{y_ptrs} + {counter} * {y_step}"
        x = computed(b, b.define(f"tl.load({x_where}{masks[0]})", x_stored, (m, k)), dtype)
        y = computed(b, b.define(f"tl.load({y_where}{masks[1]})", y_stored, (k, n)), dtype)
        extra = keywords(b, dtype, result)
        b.emit(f"{acc} = tl.dot({x}, {y}, {acc}{extra})")
        if b.chance(0.2):
            b.statement()
        if b.chance(0.15):
            b.emit(f"{acc} = {acc} * 2" if result != "int32" else f"{acc} = {acc} + 1")
        if other is not None:
            other.multiply(b, counter)
        if advances:
            b.emit(f"{x_ptrs} += {x_step}")
            b.emit(f"{y_ptrs} += {y_step}")


class _Other:
    """A product of fp32 or bf16 in the loop of another one, whose first operand is the same for all programs or not."""

    def __init__(self, b: Builder, rows: str, columns: str, sizes: tuple[int, int], trips: int):
        self._m, self._n = sizes
        self._k, self._trips, self._dtype = b.rng.choice((8, 16, 32, 64)), trips, b.rng.choice(("float32", "bfloat16"))
        self._rows, self._columns, self._is_shared = rows, columns, b.chance(0.5)
        total = trips * self._k
        self._names = [b.array(self._dtype, extent * total * b.programs, "small") for extent in sizes]
        self._sum = b.define(f"tl.zeros({sizes}, dtype=tl.float32)", "float32", sizes)

    def multiply(self, b: Builder, counter: str) -> None:
        (x, y), k, total = self._names, self._k, self._k * self._trips
        at = f"{counter} * {k} + tl.arange(0, {k})"
        own = "" if self._is_shared else f"pid * {self._m * total} + "
        left = f"tl.load({x} + {own}{self._rows}[:, None] * {total} + ({at})[None, :])"
        right = f"tl.load({y} + ({at})[:, None] * {self._n} + {self._columns}[None, :])"
        x, y = b.define(left, self._dtype, (self._m, k)), b.define(right, self._dtype, (k, self._n))
        b.emit(f"{self._sum} = tl.dot({x}, {y}, {self._sum}{keywords(b, self._dtype, 'float32')})")


@statement_of("dot")
def unpacked_loop(b: Builder) -> None:
    """acc += a @ b over K, b in 8 or 4 bits: bytes, words of eight, or pairs that are joined."""
    if b.depth > 2:
        raise Unfit
    dtype, kind = b.rng.choice(("float16", "bfloat16")), b.rng.choice(("bytes", "words", "pairs"))
    m, n, k = rows_of(b, 16, 64), b.rng.choice((16, 32, 64)), b.rng.choice((32, 64))
    trips = b.rng.randint(1, 4)
    total, counter = trips * k, b.name("k")
    x_name = b.array(dtype, m * total * b.programs, "small")
    w_type, per_element = ("int32", 8) if kind == "words" else ("int8", 1 if kind == "bytes" else 2)
    w_name, scales = b.array(w_type, total * n // per_element), b.array("float32", trips * n, "normal")
    rows, columns, ks = b.name("r"), b.name("c"), b.name("ks")
    for name, extent in ((rows, m), (columns, n), (ks, k)):
        b.emit(f"{name} = tl.arange(0, {extent})")
    acc = b.define(f"tl.zeros(({m}, {n}), dtype=tl.float32)", "float32", (m, n))
    with b.block(f"for {counter} in range({b.number('int32', trips) if b.chance(0.5) else trips}):"):
        at = f"{rows}[:, None] * {total} + {counter} * {k} + {ks}[None, :]"
        x = b.define(f"tl.load({x_name} + pid * {m * total} + {at})", dtype, (m, k))
        w = b.define(_unpacked(b, kind, w_name, f"{counter}", columns, ks, (n, k, total), dtype), dtype, (k, n))
        if b.chance(0.5):
            scale = b.define(f"tl.load({scales} + {counter} * {n} + {columns})", "float32", (n,))
            b.emit(f"{acc} += tl.dot({x}, {w}) * {scale}[None, :]")
        else:
            b.emit(f"{acc} = tl.dot({x}, {w}, {acc})")


def _unpacked(
    b: Builder, kind: str, name: str, step: str, columns: str, ks: str, sizes: tuple[int, int, int], dtype: str
) -> str:
    n, k, total = sizes
    if kind == "bytes":
        return f"tl.load({name} + {columns}[None, :] * {total} + {step} * {k} + {ks}[:, None]).to(tl.{dtype})"
    if kind == "words":
        words = f"tl.load({name} + ({step} * {k // 8} + {ks} // 8)[:, None] * {n} + {columns}[None, :])"
        return f"((({words} >> ({ks} % 8 * 4)[:, None]) & 15) - 8).to(tl.{dtype})"
    halves = f"{step} * {k // 2} + tl.arange(0, {k // 2})[None, :]"
    pairs = b.define(f"tl.load({name} + {columns}[:, None] * {total // 2} + {halves})", "int8", (n, k // 2))
    low, high = f"(({pairs} << 4) >> 4).to(tl.{dtype})", f"({pairs} >> 4).to(tl.{dtype})"
    return f"tl.join({low}, {high}).reshape({n}, {k}).T"


@statement_of("dot")
def described_loop(b: Builder) -> None:
    """acc += a @ b over K, both loaded through descriptors."""
    if b.depth > 2:
        raise Unfit
    dtype = b.rng.choice(("float16", "float16", "bfloat16", "float32", "int8", "float8e5"))
    m, n, k = rows_of(b, 16, 64, 128), b.rng.choice((16, 32, 64)), b.rng.choice((32, 64))
    trips, result = b.rng.randint(1, 4), result_type(b, dtype)
    names = [b.array(dtype, size * trips, b.rng.choice(("small", "normal"))) for size in (m * k, k * n)]
    a, other = b.name("d"), b.name("d")
    total = trips * k
    sizes = [str(total), str(m), str(n)]
    if b.chance(0.5):
        sizes = [str(b.number("int32", value)) for value in (total, m - b.rng.choice((0, 1)), n)]
    b.emit(
        f"{a} = tl.make_tensor_descriptor({names[0]}, shape=[{sizes[1]}, {sizes[0]}], strides=[{total}, 1], "
        f"block_shape=[{m}, {k}])"
    )
    is_transposed = b.chance(0.4)
    rows, columns = (n, total) if is_transposed else (total, n)
    described = (sizes[2], sizes[0]) if is_transposed else (sizes[0], sizes[2])
    b.emit(
        f"{other} = tl.make_tensor_descriptor({names[1]}, shape=[{described[0]}, {described[1]}], "
        f"strides=[{columns}, 1], block_shape={[n, k] if is_transposed else [k, n]})"
    )
    acc = b.define(f"tl.zeros(({m}, {n}), dtype=tl.{result})", result, (m, n))
    counter = b.name("k")
    bound = b.number("int32", trips) if b.chance(0.5) else trips
    with b.block(f"for {counter} in range({bound}):"):
        x = f"{a}.load([0, {counter} * {k}])"
        y = f"{other}.load([0, {counter} * {k}]).T" if is_transposed else f"{other}.load([{counter} * {k}, 0])"
        b.emit(f"{acc} = tl.dot({x}, {y}, {acc})")


@statement_of("dot")
def attention(b: Builder) -> None:
    """Two products in a loop, with a running maximum and sum of the rows between them."""
    if b.depth > 1:
        raise Unfit
    dtype, rows, keys, depth = b.rng.choice(("float16", "bfloat16")), rows_of(b, 16, 64), 32, b.rng.choice((16, 32))
    trips = b.rng.randint(1, 3)
    q = operand(b, dtype, (rows, depth))
    names = [b.array(dtype, keys * trips * depth * b.programs, "normal") for _ in range(2)]
    best = b.define(f"tl.full(({rows},), -1.0e4, tl.float32)", "float32", (rows,))
    total = b.define(f"tl.zeros(({rows},), dtype=tl.float32)", "float32", (rows,))
    acc = b.define(f"tl.zeros(({rows}, {depth}), dtype=tl.float32)", "float32", (rows, depth))
    k_at = b.use(b.define(strided((depth, keys), [1, 0]), "int32", (depth, keys), "i"))
    v_at = b.use(b.define(strided((keys, depth), [0, 1]), "int32", (keys, depth), "i"))
    counter, size = b.name("k"), keys * trips * depth
    bound = b.number("int32", trips) if b.chance(0.5) else trips
    limit = b.number("int32", keys * trips - 5) if b.chance(0.4) else None
    with b.block(f"for {counter} in range({bound}):"):
        k = b.define(f"tl.load({names[0]} + pid * {size} + {counter} * {keys * depth} + {k_at})", dtype, (depth, keys))
        v = b.define(f"tl.load({names[1]} + pid * {size} + {counter} * {keys * depth} + {v_at})", dtype, (keys, depth))
        s = b.define(f"tl.dot({q}, {k}) * 0.25", "float32", (rows, keys))
        if limit is not None:
            inside = f"({counter} * {keys} + tl.arange(0, {keys}))[None, :] < {limit}"
            b.emit(f'{s} = tl.where({inside}, {s}, float("-inf"))')
        higher = b.define(f"tl.maximum({best}, tl.max({s}, 1))", "float32", (rows,))
        p = b.define(f"tl.exp({s} - {higher}[:, None])", "float32", (rows, keys))
        scale = b.define(f"tl.exp({best} - {higher})", "float32", (rows,))
        b.emit(f"{total} = {total} * {scale} + tl.sum({p}, 1)")
        b.emit(f"{acc} = tl.dot({p}.to(tl.{dtype}), {v}, {acc} * {scale}[:, None])")
        b.emit(f"{best} = {higher}")
    b.define(f"{acc} / {total}[:, None]", "float32", (rows, depth))


@statement_of("dot")
def chained(b: Builder) -> None:
    """A product of a product."""
    first = b.pick(
        lambda v: (
            len(v.shape) == 2 and v.dtype in ("float32", "int32") and min(v.shape) >= 16 and v.numel <= MAX_NUMEL * 4
        )
    )
    dtype = b.rng.choice(("float16", "bfloat16", "float32")) if first.dtype == "float32" else "int8"
    n = b.rng.choice((16, 32))
    if dtype == "int8" and first.shape[1] < 32:
        raise Unfit
    x = b.use(b.define(f"{first}.to(tl.{dtype})", dtype, first.shape))
    y = operand(b, dtype, (first.shape[1], n))
    result = RESULT.get(dtype, "float32")
    b.define(f"tl.dot({x}, {y}{keywords(b, dtype, result)})", result, (first.shape[0], n))


@statement_of("dot")
def of_transposed(b: Builder) -> None:
    dtype, m, k = b.rng.choice(("float16", "bfloat16", "float32")), b.rng.choice((16, 32)), 32
    x = operand(b, dtype, (k, m))
    turned = b.use(b.define(f"tl.trans({x})", dtype, (m, k)))
    b.define(f"tl.dot({turned}, {x})", "float32", (m, m))
    b.emit(f"tl.static_assert({shape_text((m, k))} == {shape_text(turned.shape)})")
