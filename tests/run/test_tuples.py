"""Tuples, named tuples, aggregates as values: built, taken apart, passed, returned, carried by loops and branches."""

from typing import NamedTuple

import numpy as np

import deuteron as triton
import deuteron.language as tl


class Point(NamedTuple):
    x: object
    y: object


@triton.jit
def moved(point, *steps, **named):
    for step in steps:
        point = Point(point.x + step, point.y - step)
    return shifted(point, **named)


@triton.jit
def shifted(point, x=0, y=0):
    return point._replace(x=point.x + x, y=point.y + y)


@triton.jit
def named_tuples(out_ptr, n):
    point = Point(n, 2)
    for i in range(3):
        if i > 0:  # noqa: SIM108 (a branch that carries a tuple)
            point = moved(point, i, 10, y=n)
        else:
            point = Point(y=point.x, x=point.y)
    tl.store(out_ptr, point.x)
    tl.store(out_ptr + 1, point.y)


def test_named_tuples(poisoned, check):
    out = poisoned("int32", 2)
    named_tuples[(1,)](out, 7)
    check(out, np.array([2 + 11 + 12, 7 - 11 - 12 + 14]))


@triton.jit
def expressions(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    first, *middle, last = (x, *(x + 1, x + 2), 3)
    tl.static_assert(len(middle) == 2 and isinstance(middle, tl.tuple))
    items = [middle[0] * 10, *middle[1:]] + [last + 4]
    total = sum(item for item in items if item is not first)
    for i, (left, right) in enumerate(zip(items, reversed(items), strict=True)):
        total += i * (left - right)
    pair = tl.tuple([total, first])[::-1]
    same = (pair[0], 1) == (x, 1)
    tl.store(out_ptr + offsets, pair[1] + tl.where(same, 1000, 0))


def test_expressions(draw, poisoned, check):
    x, out = draw("int32", 16, -99, 99), poisoned("int32", 16)
    expressions[(1,)](x, out, BLOCK=16)
    items = [(x + 1) * 10, x + 2, 7]
    differences = sum(i * (left - right) for i, (left, right) in enumerate(zip(items, items[::-1], strict=True)))
    check(out, sum(items) + differences + 1000)


@triton.aggregate
class Interval:
    low: tl.tensor
    high: tl.tensor
    STEP: tl.constexpr

    @triton.constexpr_function
    def __init__(self, low, high, step):
        self.low, self.high = low, high
        self.STEP = tl.constexpr(step)

    @triton.jit
    def length(self):
        return (self.high - self.low) // self.STEP

    @triton.jit
    def __add__(self, shift):
        return Interval(self.low + shift, self.high + 2 * shift, self.STEP)

    @triton.constexpr_function
    def twice(self):
        return 2 * self.STEP

    @staticmethod
    @triton.jit
    def of(x, STEP: tl.constexpr):
        return Interval(x, x, STEP)


class Extents(NamedTuple):
    rows: tl.constexpr
    columns: tl.constexpr


@triton.aggregate
class View:
    pointer: tl.tensor
    shape: tl.tuple
    strides: tl.tuple

    @triton.jit
    def offsets(self):
        rows, columns = tl.arange(0, self.shape.rows), tl.arange(0, self.shape.columns)
        return rows[:, None] * self.strides[0] + columns[None, :] * self.strides[1]

    @triton.jit
    def load(self):
        return tl.load(self.pointer + self.offsets())


@triton.jit
def copies_to_views(source, out_ptr, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    target = View(out_ptr, Extents(ROWS, COLUMNS), (n, 1))
    for i in range(n // COLUMNS):
        tl.store(target.pointer + target.offsets(), source.load() + i)
        target = View(target.pointer + COLUMNS, target.shape, target.strides)


def test_numbers_in_a_tuple_of_an_aggregate_stay_known(draw, poisoned, check):
    x, out = draw("int32", (8, 4), -99, 99), poisoned("int32", (4, 24))
    source = View(x, Extents(tl.constexpr(4), 8), (1, 4))
    assert isinstance(source.shape, tl.tuple) and isinstance(source.shape.rows, tl.constexpr)
    assert source.strides[1].value == 4 and isinstance(source.strides[0], tl.constexpr)
    copies_to_views[(1,)](source, out, 24, ROWS=4, COLUMNS=8)
    check(out, np.concatenate([x.T + i for i in range(3)], axis=1))


@triton.aggregate
class Pair:
    first: Interval
    second: Interval


@triton.jit
def lengths(pair):
    return pair.first.length() + pair.second.length()


@triton.jit
def aggregates(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    interval = Interval.of(tl.load(x_ptr + offsets), 2)
    tl.static_assert(isinstance(interval, Interval) and not isinstance(interval, tl.tuple))
    for i in range(n):
        interval = interval + i * interval.twice()
        if i == 1:
            interval = Interval(interval.low - 1, interval.high, interval.STEP)
    pair = Pair(interval, second=Interval.of(offsets, interval.STEP) + 5)
    tl.store(out_ptr + offsets, lengths(pair))


def test_aggregates(draw, poisoned, check):
    x, out = draw("int32", 16, -99, 99), poisoned("int32", 16)
    aggregates[(1,)](x, out, 4, BLOCK=16)
    shift = sum(4 * i for i in range(4))
    check(out, (shift + 1) // 2 + 5 // 2 + 0 * x)
