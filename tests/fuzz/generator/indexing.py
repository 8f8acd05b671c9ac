"""Gather and histogram."""

from __future__ import annotations

from tests.fuzz.generator.builder import DTYPES, INTEGERS, MAX_NUMEL, Builder, statement_of


@statement_of("indexing")
def gather(b: Builder) -> None:
    """The index is any integer, brought into the axis."""
    x = b.pick(lambda v: v.shape) if b.chance(0.7) else b.value(b.dtype(DTYPES), b.shape(1))
    axis = b.rng.randrange(len(x.shape))
    extent = b.rng.choice((x.shape[axis], x.shape[axis], *b.extents))
    if x.numel // x.shape[axis] * extent > MAX_NUMEL:
        extent = x.shape[axis]
    shape = (*x.shape[:axis], extent, *x.shape[axis + 1 :])
    index = b.value(b.rng.choice(INTEGERS), shape)
    b.define(f"tl.gather({x}, {index} & {min(x.shape[axis], 128) - 1}, {axis})", x.dtype, shape)


@statement_of("indexing")
def histogram(b: Builder) -> None:
    x = b.value(b.rng.choice(INTEGERS), b.shape(1, 1))
    bins = b.rng.choice(b.extents)
    mask = f", {b.value('int1', x.shape)}" if b.chance(0.5) else ""
    counted = f"{x} & {min(2 * bins, 128) - 1}" if b.chance(0.7) else x
    b.define(f"tl.histogram({counted}, {bins}{mask})", "int32", (bins,))
