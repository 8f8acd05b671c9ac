"""Reductions and scans: the elements combined in another order, or in pieces."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from deuteron.interpreter.reduce import axis_first, combiner
from deuteron.ir.rule_table import Rule
from deuteron.ir.tt.reduce import ReduceOp, ScanOp
from tests.fuzz.perturb.noise import Noise, Wrappers


class AlongAxis:
    """A reduction may take any order, a scan any place of the brackets."""

    def __init__(self, noise: Noise):
        self._noise = noise

    def wrappers(self) -> Wrappers:
        return {ReduceOp: self._reduce, ScanOp: self._scan}

    @contextmanager
    def _combining(self, srcs: tuple[np.ndarray, ...], extent: int) -> Iterator[None]:
        if extent > 1 and (len(srcs) > 1 or any(np.asarray(src).dtype.kind == "f" for src in srcs)):
            self._noise.licence.taken += 1
        self._noise.is_combining = True
        yield
        self._noise.is_combining = False

    def _reduce(self, rule: Rule) -> Rule:
        """The elements in another order, each row in its own, a random number at a time, these in pairs at the end."""

        def perturbed(ctx, op, *srcs):
            combine, tiles = combiner(ctx, op), axis_first(srcs, op.axis.value.data)
            extent = len(tiles[0])
            order = self._noise.rng.permuted(np.indices(np.shape(tiles[0]))[0], axis=0)
            tiles = [np.take_along_axis(np.asarray(tile), order, 0) for tile in tiles]
            width = 1 << int(self._noise.rng.integers(0, extent.bit_length()))
            rows = [[tile[i : i + width] for tile in tiles] for i in range(0, extent, width)]
            with self._combining(srcs, extent):
                total = functools.reduce(combine, rows)
                while (count := len(total[0])) > 1:
                    total = combine([t[: count // 2] for t in total], [t[count // 2 :] for t in total])
            return tuple(tile[0] for tile in total)

        return perturbed

    def _scan(self, rule: Rule) -> Rule:
        """In pieces of a random length: all scanned side by side, then their totals, in steps that double."""

        def perturbed(ctx, op, *srcs):
            combine, axis = combiner(ctx, op), op.axis.value.data
            step = -1 if op.reverse.value.data else 1
            tiles = [tile[::step] for tile in axis_first(srcs, axis)]
            extent, rest = len(tiles[0]), np.shape(tiles[0])[1:]
            length = 1 << int(self._noise.rng.integers(0, extent.bit_length()))
            pieces = [tile.reshape(extent // length, length, *rest) for tile in tiles]
            with self._combining(srcs, extent):
                rows = [[piece[:, 0] for piece in pieces]]
                for index in range(1, length):
                    rows.append(combine(rows[-1], [piece[:, index] for piece in pieces]))
                totals = _scan_by_doubling(combine, rows[-1])
                before = [total[:-1] for total in totals]
                rows = [*(_later_combined(combine, before, row) for row in rows[:-1]), totals]
            scanned = [np.stack(column, 1).reshape(extent, *rest)[::step] for column in zip(*rows, strict=True)]
            return tuple(np.moveaxis(tile, 0, axis) for tile in scanned)

        return perturbed


def _later_combined(combine: Callable, before: list[np.ndarray], row: list[np.ndarray]) -> list[np.ndarray]:
    """The elements of a row, all but the first combined with what is before them."""
    if not len(before[0]):
        return row
    later = combine(before, [tile[1:] for tile in row])
    return [np.concatenate([tile[:1], new]) for tile, new in zip(row, later, strict=True)]


def _scan_by_doubling(combine: Callable, tiles: list[np.ndarray]) -> list[np.ndarray]:
    distance = 1
    while distance < len(tiles[0]):
        later = combine([tile[:-distance] for tile in tiles], [tile[distance:] for tile in tiles])
        tiles = [np.concatenate([tile[:distance], new]) for tile, new in zip(tiles, later, strict=True)]
        distance *= 2
    return tiles
