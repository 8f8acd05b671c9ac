"""Loops of products of which some rows and columns are stored, up to limits, and whose operands lie in any way: rows
repeat, wrap around, or are farther apart in each iteration; k goes on, has gaps, wraps around or goes backwards.

    for t in range(trips):
        left = tl.load(a + (rows % m)[:, None] * (96 + t) + (t * 32 + ks)[None, :], mask=(rows < m)[:, None], other=0.0)
        right = tl.load(b + ((t * 32 + ks) % 40)[:, None] * 29 + columns[None, :], mask=..., other=0.0)
        acc = tl.dot(left, right, acc)
        tl.store(out + ..., acc, mask=(rows < t)[:, None])                  at times
    tl.store(out + ..., acc, mask=(rows < m)[:, None] & (columns < n)[None, :])

All numbers are small and whole, so that sums are exact.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.fuzz.generator.builder import Builder, Unfit, statement_of
from tests.fuzz.generator.control import nested

TYPES = ("float32", "float32", "float16", "bfloat16", "int8")


@dataclass(frozen=True)
class _Loop:
    """The sizes of the tiles, how often it runs, and the names of its index, of the dimensions and of their limits."""

    m: int
    n: int
    k: int
    trips: int
    index: str
    rows: str
    columns: str
    ks: str
    limits: tuple[str, str]

    @property
    def depth(self) -> int:
        return max(self.trips, 1) * self.k


@statement_of("needed rows")
def needed_rows(b: Builder) -> None:
    nested(b)
    if b.depth > 2:
        raise Unfit
    dtype, m, n, k = b.rng.choice(TYPES), *(b.rng.choice(sizes) for sizes in ((2, 8, 16, 32), (16, 32, 64), (16, 32)))
    trips, acc_type = b.rng.randint(0, 6), "int32" if dtype == "int8" else "float32"
    limits = tuple(str(b.number("int32", b.rng.randint(0, min(most, extent)))) for most, extent in ((5, m), (n, n)))
    loop = _Loop(m, n, k, trips, *map(b.name, ("t", "rows", "columns", "ks")), limits)
    for name, extent in ((loop.rows, m), (loop.columns, n), (loop.ks, k)):
        b.emit(f"{name} = tl.arange(0, {extent})")
    acc, bound = b.name("acc"), b.number("int32", trips) if b.chance(0.8) else trips
    b.emit(f"{acc} = tl.full(({m}, {n}), {b.rng.choice((0, 0, 1))}, tl.{acc_type})")
    left, right = _operand(b, loop, dtype, 0), _operand(b, loop, dtype, 1)
    is_kept = b.chance(0.25)
    with b.block(f"for {loop.index} in range({bound}):"):
        b.emit(f"{acc} = tl.dot({left}, {right}, {acc}, out_dtype=tl.{acc_type})")
        if is_kept:
            _store(b, loop, acc, acc_type, f"({loop.rows} < {loop.index})[:, None]")
    own = b.rng.choice((f"({loop.rows} < {limits[0]})[:, None]", f"({loop.columns} < {limits[1]})[None, :]"))
    both = f"({loop.rows} < {limits[0]})[:, None] & ({loop.columns} < {limits[1]})[None, :]"
    _store(b, loop, f"{acc} * 2" if b.chance(0.2) else acc, acc_type, own if b.chance(0.3) else both)


def _operand(b: Builder, loop: _Loop, dtype: str, number: int) -> str:
    """A, or B: it is loaded along `other`, rows of A or columns of B, and along k."""
    other, extent = ((loop.rows, loop.m), (loop.columns, loop.n))[number]
    along_other, along_k = ("[:, None]", "[None, :]")[number], ("[None, :]", "[:, None]")[number]
    depth = _depth(b, loop)
    at = b.rng.choice((other, other, other, f"({other} % {_at_least_one(loop.limits[number])})", f"({other} // 2)"))
    if b.chance(0.15):
        at = f"(({other} + {loop.index} * 3) % {extent})"
    growth = b.rng.choice(("", "", "", f" + {loop.index}"))
    if number == 0 or b.chance(0.5):  # neighbours are along k
        stride = b.number("int32", loop.depth) if b.chance(0.7) else loop.depth
        places = f"{at}{along_other} * ({stride}{growth}) + {depth}{along_k}"
    else:
        stride = b.number("int32", extent) if b.chance(0.7) else extent
        places = f"{depth}{along_k} * ({stride}{growth}) + {at}{along_other}"
    size = extent * (loop.depth + loop.trips) + loop.depth * (extent + loop.trips)
    array = b.array(dtype, size * b.programs, "small")
    masks = [f"({other} < {loop.limits[number]}){along_other}"] if b.chance(0.6) else []
    if b.chance(0.4):
        end = b.number("int32", max(loop.depth - b.rng.choice((0, 0, 1, loop.k)), 0))
        masks.append(f"({loop.index} * {loop.k} + {loop.ks} < {end}){along_k}")
    mask = f", mask={' & '.join(masks)}, other=0" if masks else ""
    return f"tl.load({array} + pid * {size} + {places}{mask})"


def _at_least_one(limit: str) -> str:
    return f"tl.maximum({limit}, 1)"


def _depth(b: Builder, loop: _Loop) -> str:
    """The k of an iteration."""
    straight = f"({loop.index} * {loop.k} + {loop.ks})"
    backwards = f"(({max(loop.trips, 1)} - 1 - {loop.index}) * {loop.k} + {loop.ks})"
    wrapped = f"({straight} % {b.rng.randint(1, loop.depth)})"
    return b.rng.choice((straight, straight, straight, straight, backwards, wrapped, f"({straight} // 2)"))


def _store(b: Builder, loop: _Loop, value: str, dtype: str, mask: str) -> None:
    size = loop.m * loop.n
    out = b.array(dtype, size * b.programs, "poison", prefix="out")
    at = f"{loop.rows}[:, None] * {loop.n} + {loop.columns}[None, :]"
    b.emit(f"tl.store({out} + pid * {size} + {at}, {value}, mask={mask})")
