"""What a random kernel computes: each function adds a value of a kind, made of those that there are."""

from __future__ import annotations

from collections.abc import Callable

from random_ir.text import TILES, Text

LOADED = ("%a", "%b", "%c", "%io")
MOST = 2**18  # of sums: they are exact


def get(t: Text, kind: str) -> str:
    """One that there is, or a new one."""
    return t.any_of(kind) or _MAKERS[kind](t)


def number(t: Text) -> str:
    """Loaded, computed or chosen."""
    if t.chance(0.55):
        place = t.op(
            f"tt.addptr {t.rng.choice(('%table', '%table', '%numbers'))}, {get(t, 'number')} : !tt.ptr<i32>, i32"
        )
        if t.chance(0.2):
            return t.let("number", f"tt.load {place}, {get(t, 'bit')}, {get(t, 'number')} : !tt.ptr<i32>")
        return t.let("number", f"tt.load {place} : !tt.ptr<i32>")
    if t.chance(0.5):
        op = t.rng.choice(("addi", "xori", "muli"))
        any_number = t.op(f"arith.{op} {get(t, 'number')}, {get(t, 'number')} : i32")
        return t.let("number", f"arith.andi {any_number}, %last : i32")
    return t.let("number", f"arith.select {get(t, 'bit')}, {get(t, 'number')}, {get(t, 'number')} : i32")


def bit(t: Text) -> str:
    if t.chance(0.7):
        predicate = t.rng.choice(("slt", "sgt", "eq", "ne"))
        return t.let("bit", f"arith.cmpi {predicate}, {get(t, 'number')}, {get(t, 'number')} : i32")
    return t.let("bit", f"arith.{t.rng.choice(('xori', 'andi'))} {get(t, 'bit')}, {get(t, 'bit')} : i1")


def rows(t: Text) -> str:
    """One number for all, or those that are loaded."""
    column, pointers = t.types["rows"], f"tensor<{t.size}x1x!tt.ptr<i32>>"
    if t.chance(0.5):
        return t.let("rows", f"tt.splat {get(t, 'number')} : i32 -> {column}")
    place = t.op(f"tt.addptr %rows, {get(t, 'number')} : !tt.ptr<i32>, i32")
    places = t.op(f"tt.splat {place} : !tt.ptr<i32> -> {pointers}")
    places = t.op(f"tt.addptr {places}, %column : {pointers}, {column}")
    return t.let("rows", f"tt.load {places} : {pointers}")


def mask(t: Text) -> str:
    column, limit = t.types["rows"], t.any_of("rows") if t.chance(0.3) else None
    if limit is None:
        scaled = t.op(f"arith.muli {get(t, 'number')}, %eighth : i32")
        limit = t.op(f"tt.splat {scaled} : i32 -> {column}")
    inside = t.op(f"arith.cmpi {t.rng.choice(('slt', 'sge'))}, %column, {limit} : {column}")
    return t.let("mask", f"tt.broadcast {inside} : tensor<{t.size}x1xi1> -> {t.types['mask']}")


def pointers(t: Text, base: str = "", place: str = "") -> str:
    """Those of a tile, row by row or column by column."""
    start = _splat_of_tile(t, base or t.rng.choice(LOADED), place or get(t, "number"), t.element)
    square = t.rng.choice(("%square", "%square", "%square", "%turned"))
    return t.let("pointers", f"tt.addptr {start}, {square} : {t.types['pointers']}, {t.tile('i32')}")


def gathered(t: Text) -> str:
    """Pointers to the rows of a tile that some numbers say."""
    start = _splat_of_tile(t, t.rng.choice(LOADED), get(t, "number"), t.element)
    scaled = t.op(f"arith.muli {get(t, 'rows')}, %sizes : {t.types['rows']}")
    wide = t.op(f"tt.broadcast {scaled} : {t.types['rows']} -> {t.tile('i32')}")
    begins = t.op(f"tt.addptr {start}, {wide} : {t.types['pointers']}, {t.tile('i32')}")
    return t.let("pointers", f"tt.addptr {begins}, %columns : {t.types['pointers']}, {t.tile('i32')}")


def _splat_of_tile(t: Text, base: str, place: str, element: str) -> str:
    offset = t.op(f"arith.muli {place}, %count : i32")
    start = t.op(f"tt.addptr {base}, {offset} : !tt.ptr<{element}>, i32")
    return t.op(f"tt.splat {start} : !tt.ptr<{element}> -> {t.tile(f'!tt.ptr<{element}>')}")


def load(t: Text, is_volatile: bool = False, place: str = "") -> str:
    """Some masked, where `other` may be anything."""
    places = t.any_of("pointers") if not place and t.chance(0.4) else None
    places = places or pointers(t, place=place)
    how = " {isVolatile = true}" if is_volatile else ""
    if t.chance(0.65):
        return t.let("tile", f"tt.load {places}{how} : {t.types['pointers']}")
    other = "%zeros" if t.chance(0.6) else get(t, "tile") if t.of("tile") else "%ones"
    return t.let("tile", f"tt.load {places}, {get(t, 'mask')}, {other}{how} : {t.types['pointers']}")


def tile(t: Text) -> str:
    """Of other tiles, or of a sum."""
    type = t.types["tile"]
    match t.rng.choice(("turn", "turn", "narrow", "narrow", "choose", "least")):
        case "turn":
            return t.let("tile", f"tt.trans {get(t, 'tile')} {{order = array<i32: 1, 0>}} : {type} -> {type}")
        case "narrow":
            return _narrow(t, get(t, "total"))
        case "choose":
            kind = t.rng.choice(("bit", "mask"))
            condition_type = f"{t.types['mask']}, " if kind == "mask" else ""
            return t.let(
                "tile", f"arith.select {get(t, kind)}, {get(t, 'tile')}, {get(t, 'tile')} : {condition_type}{type}"
            )
    op = t.rng.choice(("minsi", "maxsi") if t.is_of_integers else ("minimumf", "maximumf"))
    return t.let("tile", f"arith.{op} {get(t, 'tile')}, {get(t, 'tile')} : {type}")


def _narrow(t: Text, total: str) -> str:
    limited = _limit(t, total, "%high", "%low")
    if t.sum == t.element:
        return t.add("tile", limited)
    op = "trunci" if t.is_of_integers else "truncf"
    return t.let("tile", f"arith.{op} {limited} : {t.types['total']} to {t.types['tile']}")


def _limit(t: Text, total: str, most: str, least: str) -> str:
    low, high = ("minsi", "maxsi") if t.is_of_integers else ("minimumf", "maximumf")
    below = t.op(f"arith.{low} {total}, {most} : {t.types['total']}")
    return t.op(f"arith.{high} {below}, {least} : {t.types['total']}")


def widened(t: Text, one: str) -> str:
    """A tile as what sums are."""
    if t.sum == t.element:
        return one
    op = "extsi" if t.is_of_integers else "extf"
    return t.op(f"arith.{op} {one} : {t.types['tile']} to {t.types['total']}")


def total(t: Text) -> str:
    if t.chance(0.3):
        return t.let(
            "total", f"arith.select {get(t, 'bit')}, {get(t, 'total')}, {get(t, 'total')} : {t.types['total']}"
        )
    one = get(t, "total") if t.chance(0.5) else widened(t, get(t, "tile"))
    added = t.op(f"arith.{'addi' if t.is_of_integers else 'addf'} {one}, {get(t, 'total')} : {t.types['total']}")
    return t.add("total", _limit(t, added, "%most", "%least"))


def dot(t: Text, a: str = "", b: str = "") -> str:
    a, b, c = a or get(t, "tile"), b or get(t, "tile"), get(t, "total")
    types = f"{t.types['tile']} * {t.types['tile']} -> {t.types['total']}"
    return t.let("total", f"tt.dot {a}, {b}, {c}, inputPrecision = tf32 : {types}")


def store(t: Text) -> None:
    """To what is loaded, or to what is only stored to."""
    if t.chance(0.5):
        store_sum(t, get(t, "total"), get(t, "number"))
        return
    places, masked = pointers(t, "%io"), f", {get(t, 'mask')}" if t.chance(0.3) else ""
    t.emit(f"tt.store {places}, {get(t, 'tile')}{masked} : {t.types['pointers']}")


def store_sum(t: Text, one: str, place: str) -> None:
    type = t.tile(f"!tt.ptr<{t.sum}>")
    start = _splat_of_tile(t, "%out", place, t.sum)
    places = t.op(f"tt.addptr {start}, %square : {type}, {t.tile('i32')}")
    t.emit(f"tt.store {places}, {one} : {type}")


def store_number(t: Text) -> None:
    place = t.op(f"tt.addptr %numbers, {get(t, 'number')} : !tt.ptr<i32>, i32")
    t.emit(f"tt.store {place}, {get(t, 'number')} : !tt.ptr<i32>")


def count(t: Text, order: str = "relaxed") -> None:
    """By an atomic, whose result is a number."""
    place = t.op(f"tt.addptr %counts, {get(t, 'number')} : !tt.ptr<i32>, i32")
    type = "(!tt.ptr<i32>, i32) -> i32"
    found = t.op(f"tt.atomic_rmw add, {order}, gpu, {place}, {get(t, 'number')} : {type}")
    t.let("number", f"arith.andi {found}, %last : i32")


def _some_total(t: Text) -> str:
    return t.add("total", t.rng.choice(("%nothing", "%nothing", "%low")))


_MAKERS: dict[str, Callable[[Text], str]] = {
    "number": lambda t: t.add("number", t.number(t.rng.randrange(TILES))),
    "bit": lambda t: t.let("bit", f"arith.constant {t.rng.choice(('true', 'false'))}"),
    "tile": load,
    "total": _some_total,
    "pointers": pointers,
    "rows": rows,
    "mask": mask,
}
