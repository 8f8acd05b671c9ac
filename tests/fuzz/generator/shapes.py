"""Shapes: reshape, permute, trans, expand_dims, broadcast, join, split, cat, ranges."""

from __future__ import annotations

from tests.fuzz.generator.builder import MAX_NUMEL, Builder, Value, shape_text, statement_of


def factors(b: Builder, numel: int, rank: int) -> tuple[int, ...]:
    """Extents of a shape of so many elements, a power of two."""
    shape = [1] * rank
    while numel > 1:
        shape[b.rng.randrange(rank)] *= 2
        numel //= 2
    return tuple(shape)


@statement_of("shape")
def reshape(b: Builder) -> None:
    x = b.pick(lambda v: v.shape)
    shape = factors(b, x.numel, b.rng.choice((1, 2, 2, 3, 4)))
    name = b.rng.choice(("reshape", "reshape", "view")) if len(shape) == 1 and len(x.shape) == 1 else "reshape"
    b.define(f"tl.{name}({x}, {shape_text(shape)})", x.dtype, shape)


@statement_of("shape")
def ravel(b: Builder) -> None:
    x = b.pick(lambda v: v.shape)
    b.define(f"tl.ravel({x})", x.dtype, (x.numel,))


@statement_of("shape")
def permute(b: Builder) -> None:
    x = b.pick(lambda v: len(v.shape) >= 2)
    order = list(range(len(x.shape)))
    b.rng.shuffle(order)
    b.define(f"tl.permute({x}, {tuple(order)})", x.dtype, tuple(x.shape[axis] for axis in order))


@statement_of("shape")
def transpose(b: Builder) -> None:
    x = b.pick(lambda v: len(v.shape) >= 2)
    b.define(f"tl.trans({x})", x.dtype, (*x.shape[:-2], x.shape[-1], x.shape[-2]))


@statement_of("shape")
def expand_dims(b: Builder) -> None:
    x = b.pick(lambda v: 1 <= len(v.shape) <= 3)
    axis = b.rng.randrange(len(x.shape) + 1)
    b.define(f"tl.expand_dims({x}, {axis})", x.dtype, (*x.shape[:axis], 1, *x.shape[axis:]))


@statement_of("shape")
def broadcast(b: Builder) -> None:
    """Some dimensions of extent 1 are repeated."""
    x = b.pick(lambda v: 1 in v.shape and v.numel <= MAX_NUMEL // 16)
    shape = tuple(extent if extent > 1 else b.rng.choice((1, 2, 4)) for extent in x.shape)
    b.define(f"tl.broadcast_to({x}, {shape_text(shape)})", x.dtype, shape)


@statement_of("shape")
def broadcast_axis(b: Builder) -> None:
    """A tile along a new dimension."""
    x = b.pick(lambda v: 1 <= len(v.shape) <= 3 and v.numel <= MAX_NUMEL // 4)
    axis, extent = b.rng.randrange(len(x.shape) + 1), b.rng.choice((2, 4))
    index = ", ".join([":"] * axis + ["None"] + [":"] * (len(x.shape) - axis))
    shape = (*x.shape[:axis], extent, *x.shape[axis:])
    b.define(f"tl.broadcast_to({x}[{index}], {shape_text(shape)})", x.dtype, shape)


@statement_of("shape")
def join(b: Builder) -> None:
    x = b.pick(lambda v: len(v.shape) <= 3 and v.numel <= MAX_NUMEL // 2)
    b.define(f"tl.join({x}, {b.value(x.dtype, x.shape)})", x.dtype, (*x.shape, 2))


@statement_of("shape")
def interleave(b: Builder) -> None:
    x = b.pick(lambda v: v.shape and v.numel <= MAX_NUMEL // 2)
    b.define(f"tl.interleave({x}, {b.value(x.dtype, x.shape)})", x.dtype, (*x.shape[:-1], 2 * x.shape[-1]))


@statement_of("shape")
def split(b: Builder) -> None:
    x = b.pick(lambda v: v.shape and v.numel % 2 == 0)
    if x.shape[-1] != 2:
        shape = (*factors(b, x.numel // 2, b.rng.choice((1, 2, 2, 3))), 2)
        x = b.use(b.define(f"tl.reshape({x}, {shape_text(shape)})", x.dtype, shape))
    left, right = b.name(), b.name()
    b.emit(f"{left}, {right} = tl.split({x})")
    for name in (left, right):
        b.add_to_scope(Value(name, x.dtype, x.shape[:-1]))


@statement_of("shape")
def cat(b: Builder) -> None:
    x = b.pick(lambda v: v.shape and v.numel <= MAX_NUMEL // 2)
    axis = b.rng.randrange(len(x.shape))
    shape = (*x.shape[:axis], 2 * x.shape[axis], *x.shape[axis + 1 :])
    b.define(f"tl.cat({x}, {b.value(x.dtype, x.shape)}, dim={axis})", x.dtype, shape)


@statement_of("shape")
def ranges(b: Builder) -> None:
    extent, start = b.shape(1, 1)[0], b.rng.choice((0, 0, 5, -3))
    b.define(f"tl.arange({start}, {start + extent})", "int32", (extent,))


@statement_of("shape")
def squeeze(b: Builder) -> None:
    x = b.pick(lambda v: len(v.shape) > 1 and 1 in v.shape)
    axis = b.rng.choice([axis for axis, extent in enumerate(x.shape) if extent == 1])
    b.define(f"tl.squeeze({x}, {axis})", x.dtype, (*x.shape[:axis], *x.shape[axis + 1 :]))


@statement_of("shape")
def chain(b: Builder) -> None:
    """Taken apart to bits of the index, in another order, together again; some of them reversed or doubled."""
    x = b.pick(lambda v: v.shape and 4 <= v.numel <= MAX_NUMEL // 2)
    text, shape = str(x), x.shape
    for _ in range(b.rng.randint(2, 4)):
        shape = factors(b, x.numel, b.rng.choice((2, 3, 4, 5)))
        order = list(range(len(shape)))
        b.rng.shuffle(order)
        text = f"tl.permute(tl.reshape({text}, {shape_text(shape)}), {tuple(order)})"
        shape = tuple(shape[axis] for axis in order)
    halves = b.name(), b.name()
    b.emit(f"{halves[0]}, {halves[1]} = tl.split(tl.reshape({text}, {shape_text((x.numel // 2, 2))}))")
    b.define(f"tl.interleave({halves[1]}, {halves[0]})", x.dtype, (x.numel,))
    b.define(f"tl.reshape(tl.join({halves[0]}, {halves[0]}), {shape_text(x.shape)})", x.dtype, x.shape)


@statement_of("shape")
def swizzle(b: Builder) -> None:
    """Places in a grid, grouped by rows."""
    rows, columns, group = b.rng.choice(((4, 3, 2), (5, 2, 3), (1, 7, 4), (8, 8, 8)))
    shape, (first, second) = b.shape(0, 2), (b.name(), b.name())
    i, j = (f"({b.value('int32', shape)} & {mask}) % {most}" for mask, most in ((127, rows), (127, columns)))
    b.emit(f"{first}, {second} = tl.swizzle2d({i}, {j}, {rows}, {columns}, {group})")
    for name in (first, second):
        b.add_to_scope(Value(name, "int32", shape))
