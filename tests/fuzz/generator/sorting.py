"""Sorting networks, reversal, random numbers: functions that the standard library writes in the language."""

from __future__ import annotations

from tests.fuzz.generator.builder import INTEGERS, Builder, Value, statement_of
from tests.fuzz.generator.reductions import COMPARED, NUMBERS

MAX_SORTED = 64  # a network of log2(n)^2 / 2 steps is many ops


def _sortable(b: Builder) -> Value:
    return b.pick(lambda v: v.shape and v.numel <= 256 and v.dtype in NUMBERS and max(v.shape) <= MAX_SORTED)


def _dim(b: Builder, x: Value) -> int:
    return b.rng.randrange(-len(x.shape), len(x.shape))


@statement_of("sort")
def sort(b: Builder) -> None:
    x = _sortable(b)
    b.define(f"tl.sort({x}, {_dim(b, x)}, {b.rng.choice((True, False))})", x.dtype, x.shape)


@statement_of("sort")
def topk(b: Builder) -> None:
    x, descending = _sortable(b), b.rng.choice((True, False))
    axis = b.rng.randrange(len(x.shape))
    k = b.rng.choice([k for k in (1, 2, 4, 8) if k <= x.shape[axis]])
    dtype = COMPARED.get(x.dtype, x.dtype) if k < x.shape[axis] else x.dtype
    shape = (*x.shape[:axis], k, *x.shape[axis + 1 :])
    b.define(f"tl.topk({x}, {k}, {axis}, descending={descending})", dtype, shape)


@statement_of("sort")
def flip(b: Builder) -> None:
    x = b.pick(lambda v: v.shape and v.dtype in NUMBERS)
    b.define(f"tl.flip({x}, {_dim(b, x)})", x.dtype, x.shape)


@statement_of("random")
def random_words(b: Builder) -> None:
    offset = b.pick(lambda v: v.dtype in INTEGERS)
    name, dtype = b.rng.choice((("randint", "uint32"), ("rand", "float32")))
    seed = b.rng.choice((0, 1, 42, 2**31 + 5, 2**40 + 3))
    b.define(f"tl.{name}({seed}, {offset}, n_rounds={b.rng.choice((1, 3, 10))})", dtype, offset.shape)
