"""Quantisation by groups and by tokens, and 4 bit floats read back through a table."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from benchmarks.gpu.case import Case, Output, Problem, cdiv
from benchmarks.gpu.everyday.declare import case, config, empty, random

_case = functools.partial(case, "serving", source="projects/serving/quantised_kernels")
LARGEST_FP8 = 448.0


def cases(is_small: bool = False) -> Iterator[Case]:
    small = is_small
    yield _quantise_groups(*(9, 256) if small else (16384, 7168))
    yield _quantise_int8(*(9, 200, 256) if small else (16384, 5120, 8192))
    yield _nf4(2048 if small else 2**27)


def _quantise_groups(rows: int, columns: int) -> Case:
    groups = rows * columns // 128

    def make() -> Problem:
        import torch  # deferred: --precompile needs none

        x = random(rows, columns)
        out, scales = empty(rows, columns, dtype="float8_e4m3fn"), empty(groups, dtype="float32")
        exact = x.double().view(groups, 128).abs().amax(1) / LARGEST_FP8
        expected = (x.float().view(groups, 128) / exact.float()[:, None]).to(torch.float8_e4m3fn).float()
        return Problem((x, out, scales), (Output(out, expected.view(rows, columns), 1e-2), Output(scales, exact, 1e-5)))

    return _case(
        f"quantise groups of 128 {rows}x{columns}",
        kernel="quantise_groups",
        parameters=("*bf16", "*fp8e4nv", "*fp32", groups),
        configs=(config(1, 1, GROUP=128, ROWS=1), config(4, 1, GROUP=128, ROWS=16), config(4, 1, GROUP=128, ROWS=64)),
        grid=lambda meta: (cdiv(groups, meta["ROWS"]),),
        make=make,
        num_bytes=3 * rows * columns,
    )


def _quantise_int8(rows: int, columns: int, block: int) -> Case:
    def make() -> Problem:
        import torch  # deferred: as above

        x, out, scales = random(rows, columns), empty(rows, columns, dtype="int8"), empty(rows, dtype="float32")
        exact = x.double().abs().amax(1) / 127
        expected = (x.float() / exact.float()[:, None] + 0.5).floor().to(torch.int8)
        return Problem((x, out, scales), (Output(out, expected, 1e-2), Output(scales, exact, 1e-5)))

    return _case(
        f"quantise tokens int8 {rows}x{columns}",
        kernel="quantise_tokens_int8",
        parameters=("*bf16", "*i8", "*fp32", columns, columns, columns),
        configs=(config(8, 1, BLOCK=block), config(16, 1, BLOCK=block)),
        grid=lambda meta: (rows,),
        make=make,
        num_bytes=3 * rows * columns,
    )


def _nf4(n: int) -> Case:
    def make() -> Problem:
        import torch  # deferred: as above

        packed = torch.randint(256, (n,), dtype=torch.uint8)
        table, absmax = torch.linspace(-1, 1, 16) ** 3, torch.rand(2 * n // 64)
        out = empty(2 * n, dtype="bfloat16")
        pairs = torch.stack([table[(packed >> 4).long()], table[(packed & 15).long()]], -1)
        expected = (pairs.view(-1, 64) * absmax[:, None]).view(-1)
        return Problem((packed, absmax, table, out), (Output(out, expected, 5e-3),))

    return _case(
        f"dequantise nf4 {2 * n}",
        kernel="dequantise_nf4",
        parameters=("*u8", "*fp32", "*fp32", "*bf16", n),
        configs=(config(4, 1, BLOCK=1024, GROUP=64), config(8, 1, BLOCK=2048, GROUP=64)),
        grid=lambda meta: (cdiv(n, meta["BLOCK"]),),
        make=make,
        num_bytes=5 * n,
    )
