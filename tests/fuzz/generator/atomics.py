"""Atomics: on elements that programs and lanes share, and on elements of each lane's own, whose old value is used."""

from __future__ import annotations

from tests.fuzz.generator.builder import FLOATS, INTEGERS, Builder, Unfit, statement_of
from tests.fuzz.generator.memory import mask, offsets, size_of

WIDE = ("int32", "uint32", "int64", "uint64")
TYPES = {
    "add": (*WIDE, "float32", "float32", "float64", "float16", "bfloat16"),
    "max": (*WIDE, "float32", "float64"),
    "min": (*WIDE, "float32", "float64"),
    "and": WIDE,
    "or": WIDE,
    "xor": WIDE,
    "xchg": (*WIDE, "float32", "float64"),
}


@statement_of("atomic")
def shared(b: Builder) -> None:
    """Any number of lanes and programs meet; nobody asks for the old value."""
    kind = b.rng.choice(("add", "add", "max", "min", "and", "or", "xor"))
    dtype, shape = b.rng.choice(TYPES[kind]), b.shape()
    size = size_of(shape)
    name = b.array(dtype, size, "small", prefix="io")
    index, value = offsets(b, shape), b.value(dtype, shape)
    chosen = f", mask={mask(b, shape, index)}" if b.chance(0.4) else ""
    b.emit(f"tl.atomic_{kind}({name} + {index}, {value}{chosen})")


@statement_of("atomic")
def own(b: Builder) -> None:
    """Each lane of each program has an element of its own; the old value is defined where the lane is active."""
    kind = b.rng.choice(list(TYPES))
    dtype, shape = b.rng.choice(TYPES[kind]), b.shape()
    size = size_of(shape)
    name = b.array(dtype, size * b.programs, prefix="io")
    index, value = offsets(b, shape, unique=True), b.value(dtype, shape)
    chosen = mask(b, shape, index) if b.chance(0.4) else None
    text = (
        f"tl.atomic_{kind}({name} + pid * {size} + {index}, {value}{f', mask={chosen}' if chosen else ''}{_order(b)})"
    )
    if chosen is None:
        b.define(text, dtype, shape)
    else:
        b.define(f"tl.where({chosen}, {text}, {b.value(dtype, shape)})", dtype, shape)


def _order(b: Builder, *semantics: str) -> str:
    semantics = semantics or ("relaxed", "acquire", "release", "acq_rel")
    sem = f', sem="{b.rng.choice(semantics)}"' if b.chance(0.5) else ""
    return sem + (f', scope="{b.rng.choice(("gpu", "cta", "sys"))}"' if b.chance(0.3) else "")


@statement_of("atomic")
def flags(b: Builder) -> None:
    """Each lane of each program stores and loads, or only loads, an element of its own."""
    dtype, shape = b.dtype((*INTEGERS, *FLOATS)), b.shape()
    size = size_of(shape)
    pointers = f"{b.array(dtype, size * b.programs, prefix='io')} + pid * {size} + {offsets(b, shape, unique=True)}"
    if b.chance(0.5):
        b.emit(f"tl.atomic_store({pointers}, {b.value(dtype, shape)}{_order(b, 'relaxed', 'release')})")
    name = "atomic_load" if b.chance(0.7) or dtype not in WIDE else "atomic_poll"
    if name == "atomic_load":
        b.define(f"tl.atomic_load({pointers}{_order(b, 'relaxed', 'acquire')})", dtype, shape)
    else:
        expected, order = b.value(dtype, shape), _order(b, "relaxed", "acquire")
        b.define(f"tl.atomic_poll({pointers}, {expected}{order}, timeout_ns=0)", "int1", shape)


@statement_of("atomic")
def compare_and_swap(b: Builder) -> None:
    dtype, shape = b.rng.choice((*WIDE, "float32", "float64", "int16", "uint16", "float16", "bfloat16")), b.shape()
    if b.depth > 3:
        raise Unfit
    size = size_of(shape)
    name = b.array(dtype, size * b.programs, "small", prefix="io")
    index = offsets(b, shape, unique=True)
    expected, value = b.value(dtype, shape), b.value(dtype, shape)
    b.define(f"tl.atomic_cas({name} + pid * {size} + {index}, {expected}, {value}{_order(b)})", dtype, shape)


@statement_of("atomic")
def tickets(b: Builder) -> None:
    """All lanes of a program add to few elements: which gets which old value is open, but not which there are."""
    dtype, shape, places = b.rng.choice(WIDE), b.shape(1), b.rng.choice((1, 1, 2, 4))
    name = b.array(dtype, places * b.programs, "small", prefix="io")
    index = offsets(b, shape)
    chosen = mask(b, shape, index) if b.chance(0.4) else None
    pointers = f"{name} + pid * {places} + {index} % {places}"
    masked = "" if chosen is None else f", mask={chosen}"
    old = f"tl.atomic_add({pointers}, {b.rng.choice((1, 1, 3))}{masked}{_order(b)})"
    given = old if chosen is None else f"tl.where({chosen}, {old}, 0)"
    b.define(f"tl.{b.rng.choice(('sum', 'max', 'min', 'xor_sum'))}({given})", dtype, ())
