"""Tables of addresses: which array is loaded from, or stored to, a number in memory says.

    tl.store(table + pid * 3 + 0, (x + pid * 64).to(tl.int64))
    ...
    tl.debug_barrier()
    for k in range(n):
        p = tl.load(table + pid * 3 + tl.load(part + k)).to(tl.pointer_type(tl.float32))
        v += tl.load(p + i)
        tl.store(p + i, v)

Arrays of a table are of one type and size; a program's parts of them lie in order for it alone. Tiles of addresses have
one for each element.
"""

from __future__ import annotations

from tests.fuzz.generator.builder import Builder, Value, statement_of
from tests.fuzz.generator.control import MAX_TRIPS, nested
from tests.fuzz.generator.memory import mask, offsets, size_of

TYPES = ("int32", "int64", "float32", "float16", "uint8")


@statement_of("table")
def table(b: Builder) -> None:
    nested(b)
    dtype, shape, count = b.rng.choice(TYPES), b.shape(1, 2), b.rng.choice((2, 3, 4))
    size = size_of(shape)
    addresses = f"{b.array('int64', count * b.programs, 'zeros', prefix='scratch')} + pid * {count}"
    for number in range(count):
        name = b.array(dtype, size * b.programs, "small", prefix="io")
        b.emit(f"tl.store({addresses} + {number}, ({name} + pid * {size}).to(tl.int64))")
    b.emit("tl.debug_barrier()")
    trips = b.rng.randint(0, MAX_TRIPS)
    parts = b.array("int32", max(trips, 1), "index", count, "part")
    value, k = b.value(dtype, shape), b.name("k")
    carried = b.define(f"{value} + 0", dtype, shape)
    hint = b.rng.choice(("", "", ", num_stages=3"))
    with b.block(f"for {k} in tl.range(0, {b.number('int32', trips)}{hint}):"):
        which = b.rng.choice(
            (f"tl.load({parts} + {k})", f"({k} % {count})", f"(tl.load({parts} + {k}) ^ {k}) % {count}")
        )
        pointer = b.name("p")
        b.emit(f"{pointer} = tl.load({addresses} + {which}).to(tl.pointer_type(tl.{dtype}))")
        for _ in range(b.rng.choice((1, 2, 3))):
            _access(b, pointer, carried)
    if b.chance(0.4):
        _each_its_own(b, addresses, count, dtype, shape)


def _access(b: Builder, pointer: str, carried: Value) -> None:
    is_store = b.chance(0.5)
    index = offsets(b, carried.shape, unique=is_store)
    chosen = f", mask={mask(b, carried.shape, index)}" if b.chance(0.3) else ""
    if is_store:
        b.emit(f"tl.store({pointer} + {index}, {carried}{chosen})")
        b.emit("tl.debug_barrier()")
    else:
        other = ", other=1" if chosen else ""
        b.emit(f"{carried} = ({carried} + tl.load({pointer} + {index}{chosen}{other})).to(tl.{carried.dtype})")


def _each_its_own(b: Builder, addresses: str, count: int, dtype: str, shape: tuple[int, ...]) -> None:
    """Elements through addresses of their own, which are loaded."""
    index = offsets(b, shape)
    which = f"({b.value('int32', shape)} & 1)" if count < 4 else f"({b.value('int32', shape)} & 3)"
    pointers = f"tl.load({addresses} + {which}).to(tl.pointer_type(tl.{dtype}))"
    b.define(f"tl.load({pointers} + {index})", dtype, shape)
