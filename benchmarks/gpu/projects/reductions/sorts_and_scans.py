"""Sorts, counts of digits, scans with indices and with segments."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from benchmarks.gpu.case import Case, Output, Problem, Vendor, cdiv
from benchmarks.gpu.everyday.declare import case, config, empty, random

_case = functools.partial(case, "reductions", source="projects/reductions/sorts_and_scans_kernels")


def cases(is_small: bool = False) -> Iterator[Case]:
    small = is_small
    yield _argsort(*(8, 32) if small else (65536, 256))
    yield _cumulative_max(*(5, 100, 128) if small else (16384, 2048, 2048))
    yield _segmented_scan(*(5, 100, 128) if small else (16384, 4096, 4096))
    yield _segmented_scan(*(5, 101, 128) if small else (16384, 2001, 2048))
    yield _radix_counts(3000 if small else 2**26)


def _argsort(rows: int, columns: int) -> Case:
    def make() -> Problem:
        x, values, index = (
            random(rows, columns, dtype="float32"),
            empty(rows, columns, dtype="float32"),
            empty(rows, columns, dtype="int32"),
        )
        exact, order = x.sort(1)
        vendor = Vendor("torch", lambda: x.sort(1))
        return Problem((x, values, index), (Output(values, exact, 0.0), Output(index, order, 1e-4)), vendor)

    return _case(
        f"argsort {rows}x{columns}",
        kernel="argsort_rows",
        parameters=("*fp32", "*fp32", "*i32"),
        configs=(config(4, 1, N=columns, ROWS=4), config(1, 1, N=columns, ROWS=1), config(8, 1, N=columns, ROWS=8)),
        grid=lambda meta: (rows // meta["ROWS"],),
        make=make,
        num_bytes=12 * rows * columns,
    )


def _cumulative_max(rows: int, columns: int, block: int) -> Case:
    def make() -> Problem:
        x, values, index = (
            random(rows, columns, dtype="float32"),
            empty(rows, columns, dtype="float32"),
            empty(rows, columns, dtype="int64"),
        )
        exact, places = x.cummax(1)
        return Problem(
            (x, values, index),
            (Output(values, exact, 0.0), Output(index, places, 0.0)),
            Vendor("torch", lambda: x.cummax(1)),
        )

    return _case(
        f"cumulative max {rows}x{columns}",
        kernel="cumulative_max",
        parameters=("*fp32", "*fp32", "*i64", columns),
        configs=(config(4, 1, BLOCK=block), config(8, 1, BLOCK=block)),
        grid=lambda meta: (rows,),
        make=make,
        num_bytes=16 * rows * columns,
    )


def _segmented_scan(rows: int, columns: int, block: int) -> Case:
    def make() -> Problem:
        import torch  # deferred: --precompile needs none

        x, flags = random(rows, columns, dtype="float32"), (torch.rand(rows, columns) < 0.05).to(torch.uint8)
        out, sums = empty(rows, columns, dtype="float32"), x.double().cumsum(1)
        places = torch.where(flags != 0, torch.arange(columns), 0).cummax(1)[0]
        expected = sums - (sums - x.double()).gather(1, places)
        return Problem((x, flags, out), (Output(out, expected, 1e-5),))

    return _case(
        f"segmented scan {rows}x{columns}",
        kernel="segmented_scan",
        parameters=("*fp32", "*u8", "*fp32", columns),
        configs=(config(4, 1, BLOCK=block), config(8, 1, BLOCK=block)),
        grid=lambda meta: (rows,),
        make=make,
        num_bytes=9 * rows * columns,
    )


def _radix_counts(n: int) -> Case:
    bins = 256

    def make() -> Problem:
        import torch  # deferred: as above

        block = 1024 if n < 2**20 else 4096
        x = torch.randint(2**31 - 1, (n,), dtype=torch.int32)
        blocks = cdiv(n, block)
        padded = torch.zeros(blocks * block, dtype=torch.int64)
        padded[:n] = x
        digits = (padded >> 8) & 255
        whole = torch.bincount(digits + 256 * (torch.arange(blocks * block) // block), minlength=256 * blocks)
        counts = empty(bins, blocks, dtype="int32")
        return Problem((x, counts), (Output(counts, whole.view(blocks, bins).T, 0.0),))

    block = 1024 if n < 2**20 else 4096
    return _case(
        f"radix counts {n}",
        kernel="radix_counts",
        parameters=("*i32", "*i32", n, 8),
        configs=(config(4, 1, BINS=bins, BLOCK=block), config(8, 1, BINS=bins, BLOCK=block)),
        grid=lambda meta: (cdiv(n, meta["BLOCK"]),),
        make=make,
        num_bytes=4 * n,
    )
