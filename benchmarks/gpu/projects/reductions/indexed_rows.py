"""Rows that an index chooses: bags of embeddings, sums by atomics, a sparse matrix times a dense one."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from benchmarks.gpu.case import Case, Output, Problem, Vendor, cdiv
from benchmarks.gpu.everyday.declare import case, config, empty, random

_case = functools.partial(case, "reductions", source="projects/reductions/indexed_rows_kernels")


def cases(is_small: bool = False) -> Iterator[Case]:
    small = is_small
    yield _embedding_bag(*(20, 50, 40) if small else (16384, 100000, 512))
    yield _scatter_add(*(50, 20, 30) if small else (131072, 20000, 256))
    yield _sparse(*(30, 40, 50) if small else (65536, 65536, 128))


def _embedding_bag(bags: int, rows: int, columns: int) -> Case:
    def make() -> Problem:
        import torch  # deferred: --precompile needs none

        weight, counts = random(rows, columns), torch.randint(1, 40, (bags,))
        starts = torch.cat([torch.zeros(1, dtype=counts.dtype), counts.cumsum(0)])
        index, out = torch.randint(rows, (int(starts[-1]),)), empty(bags, columns)
        bag = torch.repeat_interleave(torch.arange(bags), counts)
        expected = torch.zeros(bags, columns, dtype=torch.float64).index_add_(0, bag, weight[index].double())
        return Problem((weight, index, starts, out), (Output(out, expected, 5e-3),))

    return _case(
        f"embedding bag {bags}x{columns} of {rows}",
        kernel="embedding_bag",
        parameters=("*bf16", "*i64", "*i64", "*bf16", columns),
        configs=(config(4, 1, BLOCK=512), config(1, 1, BLOCK=256), config(2, 1, BLOCK=512)),
        grid=lambda meta: (bags, cdiv(columns, meta["BLOCK"])),
        make=make,
        num_bytes=2 * bags * columns * 21,
    )


def _scatter_add(rows: int, targets: int, columns: int) -> Case:
    def make() -> Problem:
        import torch  # deferred: as above

        x, index, out = (
            random(rows, columns, dtype="float32"),
            torch.randint(targets, (rows,)),
            empty(targets, columns, dtype="float32"),
        )
        expected = torch.zeros(targets, columns, dtype=torch.float64).index_add_(0, index, x.double())
        vendor = Vendor("torch", lambda: out.index_add_(0, index, x))
        return Problem((x, index, out), (Output(out, expected, 1e-5),), vendor, (out,))

    return _case(
        f"scatter add {rows}x{columns} to {targets}",
        kernel="scatter_add",
        parameters=("*fp32", "*i64", "*fp32", rows, columns),
        configs=(config(4, 1, ROWS=4, BLOCK=256), config(4, 1, ROWS=16, BLOCK=64)),
        grid=lambda meta: (cdiv(rows, meta["ROWS"]), cdiv(columns, meta["BLOCK"])),
        make=make,
        num_bytes=8 * rows * columns,
    )


def _sparse(rows: int, inner: int, columns: int) -> Case:
    def make() -> Problem:
        import torch  # deferred: as above

        counts = torch.randint(0, 64, (rows,))
        starts = torch.cat([torch.zeros(1, dtype=counts.dtype), counts.cumsum(0)])
        total = int(starts[-1])
        index, values = torch.randint(inner, (total,), dtype=torch.int32), random(total, dtype="float32")
        b, out = random(inner, columns, dtype="float32"), empty(rows, columns, dtype="float32")
        expected = torch.zeros(rows, columns, dtype=torch.float64)
        expected.index_add_(
            0, torch.repeat_interleave(torch.arange(rows), counts), b[index.long()].double() * values[:, None].double()
        )
        return Problem((starts.to(torch.int32), index, values, b, out), (Output(out, expected, 1e-5),))

    return _case(
        f"sparse {rows}x{inner} times {columns}",
        kernel="sparse_times_dense",
        parameters=("*i32", "*i32", "*fp32", "*fp32", "*fp32", columns),
        configs=tuple(config(w, 1, BLOCK_K=k, BLOCK_N=n) for w, k, n in ((2, 16, 128), (4, 8, 64), (1, 4, 128))),
        grid=lambda meta: (rows, cdiv(columns, meta["BLOCK_N"])),
        make=make,
        num_bytes=4 * rows * columns * 33,
    )
