"""What programs of a grid do one after the other, or the last of them: locks, tickets, numbers of arrival.

while tl.atomic_cas(lock, 0, 1) == 1:                    x and its sums are integers, so that any order of the
    pass                                                 programs gives the same
tl.store(p, tl.load(p) + x)
tl.debug_barrier()
tl.atomic_xchg(lock, 0)
"""

from __future__ import annotations

from tests.fuzz.generator.builder import Builder, Unfit, Value, statement_of
from tests.fuzz.generator.memory import offsets, size_of

TYPES = ("int32", "int32", "int64", "int16", "uint8")


def _outermost(b: Builder) -> None:
    """In a loop or a branch not every program may come."""
    if b.depth > 1:
        raise Unfit


def _partial(b: Builder) -> tuple[Value, str]:
    """A tile of integers, and the name of an array for one."""
    dtype, shape = b.rng.choice(TYPES), b.shape(0, 3, 512)
    value = b.value(dtype, shape)
    return value, b.array(dtype, size_of(shape), "small", prefix="io")


@statement_of("atomic")
def lock(b: Builder) -> None:
    """Each program adds to all, or keeps the larger ones, while it holds a lock."""
    _outermost(b)
    value, name = _partial(b)
    held, dtype = b.array(b.rng.choice(("int32", "int64")), 1, "zeros", prefix="io"), value.dtype
    at = f"{name} + {offsets(b, value.shape, unique=True)}"
    count = b.number("int32", b.rng.randint(0, 3)) if b.chance(0.4) else None
    condition = f"tl.atomic_cas({held}, 0, 1) {b.rng.choice(('!= 0', '== 1'))}"
    if count is not None:
        b.emit(f"for {b.name('k')} in range({count}):")
        b.depth += 1
    b.emit(f"while {condition}:")
    b.emit("    pass")
    word = b.rng.choice((f"({{}} + {value}).to(tl.{dtype})", f"tl.maximum({{}}, {value})", f"{{}} ^ {value}"))
    for _ in range(b.rng.choice((1, 1, 2))):
        b.emit(f"tl.store({at}, {word.format(f'tl.load({at})')})")
    b.emit("tl.debug_barrier()")
    b.emit(b.rng.choice((f"tl.atomic_xchg({held}, 0)", f'tl.atomic_store({held}, 0, sem="release")')))
    if count is not None:
        b.depth -= 1


@statement_of("atomic")
def last_to_arrive(b: Builder) -> None:
    """Each program stores a part; the one that comes last sums all parts, in a loop, and stores the sum."""
    _outermost(b)
    value, name = _partial(b)
    dtype, shape, size = value.dtype, value.shape, value.numel
    parts = b.array(dtype, size * b.programs, "poison", prefix="io")
    count = b.array("int32", 1, "zeros", prefix="io")
    index, back = offsets(b, shape, unique=True), b.name("n")
    b.emit(f"tl.store({parts} + pid * {size} + {index}, {value})")
    b.emit("tl.debug_barrier()")
    arrived = b.name("c")
    b.emit(f"{arrived} = tl.atomic_add({count}, 1)")
    with b.block(f"if {arrived} == {b.programs} - 1:"):
        total = b.define(f"tl.load({name} + {index})", dtype, shape)
        with b.block(f"for {back} in range({b.number('int32', b.programs) if b.chance(0.6) else b.programs}):"):
            b.emit(f"{total} = ({total} + tl.load({parts} + {back} * {size} + {index})).to(tl.{dtype})")
        b.emit(f"tl.store({name} + {index}, {total})")


@statement_of("atomic")
def numbers_in_a_loop(b: Builder) -> None:
    """What atomics give is the place where an iteration stores: a queue of each program's own."""
    if b.depth > 2 or b.loop_depth:  # in a loop the counter would go on
        raise Unfit
    trips, dtype = b.rng.randint(1, 5), b.rng.choice(("int32", "int64", "uint32"))
    head = b.array(dtype, b.programs, "zeros", prefix="io")
    queue = b.array("int32", (trips + 1) * b.programs, "poison", prefix="out")
    counter, place = b.name("k"), b.name("c")
    header = f"for {counter} in range({b.number('int32', trips) if b.chance(0.7) else trips}):"
    with b.block(header), b.block(f"if {counter} % {b.rng.choice((1, 2, 3))} == 0:"):
        b.emit(f"{place} = tl.atomic_add({head} + pid, 1)")
        b.emit(f"tl.store({queue} + pid * {trips + 1} + {place}, {counter} * 10)")
