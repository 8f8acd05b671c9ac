"""Loads and stores: in order, strided, permuted, indirect, masked; in place; through pointers that were moved.

Every program of the grid has a part of each array of its own, which begins at `pid * size`. In it what is stored and
loaded happens one after the other.
"""

from __future__ import annotations

from itertools import permutations

from tests.fuzz.case import BITS, MANTISSA
from tests.fuzz.generator.builder import FP8, SIGNED, Builder, Value, shape_text, statement_of

Shape = tuple[int, ...]


def begin(b: Builder) -> None:
    """The index of the program, from 0 on, and some numbers."""
    x, y, z = (f"tl.program_id({axis})" for axis in range(3))
    text = {
        1: x,
        2: f"{x} + {y} * tl.num_programs(0)",
        3: f"{x} + tl.num_programs(0) * ({y} + tl.num_programs(1) * {z})",
    }[len(b.grid)]
    b.emit(f"pid = {text}")
    b.add_to_scope(b.use(Value("pid", "int32", ())))
    for _ in range(b.rng.choice((0, 1, 1, 2))):
        number(b)


def number(b: Builder) -> Value:
    common = ("int32", "int32", "int64", "float32", "int8", "uint32", "float64")
    dtype = b.rng.choice((*common, *common, "int1", "int16", "uint8", "uint16", "uint64", "float16", "bfloat16"))
    if dtype in MANTISSA:
        return b.number(dtype, b.rng.choice((0.0, 1.0, -1.5, 0.1, 1e30 if dtype != "float16" else -0.0)))
    if dtype == "int1":
        return b.number(dtype, b.rng.choice((0, 1)))
    low = 0 if dtype[0] == "u" else -3
    high = 127 if dtype[0] == "i" else 2 ** BITS[dtype] - 1
    return b.number(dtype, b.rng.choice((low, 0, 1, 2, 5, 16, 100, 127, high)))


def size_of(shape: Shape) -> int:
    return Value("", "int32", shape).numel


def row_major(shape: Shape) -> str:
    """0, 1, 2 ... in a shape."""
    if not shape:
        return "0"
    count = f"tl.arange(0, {size_of(shape)})"
    return count if len(shape) == 1 else f"tl.reshape({count}, {shape_text(shape)})"


def strided(shape: Shape, order: list[int], b: Builder | None = None) -> str:
    """0, 1, 2 ... with the dimensions in another order, the last of `order` the fastest: a sum of ranges.

    With a builder, strides are arguments.
    """
    strides, stride = {}, 1
    for axis in reversed(order):
        strides[axis] = stride
        stride *= shape[axis]
    terms = []
    for axis, extent in enumerate(shape):
        index = ", ".join(":" if other == axis else "None" for other in range(len(shape)))
        range_ = f"tl.arange(0, {extent})" + (f"[{index}]" if len(shape) > 1 else "")
        factor = strides[axis] if b is None else b.number("int32", strides[axis])
        terms.append(range_ if strides[axis] == 1 else f"{range_} * {factor}")
    return " + ".join(terms)


def offsets(b: Builder, shape: Shape, unique: bool = False) -> Value:
    """Offsets from 0 to the size - 1; each once if `unique`."""
    size = size_of(shape)
    if not shape:
        return Value("0", "int32", ())
    kinds = ("plain", "strided", "reversed", "indirect", "computed", "wide", "digits", "wrapped")
    kind = b.rng.choices(kinds, (12, 12, 2, 2, 2, 2, 3, 1.5))[0]
    if kind == "plain":
        return b.use(b.define(row_major(shape), "int32", shape, "i"))
    order = list(range(len(shape)))
    if b.chance(0.5):
        b.rng.shuffle(order)
    base = b.use(b.define(strided(shape, order, b if b.chance(0.2) else None), "int32", shape, "i"))
    if kind == "reversed":
        return b.use(b.define(f"{size - 1} - {base}", "int32", shape, "i"))
    if kind == "digits":
        return b.use(b.define(_of_digits(b, base, size, unique), "int32", shape, "i"))
    if kind == "wrapped":
        return b.use(b.define(_wrapped(b, base, size), "int32", shape, "i"))
    if kind == "wide":
        return b.use(b.define(f"{base}.to(tl.int64)", "int64", shape, "i"))
    if kind == "indirect":
        name = b.array("int32", size * b.programs, "unique" if unique else "index", size, "perm")
        return b.use(b.define(f"tl.load({name} + pid * {size} + {base})", "int32", shape, "i"))
    if kind == "computed" and not unique:
        known = b.values(lambda v: v.shape == shape and v.dtype in SIGNED and size <= 1 << BITS[v.dtype] - 1)
        if known:
            value = b.use(b.rng.choice(known))
            return b.use(b.define(f"{value} & {size - 1}", value.dtype, shape, "i"))
    if kind == "computed":
        return b.use(b.define(f"{base} ^ {b.rng.randrange(size)}", "int32", shape, "i"))
    return base


def _wrapped(b: Builder, base: Value, size: int) -> str:
    """The offset by way of numbers that overflow."""
    bits = size.bit_length()
    ways = (
        f"({base} * 3 + 7) * -1431655765 + 1431655763",  # by 1/3, and 7/3, of what wraps
        f"(({base} + 2147483647) - 2147483647)",
        f"(({base} << {32 - bits}) >> {32 - bits}) & {size - 1}",
        f"({base} + 1073741824) * 4 // 4",
        f"{base}.to(tl.uint8).to(tl.int32) + ({base} // 256 * 256)",
        f"(({base} - {size}) % {size}) & {size - 1}",
    )
    return b.rng.choice(ways)


def _of_digits(b: Builder, base: Value, size: int, unique: bool) -> str:
    """An offset made of a quotient and a remainder, by an argument or a constant; digits exchanged if `unique`."""
    divisors = [1 << bits for bits in range(size.bit_length())]
    number = b.rng.choice(divisors if unique else [*divisors, 3, 7, 9, 11, 28, 50])
    divisor = b.number("int32", number) if b.chance(0.6) else number
    if unique:
        return f"{base} % {divisor} * {size // number} + {base} // {divisor}"
    return b.rng.choice((f"{base} % {divisor} + {base} // {divisor}", f"{base} // {divisor} * {divisor}"))


def mask(b: Builder, shape: Shape, index: Value) -> Value:
    if shape and b.chance(0.5):
        limit = b.number("int32", b.rng.choice((0, 1, size_of(shape) // 2 + 1, size_of(shape) - 1)))
        return b.use(b.define(f"{index} < {limit}", "int1", shape, "m"))
    return b.value("int1", shape)


def part(b: Builder, size: int) -> str:
    """Where the part of this program begins, as an offset."""
    return "" if b.programs == 1 and b.chance(0.5) else f" + pid * {size}"


def load(b: Builder, dtype: str, shape: Shape) -> Value:
    size = size_of(shape)
    name = _array_of_before(b, dtype, size * b.programs) or b.array(dtype, size * b.programs)
    index = offsets(b, shape)
    pointers = f"{name}{part(b, size)} + {index}"
    hints = b.rng.choice(HINTS) if b.chance(0.1) else ""
    if b.chance(0.6):
        return b.define(f"tl.load({pointers}{hints})", dtype, shape)
    chosen = mask(b, shape, index)
    other = f", other={_other(b, dtype, shape)}" if b.chance(0.85) else ""
    return b.define(f"tl.load({pointers}, mask={chosen}{other}{hints})", dtype, shape)


HINTS = (
    ", volatile=True",
    ', cache_modifier=".cg"',
    ', cache_modifier=".ca"',
    ', eviction_policy="evict_first"',
    ', eviction_policy="evict_last"',
)


def _array_of_before(b: Builder, dtype: str, size: int) -> str | None:
    """An array that is loaded from already, and never stored to."""
    found = [a.name for a in b.arguments if a.name[0] == "x" and a.dtype == dtype and (a.size or 0) >= size]
    return b.rng.choice(found) if found and b.chance(0.3) else None


def _other(b: Builder, dtype: str, shape: Shape) -> str:
    there = b.values(lambda v: v.dtype == dtype and v.shape == shape)
    if there and b.chance(0.4):
        return str(b.use(b.rng.choice(there)))
    return "0.0" if dtype in FP8 else b.literal(dtype)


def store(b: Builder, value: Value, masked: float = 0.3) -> None:
    """To an argument of its own; what is masked stays as it was before."""
    size = size_of(value.shape)
    name = b.array(value.dtype, size * b.programs, "poison", prefix="out")
    index = offsets(b, value.shape, unique=True)
    chosen = f", mask={mask(b, value.shape, index)}" if b.chance(masked) else ""
    b.emit(f"tl.store({name} + pid * {size} + {index}, {b.use(value)}{chosen})")


def store_unused(b: Builder) -> None:
    """What nothing has used; of what is left some."""
    unused = b.unused()[-10:]
    for value in unused:
        store(b, value, masked=0.15)
    others = b.values(lambda v: v.text not in ("pid",))
    for value in b.rng.sample(others, min(len(others), 2 if unused else 4)):
        store(b, value, masked=0.15)


@statement_of("memory")
def load_something(b: Builder) -> None:
    b.load(b.dtype(), b.shape())


@statement_of("memory")
def store_something(b: Builder) -> None:
    store(b, b.pick(lambda v: v.text != "pid"))


@statement_of("memory")
def new_number(b: Builder) -> None:
    if b.depth == 1:
        number(b)


@statement_of("memory")
def update_in_place(b: Builder) -> None:
    """Each lane loads an element and stores one to the same place, masked or not, once or twice: any, or of those that
    were loaded another one.
    """
    dtype, shape = b.dtype(), b.shape()
    size = size_of(shape)
    name = b.array(dtype, size * b.programs, prefix="io")
    index = offsets(b, shape, unique=True)
    pointers = b.name("p")
    b.emit(f"{pointers} = {name} + pid * {size} + {index}")
    for _ in range(b.rng.choice((1, 1, 2))):
        before = b.define(f"tl.load({pointers})", dtype, shape)
        chosen = f", mask={mask(b, shape, index)}" if b.chance(0.4) else ""
        stored = _moved(b, before) if b.chance(0.4) else b.value(dtype, shape)
        b.emit(f"tl.store({pointers}, {stored}{chosen})")
        if b.chance(0.3):
            store(b, before)


def _moved(b: Builder, value: Value) -> Value:
    """Its elements at other indices: dimensions that are as large exchanged, or one of them turned round."""
    shape = value.shape
    orders = [order for order in permutations(range(len(shape))) if tuple(shape[axis] for axis in order) == shape]
    if len(orders) > 1:
        return b.define(f"tl.permute({value}, {b.rng.choice(orders[1:])})", value.dtype, shape)
    axes = [axis for axis, extent in enumerate(shape) if extent > 1]
    return b.define(f"tl.flip({value}, {b.rng.choice(axes)})", value.dtype, shape) if axes else value


@statement_of("memory")
def load_after_store(b: Builder) -> None:
    """Through memory into another order, and maybe over what was loaded."""
    value = b.pick(lambda v: v.shape and v.numel <= 512)
    size = value.numel
    name = b.array(value.dtype, size * b.programs, prefix="io")
    there = offsets(b, value.shape, unique=True)
    chosen = f", mask={mask(b, value.shape, there)}" if b.chance(0.3) else ""
    b.emit(f"tl.store({name} + pid * {size} + {there}, {value}{chosen})")
    if b.chance(0.2):
        b.emit("tl.debug_barrier()")
    back = offsets(b, value.shape)
    loaded = b.define(f"tl.load({name} + pid * {size} + {back})", value.dtype, value.shape)
    if b.chance(0.3):
        again = offsets(b, value.shape, unique=True)
        b.emit(f"tl.store({name} + pid * {size} + {again}, {b.use(loaded)})")


@statement_of("memory")
def bounded_rows(b: Builder) -> None:
    """A tile of a matrix with runtime sizes and strides, masked at both ends, as everyday kernels load them."""
    dtype, (rows, columns) = b.dtype(), b.shape(2, 2)
    num_rows, num_columns = (b.rng.randint(1, extent) for extent in (rows, columns))
    stride = columns * b.rng.choice((1, 1, 2))
    name = b.array(dtype, rows * stride * b.programs)
    m, n, step = (b.number("int32", value) for value in (num_rows, num_columns, stride))
    r, c = b.name("r"), b.name("c")
    b.emit(f"{r} = pid * {rows} + tl.arange(0, {rows})")
    b.emit(f"{c} = tl.arange(0, {columns})")
    if b.chance(0.3):
        b.emit(f"{c} = tl.max_contiguous(tl.multiple_of({c}, {columns}), {columns})")
    if b.chance(0.2):
        zeros = b.array("int32", b.programs, "index", 1, "zeros")
        b.emit(f"{c} += tl.multiple_of(tl.load({zeros} + pid), {columns})")
    inside = f"({r}[:, None] < pid * {rows} + {m}) & ({c}[None, :] < {n})"
    other = f", other={_other(b, dtype, (rows, columns))}"
    text = f"tl.load({name} + {r}[:, None] * {step} + {c}[None, :], mask={inside}{other})"
    value = b.define(text, dtype, (rows, columns))
    if b.chance(0.3):
        out = b.array(dtype, rows * stride * b.programs, "poison", prefix="out")
        b.emit(f"tl.store({out} + {r}[:, None] * {step} + {c}[None, :], {b.use(value)}, mask={inside})")


@statement_of("memory")
def chased_pointers(b: Builder) -> None:
    """Indices that are loaded by the indices loaded before."""
    shape = b.shape(0, 2)
    size = size_of(shape)
    name = b.array("int32", size * b.programs, "index", size, "perm")
    index = b.define(f"{offsets(b, shape)}.to(tl.int32)" if shape else "pid & 0", "int32", shape)
    with b.block(f"for {b.name('k')} in range({b.number('int32', b.rng.randint(0, 3)) if b.chance(0.5) else 2}):"):
        b.emit(f"{index} = tl.load({name} + pid * {size} + {index})")


@statement_of("memory")
def moved_pointer(b: Builder) -> None:
    """A pointer to the whole array that is moved there and back, added to a scalar, chosen by a condition."""
    dtype, shape = b.dtype(), b.shape()
    size = size_of(shape)
    name = b.array(dtype, 2 * size * b.programs)
    index = offsets(b, shape)
    pointer = b.name("p")
    b.emit(f"{pointer} = {name} + pid * {2 * size}")
    choice = b.value("int1", ())
    b.emit(
        f"{pointer} = tl.where({choice}, {pointer}, {pointer} + {size})" if b.chance(0.5) else f"{pointer} += {size}"
    )
    b.define(f"tl.load({pointer} + {index})", dtype, shape)
