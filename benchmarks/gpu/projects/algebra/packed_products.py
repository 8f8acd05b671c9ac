"""Products of packed operands: microscaled formats, weights of 4 bits, sparse blocks."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from benchmarks.gpu.case import Case, Output, Problem, cdiv
from benchmarks.gpu.everyday.declare import case, config, empty, random

_case = functools.partial(case, "algebra", source="projects/algebra/packed_products_kernels")


def cases(is_small: bool = False) -> Iterator[Case]:
    small = is_small
    for formats in (("e4m3", "e4m3"), ("e2m1", "e2m1"), ("e5m2", "e2m1")):
        yield _scaled(*formats, *(32, 32, 128) if small else (4096, 4096, 4096))
    yield _block_sparse(*(4, 5, 40, 32) if small else (128, 128, 4096, 64))
    for rows in (20,) if small else (16, 2048):
        yield _gptq(rows, *(64, 128) if small else (11008, 4096))


def _microscaled(rows: int, k: int, form: str) -> tuple[Any, Any, Any]:
    """Packed numbers, their scales, and what they mean in float64."""
    import torch  # deferred: --precompile needs none

    scales = torch.randint(124, 131, (rows, k // 32), dtype=torch.uint8)
    wide = (scales.double() - 127).exp2().repeat_interleave(32, 1)
    if form == "e2m1":
        packed = torch.randint(256, (rows, k // 2), dtype=torch.uint8)
        table = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6], dtype=torch.float64)
        values = torch.stack([table[(packed & 15).long()], table[(packed >> 4).long()]], -1).view(rows, k)
        return packed, scales, values * wide
    x = torch.randn(rows, k).to({"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}[form])
    return x, scales, x.double() * wide


def _scaled(a_form: str, b_form: str, m: int, n: int, k: int) -> Case:
    def make() -> Problem:
        a, a_scale, wide_a = _microscaled(m, k, a_form)
        b, b_scale, wide_b = _microscaled(n, k, b_form)
        c = empty(m, n)
        return Problem((a, a_scale, b, b_scale, c), (Output(c, wide_a @ wide_b.T, 5e-3),))

    types = {"e2m1": "*u8", "e4m3": "*fp8e4nv", "e5m2": "*fp8e5"}
    tiles = ((32, 32, 64, 4, 2),) if m < 100 else ((128, 128, 128, 8, 2), (128, 128, 64, 8, 3), (128, 64, 128, 4, 2))
    return _case(
        f"microscaled {a_form} {b_form} {m}x{n}x{k}",
        kernel="gemm_scaled",
        parameters=(types[a_form], "*u8", types[b_form], "*u8", "*bf16", m, n, k),
        configs=tuple(
            config(w, s, A_FORMAT=a_form, B_FORMAT=b_form, BLOCK_M=bm, BLOCK_N=bn, BLOCK_K=bk)
            for bm, bn, bk, w, s in tiles
        ),
        grid=lambda meta: (m // meta["BLOCK_M"], n // meta["BLOCK_N"]),
        make=make,
        num_bytes=m * k + n * k + 2 * m * n,
        operations=2 * m * n * k,
    )


def _block_sparse(rows: int, columns: int, n: int, block: int) -> Case:
    def make() -> Problem:
        import torch  # deferred: as above

        there = torch.rand(rows, columns) < 0.25
        starts = torch.tensor([0, *there.sum(1).cumsum(0).tolist()], dtype=torch.int32)
        places = there.nonzero()[:, 1].to(torch.int32)
        a, b, c = random(len(places), block, block), random(columns * block, n), empty(rows * block, n)
        dense = torch.zeros(rows, columns, block, block, dtype=torch.float64)
        dense[there] = a.double()
        whole = dense.permute(0, 2, 1, 3).reshape(rows * block, columns * block)
        return Problem((a, b, c, starts, places), (Output(c, whole @ b.double()),))

    tiles = ((32, 4, 2),) if block < 64 else ((128, 4, 3), (256, 8, 3), (64, 4, 4))
    return _case(
        f"block sparse {rows * block}x{n}x{columns * block}",
        kernel="block_sparse",
        parameters=("*bf16",) * 3 + ("*i32", "*i32", n, columns * block),
        configs=tuple(config(w, s, BLOCK=block, BLOCK_N=bn) for bn, w, s in tiles),
        grid=lambda meta: (rows, cdiv(n, meta["BLOCK_N"])),
        make=make,
        num_bytes=2 * rows * block * n,
        operations=0.5 * rows * columns * block * block * n,
    )


def _gptq(m: int, n: int, k: int) -> Case:
    group = 128

    def make() -> Problem:
        import torch  # deferred: as above

        a, out = random(m, k, dtype="float16"), empty(m, n, dtype="float16")
        b = torch.randint(-(2**31), 2**31 - 1, (k // 8, n), dtype=torch.int32)
        zeros = torch.randint(-(2**31), 2**31 - 1, (k // group, n // 8), dtype=torch.int32)
        scales = (torch.rand(k // group, n) * 0.01 + 0.001).to(torch.float16)
        shifts = torch.arange(8) * 4
        w = ((b[:, None, :] >> shifts[None, :, None]) & 15).view(k, n)
        z = ((zeros[:, :, None] >> shifts) & 15).view(k // group, n).repeat_interleave(group, 0)
        wide = ((w - z) * scales.repeat_interleave(group, 0)).double()
        return Problem((a, b, scales, zeros, out), (Output(out, a.double() @ wide),))

    if n < 100:
        tiles = ((16, 32, 32, 4, 2),)
    else:
        tiles = ((16, 64, 128, 4, 4), (16, 128, 64, 4, 4)) if m <= 16 else ((64, 128, 64, 4, 4), (128, 128, 32, 8, 3))
    return _case(
        f"gptq {m}x{n}x{k}",
        kernel="gptq_gemm",
        parameters=("*fp16", "*i32", "*fp16", "*i32", "*fp16", m, n, k),
        configs=tuple(config(w, s, GROUP=group, BLOCK_M=bm, BLOCK_N=bn, BLOCK_K=bk) for bm, bn, bk, w, s in tiles),
        grid=lambda meta: (cdiv(m, meta["BLOCK_M"]), cdiv(n, meta["BLOCK_N"])),
        make=make,
        num_bytes=n * k / 2 + 2 * m * k + 2 * m * n,
        operations=2 * m * n * k,
    )
