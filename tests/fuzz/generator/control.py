"""Loops and branches: values that are carried, of every type and shape; pointers that advance or change places.

A loop makes at most MAX_TRIPS rounds. What is stored to in a loop has a place for each round.
"""

from __future__ import annotations

from tests.fuzz.generator.builder import Builder, Unfit, Value, shape_text, statement_of
from tests.fuzz.generator.memory import offsets, size_of

MAX_TRIPS = 4
MAX_DEPTH = 4


def body(b: Builder, carried: list[Value]) -> None:
    """Some statements; then each carried value, or some of them, becomes another one of its type."""
    for _ in range(b.rng.choice((0, 1, 1, 2, 3))):
        b.statement()
    for value in carried:
        if b.chance(0.85):
            assign(b, value)


def assign(b: Builder, value: Value) -> None:
    kind = b.rng.random()
    if kind < 0.4 and value.dtype != "int1":
        other = b.value(value.dtype, value.shape)
        number = b.number_of(value)
        expression = b.rng.choice(
            (f"{number} + {b.number_of(other)}", f"{number} - 1", f"{number} + 1", f"{b.number_of(other)} - {number}")
        )
        b.emit(f"{value} = ({expression}).to(tl.{value.dtype})")
    elif kind < 0.6 and len(value.shape) == 2 and value.shape[0] == value.shape[1]:
        b.emit(f"{value} = tl.trans({value})")
    elif kind < 0.65 and len(value.shape) > 1:
        b.emit(f"{value} = tl.reshape(tl.ravel({value}), {shape_text(value.shape)})")
    else:
        b.emit(f"{value} = {b.value(value.dtype, value.shape)}")


def carried_values(b: Builder, most: int = 3) -> list[Value]:
    """Variables that a loop or branch may change: no arguments, no counters."""
    found = b.values(lambda v: v.text[0] == "v" and v.text.isalnum())
    if not found:
        raise Unfit
    return b.rng.sample(found, min(b.rng.choice((1, 1, 2, most)), len(found)))


def nested(b: Builder) -> None:
    if b.depth > MAX_DEPTH:
        raise Unfit


@statement_of("control")
def for_loop(b: Builder) -> None:
    nested(b)
    carried = carried_values(b)
    index = Value(b.name("k"), "int32", ())
    range_ = _range(b)
    with b.block(f"for {index} in {range_}:"):
        if "static" not in range_:
            b.add_to_scope(b.use(index))
        body(b, carried)
        b.emit("pass")
    _else(b, carried)


def _else(b: Builder, carried: list[Value]) -> None:
    """What a loop does that no `break` has left."""
    if b.chance(0.1):
        with b.block("else:"):
            body(b, carried)
            b.emit("pass")


def _range(b: Builder) -> str:
    """Bounds that are constants, arguments, computed; steps; the hints that `tl.range` takes; unrolled ones."""
    trips = b.rng.randint(0, MAX_TRIPS)
    if b.chance(0.1):
        return f"tl.static_range({trips})"
    first, step = b.rng.choice((0, 0, 0, 1, -2, 5)), b.rng.choice((1, 1, 1, 2, 3, -1, -2))
    end = first + trips * step - b.rng.choice((0, step - 1 if step > 0 else step + 1))
    bounds = [str(first), str(end), str(step)]
    if b.chance(0.6):
        bounds[1] = str(b.number("int32", end))
    if b.chance(0.15):
        bounds[0] = str(b.number("int32", first))
    if b.chance(0.15) and step > 0:
        bounds[2] = str(b.number("int32", step))
    if b.chance(0.15):
        bounds[1] = f"({bounds[0]} + ({b.value('int32', ())} & 3))"
    name = "range"
    if b.chance(0.25):
        name = "tl.range"
        bounds.append(hints(b))
    return f"{name}({', '.join(bounds)})"


def hints(b: Builder) -> str:
    """Some of those that `tl.range` takes, in any company."""
    known = (
        f"num_stages={b.rng.randint(1, 4)}",
        f"loop_unroll_factor={b.rng.choice((1, 2, 3, 4))}",
        "flatten=True",
        "warp_specialize=True",
        "disallow_acc_multi_buffer=True",
        "disable_licm=True",
    )
    return ", ".join(b.rng.sample(known, b.rng.choice((1, 1, 2, 3))))


@statement_of("control")
def while_loop(b: Builder) -> None:
    nested(b)
    carried = carried_values(b)
    counter = b.name("w")
    first = b.number("int32", b.rng.randint(0, MAX_TRIPS)) if b.chance(0.6) else str(b.rng.randint(0, MAX_TRIPS))
    b.emit(f"{counter} = {first}")
    condition = f"{counter} > 0"
    tested = [v for v in carried if not v.shape and v.dtype in ("int32", "float32", "int64")]
    if tested and b.chance(0.6):
        condition = f"({condition}) & ({tested[0]} < 5)"
    if b.chance(0.3):
        b.emit(f"{counter} += 1")
        condition = b.rng.choice(("True", f"({counter} := {counter} - 1) > 0"))
    with b.block(f"while {condition}:"):
        if ":=" not in condition:
            b.emit(f"{counter} -= 1")
        if condition == "True":
            b.emit(f"if {counter} <= 0:")
            b.emit("    break")
        body(b, carried)
    _else(b, carried)


@statement_of("control")
def branch(b: Builder) -> None:
    nested(b)
    carried = carried_values(b)
    condition = str(b.value("int1", ()))
    if b.chance(0.4):
        condition = f"{b.value('int32', ())} > {b.rng.choice((0, 1, 2))}"
    if b.chance(0.1):
        condition = f"tl.full({b.rng.choice(((1,), (1, 1)))}, {b.value('float32', ())}, tl.float32)"
    if b.chance(0.1):
        condition = f"not ({condition}) or {b.value('int32', ())}"
    with b.block(f"if {condition}:"):
        body(b, carried)
        b.emit("pass")
    if b.chance(0.6):
        with b.block("else:"):
            body(b, carried if b.chance(0.5) else carried_values(b))
            b.emit("pass")


@statement_of("control")
def scalar_logic(b: Builder) -> None:
    """Conditions joined by Python's words, and Python's own functions of scalars."""
    x, y = b.value("int32", ()), b.value("int32", ())
    texts = (f"({x} > 0) and ({y} > 1)", f"({x} > 0) or ({y} < 3)", f"not ({x} == {y})")
    if b.chance(0.5):
        b.define(b.rng.choice(texts), "int1", ())
        return
    b.define(b.rng.choice((f"min({x}, {y})", f"max({x}, {y})", f"abs({x})", f"tl.cdiv({x} & 63, 4)")), "int32", ())


@statement_of("control")
def choice_of_scalars(b: Builder) -> None:
    """Python's conditional expression, of scalars, a number, or a tile and a scalar."""
    dtype, shape = b.dtype(("int32", "float32", "int64")), b.shape() if b.chance(0.3) else ()
    condition, x, y = b.value("int1", ()), b.value(dtype, shape), b.value(dtype, ())
    other = b.rng.choice((str(y), str(y), "1"))
    b.define(b.rng.choice((f"{x} if {condition} else {other}", f"{other} if {condition} else {x}")), dtype, shape)


@statement_of("control")
def search(b: Builder) -> None:
    """Bisection: two tiles of bounds, and a load that depends on them."""
    shape = b.shape(0, 2)
    size = 16
    name = b.array("float32", size * b.programs)
    wanted = b.value("float32", shape)
    low = b.define(f"tl.full({shape_text(shape)}, 0, tl.int32)", "int32", shape)
    high = b.define(f"tl.full({shape_text(shape)}, {size - 1}, tl.int32)", "int32", shape)
    with b.block(f"for {b.name('k')} in range({b.number('int32', 3) if b.chance(0.5) else 3}):"):
        middle = b.define(f"({low} + {high}) // 2", "int32", shape)
        is_below = b.define(f"tl.load({name} + pid * {size} + {middle}) < {wanted}", "int1", shape)
        b.emit(f"{low} = tl.where({is_below}, {middle}, {low})")
        b.emit(f"{high} = tl.where({is_below}, {high}, {middle})")


@statement_of("control")
def early_return(b: Builder) -> None:
    if b.depth > 1 or b.chance(0.6):
        raise Unfit
    with b.block(f"if pid == {b.rng.randrange(b.programs + 1)}:"):
        b.emit("return")


@statement_of("control")
def leave(b: Builder) -> None:
    """`break`, `continue` or `return` in a loop, on a condition, or in one of two branches."""
    if not b.loop_depth:
        raise Unfit
    word = b.rng.choice(("break", "continue", "break", "continue", "return"))
    condition = str(b.value("int1", ()))
    if b.chance(0.5):
        condition = f"{b.value('int32', ())} > {b.rng.choice((0, 1, 2))}"
    if b.chance(0.2):
        condition = f"tl.max({b.value('int32', b.shape(1, 2))}) > {b.rng.choice((0, 3))}"
    with b.block(f"if {condition}:"):
        if b.chance(0.4):
            assign(b, b.rng.choice(carried_values(b)))
        if b.chance(0.3):
            with b.block(f"if {b.value('int32', ())} != {b.rng.choice((0, 1))}:"):
                b.emit(b.rng.choice(("break", "continue")))
        b.emit(word)


@statement_of("control")
def streamed_loads(b: Builder) -> None:
    """A loop over parts of an array: the pointer advances, or is computed from the counter; loads are summed."""
    nested(b)
    dtype, shape = b.dtype(("int32", "float32", "float16", "int8", "int64", "bfloat16")), b.shape()
    size, trips = size_of(shape), b.rng.randint(1, MAX_TRIPS)
    name = b.array(dtype, size * trips * b.programs)
    index, pointers, counter = offsets(b, shape), b.name("p"), b.name("k")
    total = b.define(f"tl.full({shape_text(shape)}, 0, tl.{dtype})", dtype, shape)
    b.emit(f"{pointers} = {name} + pid * {size * trips} + {index}")
    bound = b.number("int32", trips) if b.chance(0.5) else trips
    advances = b.chance(0.6)
    with b.block(f"for {counter} in range({bound}):"):
        where = pointers if advances else f"{pointers} + {counter} * {size}"
        loaded = b.define(f"tl.load({where})", dtype, shape)
        if b.chance(0.5):
            b.statement()
        b.emit(f"{total} = {b.rng.choice((f'{total} + {loaded}', f'tl.maximum({total}, {loaded})', str(loaded)))}")
        if b.chance(0.4):
            _store_round(b, loaded, counter, trips)
        if advances:
            b.emit(f"{pointers} += {size}")


def _store_round(b: Builder, value: Value, counter: str, trips: int) -> None:
    size = value.numel
    out = b.array(value.dtype, size * trips * b.programs, "poison", prefix="out")
    index = offsets(b, value.shape, unique=True)
    b.emit(f"tl.store({out} + pid * {size * trips} + {counter} * {size} + {index}, {b.use(value)})")


@statement_of("control")
def swapped_pointers(b: Builder) -> None:
    """Two buffers: each round reads one, writes the other, and exchanges them."""
    if b.depth > 1:
        raise Unfit
    dtype, shape = b.dtype(("int32", "float32", "int64", "float16")), b.shape(1)
    size, names = size_of(shape), []
    for _ in range(2):
        names.append(b.array(dtype, size * b.programs, prefix="io"))
    index, back = offsets(b, shape, unique=True), offsets(b, shape)
    source, target = b.name("p"), b.name("p")
    b.emit(f"{source} = {names[0]} + pid * {size}")
    b.emit(f"{target} = {names[1]} + pid * {size}")
    trips = b.rng.randint(1, MAX_TRIPS)
    with b.block(f"for {b.name('k')} in range({b.number('int32', trips) if b.chance(0.5) else trips}):"):
        loaded = b.define(f"tl.load({source} + {back})", dtype, shape)
        b.emit(f"tl.store({target} + {index}, {loaded} + 1)")
        if b.chance(0.5):
            b.emit("tl.debug_barrier()")
        b.emit(f"{source}, {target} = {target}, {source}")
