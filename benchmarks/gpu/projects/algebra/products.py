"""Products of odd sizes, orders and precisions, of batches and vectors, with epilogues."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from benchmarks.gpu.case import Case, Output, Problem, Vendor, cdiv
from benchmarks.gpu.everyday.declare import case, config, empty, random

_case = functools.partial(case, "algebra", source="projects/algebra/products_kernels")
TORCH = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}


def cases(is_small: bool = False) -> Iterator[Case]:
    small = is_small
    large = {
        "square": (40, 50, 70) if small else (4096, 4096, 4096),
        "odd": (41, 53, 67) if small else (3000, 2500, 2047),
    }
    yield _gemm("tf32", "fp32", large["square"], "nn", "tf32")
    yield _gemm("tf32 odd", "fp32", large["odd"], "nn", "tf32")
    yield _gemm("tf32 nt", "fp32", large["square"], "nt", "tf32")
    yield _gemm("ieee", "fp32", (32, 32, 48) if small else (2048, 2048, 2048), "nn", "ieee")
    yield _gemm("tn", "bf16", large["square"], "tn", "tf32")
    yield _gemm("tt", "bf16", large["square"], "tt", "tf32")
    yield _gemm("fp16 sums", "fp16", large["square"], "nn", "tf32", is_fp16=True)
    yield _gemm("thin", "bf16", (40, 16, 70) if small else (32768, 64, 4096), "nn", "tf32")
    yield _gemm("long", "bf16", (16, 40, 500) if small else (512, 512, 65536), "tn", "tf32")
    yield _nearest(*(70, 40, 32) if small else (262144, 4096, 128))
    yield _syrk(*(70, 48) if small else (8192, 2048))
    yield _batched_gemv(*(3, 20, 40) if small else (256, 1024, 2048))
    yield _vector_matrix(*(70, 50, 64) if small else (16384, 8192, 1024))
    yield _row_statistics(*(32, 32, 64) if small else (8192, 4096, 2048))
    yield _dots_3d(*(8, 16) if small else (65536, 32))
    yield _grouped((3, 0, 40, 17), 24, 40) if small else _grouped((200, 0, 513, 64, 1000, 3, 2048, 77) * 2, 2056, 1544)


def _gemm(
    name: str, element: str, shape: tuple[int, int, int], order: str, precision: str, is_fp16: bool = False
) -> Case:
    m, n, k = shape

    def make() -> Problem:
        dtype = TORCH[element]
        a = random(m, k, dtype=dtype) if order[0] == "n" else random(k, m, dtype=dtype).T
        b = random(k, n, dtype=dtype) if order[1] == "n" else random(n, k, dtype=dtype).T
        if is_fp16:
            a, b = a * 0.1, b * 0.1
        c = empty(m, n, dtype=dtype)
        limit = {"fp32": 1e-3 if precision == "tf32" else 1e-5, "fp16": 3e-2 if is_fp16 else 1e-3, "bf16": 5e-3}[
            element
        ]
        vendor = Vendor("cuBLAS", lambda: a @ b)
        return Problem((a, b, c), (Output(c, a.double() @ b.double(), limit),), vendor)

    if m < 100:
        tiles = ((32, 32, 32, 4, 2),)
    elif precision == "ieee":
        tiles = ((64, 64, 16, 4, 3), (128, 64, 16, 8, 3), (64, 64, 32, 8, 2))
    elif element == "fp32":
        tiles = ((128, 128, 32, 8, 3), (128, 64, 32, 4, 4), (64, 64, 32, 4, 4))
    elif n <= 64:
        tiles = ((128, 64, 64, 4, 4), (64, 64, 64, 4, 5))
    else:
        tiles = ((128, 256, 64, 8, 3), (128, 128, 64, 8, 3), (128, 128, 32, 4, 4))
    strides = (*((k, 1) if order[0] == "n" else (1, m)), *((n, 1) if order[1] == "n" else (1, k)))
    size = 4 if element == "fp32" else 2
    return _case(
        f"gemm {name} {m}x{n}x{k}",
        kernel="gemm",
        parameters=(f"*{element}",) * 3 + (m, n, k, *strides),
        configs=tuple(
            config(w, s, PRECISION=precision, ACC_FP16=is_fp16, BLOCK_M=bm, BLOCK_N=bn, BLOCK_K=bk, GROUP_M=8)
            for bm, bn, bk, w, s in tiles
        ),
        grid=lambda meta: (cdiv(m, meta["BLOCK_M"]) * cdiv(n, meta["BLOCK_N"]),),
        make=make,
        num_bytes=size * (m * k + n * k + m * n),
        operations=2 * m * n * k,
        multiplied=element,
    )


def _nearest(rows: int, centroids: int, dim: int) -> Case:
    def make() -> Problem:
        x, c, out = random(rows, dim), random(centroids, dim), empty(rows, dtype="int32")
        norms = c.double().square().sum(1)
        import torch  # deferred: --precompile needs none

        expected = torch.cat([(norms - 2 * p.double() @ c.double().T).argmin(1) for p in x.split(32768)])
        return Problem((x, c, norms.float(), out), (Output(out, expected, 3e-2),))

    tiles = ((32, 16, 4, 2),) if dim < 64 else ((128, 128, 8, 2), (128, 64, 4, 3), (64, 128, 4, 3))
    return _case(
        f"nearest centroid {rows}x{centroids}x{dim}",
        kernel="nearest_centroid",
        parameters=("*bf16", "*bf16", "*fp32", "*i32", rows, centroids),
        configs=tuple(config(w, s, D=dim, BLOCK_N=bn, BLOCK_K=bk) for bn, bk, w, s in tiles),
        grid=lambda meta: (cdiv(rows, meta["BLOCK_N"]),),
        make=make,
        num_bytes=2 * rows * dim,
        operations=2 * rows * centroids * dim,
    )


def _syrk(m: int, k: int) -> Case:
    def make() -> Problem:
        x, out = random(m, k), empty(m, m)
        return Problem((x, out), (Output(out, x.double() @ x.double().T),), Vendor("cuBLAS", lambda: x @ x.T))

    tiles = ((32, 16, 4, 2),) if m < 100 else ((128, 64, 8, 3), (128, 64, 4, 3), (64, 64, 4, 4))
    return _case(
        f"syrk {m}x{k}",
        kernel="syrk",
        parameters=("*bf16", "*bf16", m, k),
        configs=tuple(config(w, s, BLOCK_M=bm, BLOCK_K=bk) for bm, bk, w, s in tiles),
        grid=lambda meta: (cdiv(m, meta["BLOCK_M"]),) * 2,
        make=make,
        num_bytes=2 * (m * k + m * m),
        operations=m * m * k,
    )


def _batched_gemv(batches: int, n: int, k: int) -> Case:
    def make() -> Problem:
        w, x, out = random(batches, n, k), random(batches, k), empty(batches, n)
        vendor = Vendor("cuBLAS", lambda: w @ x[..., None])
        return Problem((w, x, out), (Output(out, (w.double() @ x.double()[..., None])[..., 0]),), vendor)

    return _case(
        f"batched gemv {batches}x{n}x{k}",
        kernel="batched_gemv",
        parameters=("*bf16",) * 3 + (n, k),
        configs=tuple(config(w, 3, BLOCK_N=bn, BLOCK_K=bk) for w, bn, bk in ((4, 8, 512), (4, 32, 128), (1, 2, 512))),
        grid=lambda meta: (cdiv(n, meta["BLOCK_N"]), batches),
        make=make,
        num_bytes=2 * batches * n * k,
    )


def _vector_matrix(k: int, n: int, share: int) -> Case:
    def make() -> Problem:
        x, w, out = random(k), random(k, n), empty(n, dtype="float32")
        return Problem(
            (x, w, out), (Output(out, x.double() @ w.double(), 1e-5),), Vendor("cuBLAS", lambda: x @ w), (out,)
        )

    return _case(
        f"vector times matrix {k}x{n}",
        kernel="vector_matrix",
        parameters=("*bf16", "*bf16", "*fp32", n, k),
        configs=tuple(
            config(w, 3, SHARE=share, BLOCK_N=bn, BLOCK_K=bk) for w, bn, bk in ((4, 128, 32), (4, 64, 64), (4, 256, 16))
        ),
        grid=lambda meta: (cdiv(n, meta["BLOCK_N"]), cdiv(k, share)),
        make=make,
        num_bytes=2 * k * n,
    )


def _row_statistics(m: int, n: int, k: int) -> Case:
    def make() -> Problem:
        import torch  # deferred: as above

        a, b, c, sums = random(m, k), random(k, n), empty(m, n), empty(m, 2, dtype="float32")
        exact = a.double() @ b.double()
        outputs = (Output(c, exact), Output(sums, torch.stack([exact.sum(1), exact.square().sum(1)], 1), 1e-4))
        return Problem((a, b, c, sums), outputs, Vendor("cuBLAS, no sums", lambda: a @ b), (sums,))

    tiles = ((32, 32, 32, 4, 2),) if m < 100 else ((128, 256, 64, 8, 3), (128, 128, 64, 4, 4))
    return _case(
        f"gemm with row statistics {m}x{n}x{k}",
        kernel="gemm_with_row_statistics",
        parameters=("*bf16",) * 3 + ("*fp32", m, n, k),
        configs=tuple(config(w, s, BLOCK_M=bm, BLOCK_N=bn, BLOCK_K=bk) for bm, bn, bk, w, s in tiles),
        grid=lambda meta: (m // meta["BLOCK_M"], n // meta["BLOCK_N"]),
        make=make,
        num_bytes=2 * (m * k + n * k + m * n),
        operations=2 * m * n * k,
    )


def _dots_3d(batches: int, n: int) -> Case:
    def make() -> Problem:
        a, b, out = random(batches, n, n), random(batches, n, n), empty(batches, n, n)
        return Problem((a, b, out), (Output(out, a.double() @ b.double()),), Vendor("cuBLAS", lambda: a @ b))

    return _case(
        f"dots of three dimensions {batches}x{n}",
        kernel="batched_dot_3d",
        parameters=("*bf16",) * 3,
        configs=(config(4, 1, B=4, N=n), config(4, 1, B=8, N=n), config(1, 1, B=1, N=n)),
        grid=lambda meta: (batches // meta["B"],),
        make=make,
        num_bytes=6 * batches * n * n,
    )


def _grouped(sizes: tuple[int, ...], n: int, k: int) -> Case:
    m, num_groups = sum(sizes), len(sizes)

    def make() -> Problem:
        import torch  # deferred: --precompile needs none

        x, w, out = random(m, k), random(num_groups, n, k), empty(m, n)
        starts = torch.tensor([0, *sizes]).cumsum(0).to(torch.int32)
        parts = [rows.double() @ weights.double().T for rows, weights in zip(x.split(sizes), w, strict=True)]
        return Problem((x, w, out, starts), (Output(out, torch.cat(parts), 5e-3),))

    tiles = ((64, 128, 64, 4), (128, 128, 64, 8), (64, 64, 32, 4)) if m > 100 else ((32, 32, 32, 4),)
    return _case(
        f"grouped descriptors {m}x{n}x{k}",
        kernel="grouped_descriptors",
        parameters=("*bf16", "*bf16", "*bf16", "*i32", num_groups, n, k),
        configs=tuple(config(w, 3, BLOCK_M=bm, BLOCK_N=bn, BLOCK_K=bk, NUM_PROGRAMS=132) for bm, bn, bk, w in tiles),
        grid=lambda meta: (meta["NUM_PROGRAMS"],),
        make=make,
        num_bytes=2 * (m * k + num_groups * n * k + m * n),
        operations=2 * m * n * k,
    )
