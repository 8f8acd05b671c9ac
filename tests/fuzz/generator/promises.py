"""What a kernel promises, and keeps: `tl.assume` of arguments and of what is computed of them, hints of tiles.

    tl.assume(n % 16 == 0)
    i = tl.max_contiguous(tl.multiple_of(first + tl.arange(0, 64), 64), 64)

Numbers are as the promises say, most often the least or the largest that they allow.
"""

from __future__ import annotations

from tests.fuzz.generator.builder import Builder, Unfit, Value, shape_text, statement_of

SIZES = (16, 32, 64, 128, 256)


@statement_of("promise")
def assume_of_numbers(b: Builder) -> None:
    """Of one argument, or of two, beside each other or joined; its quotients, masks and offsets follow."""
    if b.depth > 1:
        raise Unfit
    divisor = b.rng.choice((1, 4, 16, 64))
    number = divisor * b.rng.choice((0, 1, 1, 3, -1, -2))
    dtype = b.rng.choice(("int32", "int32", "int64"))
    n, other = b.number(dtype, number), b.number(dtype, number + b.rng.choice((0, 1, 64)))
    promises = [f"{n} % {divisor} == 0", f"{n} <= {other}", f"{n} {'>=' if number >= 0 else '<'} 0", f"{n} < 1000"]
    promises += [f"{n} > 0"] if number > 0 else [f"{n} != 5"]
    chosen = b.rng.sample(promises, b.rng.randint(1, 3))
    for promise in [" & ".join(f"({one})" for one in chosen)] if b.chance(0.3) else chosen:
        b.emit(f"tl.assume({promise})")
    i, size = b.name("i"), b.rng.choice(SIZES)
    b.emit(f"{i} = tl.arange(0, {size})")
    x = b.array("int32", size * b.programs)
    places = (f"({n} + {i}) // {divisor}", f"({n} + {i}) % {divisor}", f"{n} // {divisor} * 2 + {i}", f"{i} - {n}")
    place = f"(({b.rng.choice(places)}) & {size - 1})"
    mask = b.rng.choice((f"{i} < {n}", f"{i} // {divisor} < {n}", f"{i} + {n} < {other}", f"{n} > {i} % {divisor}"))
    b.define(f"tl.load({x} + pid * {size} + {place}, mask={mask}, other={n})", "int32", (size,))


@statement_of("promise")
def assume_of_loops(b: Builder) -> None:
    """That a loop has iterations, or that its end is a multiple of its step."""
    if b.depth > 2:
        raise Unfit
    step, trips, size = b.rng.choice((1, 16, 32)), b.rng.randint(0, 4), b.rng.choice((16, 32, 64))
    n, dtype = b.number("int32", step * trips), b.rng.choice(("float32", "int32", "float16"))
    b.emit(f"tl.assume({b.rng.choice((f'{n} >= 0', f'{n} % {step} == 0', f'{n} > -1'))})")
    total = b.define(f"tl.zeros(({size},), tl.{dtype})", dtype, (size,))
    extent = max(step * trips, 1) + size
    x = b.array(dtype, extent * b.programs)
    with b.block(f"for {(k := b.name('k'))} in range(0, {n}, {step}):"):
        mask = f", mask={k} + tl.arange(0, {size}) < {n}, other=1" if b.chance(0.5) else ""
        b.emit(f"{total} += tl.load({x} + pid * {extent} + {k} + tl.arange(0, {size}){mask})")


@statement_of("promise")
def hinted_tile(b: Builder) -> None:
    """Of what is loaded and has the neighbours that a hint says, or of what a loop carries."""
    size, group = b.rng.choice(SIZES), b.rng.choice((2, 4, 8, 16))
    kind = b.rng.choice(("contiguous", "constant", "multiple"))
    rows = size // group
    numbers = {
        "contiguous": [(r * 7 % rows) * group + lane for r in range(rows) for lane in range(group)],
        "constant": [r * 5 % size for r in range(rows) for _ in range(group)],
        "multiple": [(r * 3 % rows) * group for r in range(size)],
    }[kind]
    table = b.array("int32", size * b.programs, tuple(numbers), prefix="perm")
    loaded = f"tl.load({table} + pid * {size} + tl.arange(0, {size}))"
    hinted = {
        "contiguous": f"tl.max_contiguous(tl.multiple_of({loaded}, {group}), {group})",
        "constant": f"tl.max_constancy({loaded}, {group})",
        "multiple": f"tl.multiple_of({loaded}, {b.rng.choice((group, 2))})",
    }[kind]
    place = b.use(b.define(hinted, "int32", (size,), "i"))
    dtype = b.rng.choice(("int8", "float16", "float32", "int64"))
    x = b.array(dtype, size * b.programs)
    limit = b.number("int32", b.rng.choice((0, size // 2, size)))
    mask = b.rng.choice(("", f", mask={place} < {limit}, other=0", f", mask={place} // {group} < {limit}, other=1"))
    value = b.define(f"tl.load({x} + pid * {size} + {place}{mask})", dtype, (size,))
    if kind == "contiguous" and b.chance(0.5):
        out = b.array(dtype, size * b.programs, "poison", prefix="out")
        b.emit(f"tl.store({out} + pid * {size} + {place}, {b.use(value)})")


@statement_of("promise")
def hinted_number(b: Builder) -> None:
    """A pointer or an offset of which a kernel says what divides it."""
    size, divisor = b.rng.choice(SIZES), b.rng.choice((2, 4, 16))
    at = b.number("int32", b.rng.choice((0, 1, 3)) * divisor)
    dtype = b.rng.choice(("int8", "float16", "float32"))
    total = size + 4 * divisor
    x = b.array(dtype, total * b.programs)
    place = f"pid * {total} + tl.multiple_of({at}, {divisor}) + tl.arange(0, {size})"
    b.define(f"tl.load({x} + {place})", dtype, (size,))


@statement_of("stride")
def load_backwards(b: Builder) -> None:
    """Of a tile whose strides are negative, or 0: numbers, arguments, and products of these."""
    dtype, shape = b.dtype(), b.shape(1, 3)
    begin, terms, extent = 0, [], 1
    for axis in b.rng.sample(range(len(shape)), len(shape)):
        stride = extent * b.rng.choice((1, -1, -1, 0))
        begin += max(-stride, 0) * (shape[axis] - 1)
        terms.append(_term(b, shape, axis, stride))
        extent = max(extent, abs(stride) * shape[axis])
    name = b.array(dtype, extent * b.programs)
    index = b.define(f"{begin} + {' + '.join(terms)}", "int32", shape, "i")
    mask = ""
    if b.chance(0.4):
        mask = f", mask={index} {b.rng.choice(('<', '>='))} {b.number('int32', extent // 2)}, other=0.0"
    b.define(f"tl.load({name} + pid * {extent} + {b.use(index)}{mask})", dtype, shape)


@statement_of("stride")
def store_backwards(b: Builder) -> None:
    value = b.pick(lambda v: 0 < len(v.shape) <= 3)
    shape, begin, terms, stride = value.shape, 0, [], 1
    for axis in b.rng.sample(range(len(shape)), len(shape)):
        sign = b.rng.choice((1, -1))
        begin += stride * (shape[axis] - 1) if sign < 0 else 0
        terms.append(_term(b, shape, axis, sign * stride))
        stride *= shape[axis]
    out = b.array(value.dtype, value.numel * b.programs, "poison", prefix="out")
    b.emit(f"tl.store({out} + pid * {value.numel} + {begin} + {' + '.join(terms)}, {value})")


def _term(b: Builder, shape: tuple[int, ...], axis: int, stride: int) -> str:
    index = ", ".join(":" if other == axis else "None" for other in range(len(shape)))
    range_ = f"tl.arange(0, {shape[axis]})" + (f"[{index}]" if len(shape) > 1 else "")
    if stride == 0 and b.chance(0.5):
        return f"tl.zeros({shape_text(shape)}, tl.int32)"
    factor: Value | int = b.number("int32", stride) if b.chance(0.6) else stride
    return f"{range_} * {factor}"
