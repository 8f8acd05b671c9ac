"""Norms and statistics over rows, groups, batches, images and middle axes."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from benchmarks.gpu.case import Case, Output, Problem, Vendor, cdiv
from benchmarks.gpu.everyday.declare import case, config, empty, random

_case = functools.partial(case, "reductions", source="projects/reductions/norms_kernels")
EPS = 1e-5


def cases(is_small: bool = False) -> Iterator[Case]:
    small = is_small
    yield _layer_norm_residual(*(5, 100, 128) if small else (16384, 4096, 4096))
    yield _group_norm(*(2, 6, 2, 50) if small else (16, 512, 32, 128 * 128))
    yield _batch_norm(*(3, 5, 70) if small else (64, 256, 56 * 56))
    yield _instance_norm(*(2, 60, 20) if small else (32, 128 * 128, 128))
    yield _softmax_middle(*(2, 20, 30, 32) if small else (256, 128, 4096, 128))
    yield _variance(*(70, 50) if small else (8192, 16384))
    yield _swiglu_quantise(*(5, 256, 256) if small else (16384, 8192, 2048))


def _layer_norm_residual(rows: int, columns: int, block: int) -> Case:
    def make() -> Problem:
        import torch  # deferred: --precompile needs none

        x, residual, weight, bias = random(rows, columns), random(rows, columns), random(columns), random(columns)
        keep, out, sums = (torch.rand(rows, columns) > 0.1).to(torch.uint8), empty(rows, columns), empty(rows, columns)
        total = torch.where(keep != 0, x.double() / 0.9, 0.0) + residual.double()
        expected = torch.nn.functional.layer_norm(total, (columns,), weight.double(), bias.double(), EPS)
        outputs = (Output(out, expected, 5e-3), Output(sums, total, 5e-3))
        return Problem((x, residual, weight, bias, keep, out, sums), outputs)

    return _case(
        f"layer norm, dropout, residual {rows}x{columns}",
        kernel="layer_norm_dropout_residual",
        parameters=("*bf16",) * 4 + ("*u8", "*bf16", "*bf16", columns, EPS, 1 / 0.9),
        configs=(config(8, 1, BLOCK=block), config(4, 1, BLOCK=block)),
        grid=lambda meta: (rows,),
        make=make,
        num_bytes=9 * rows * columns,
    )


def _group_norm(batches: int, channels: int, groups: int, size: int) -> Case:
    def make() -> Problem:
        import torch  # deferred: as above

        x, weight, bias, out = (
            random(batches, channels, size),
            random(channels),
            random(channels),
            empty(batches, channels, size),
        )
        norm = torch.nn.functional.group_norm(x.double(), groups, weight.double(), bias.double(), EPS)
        run = lambda: torch.nn.functional.group_norm(x, groups, weight, bias, EPS)  # noqa: E731
        return Problem(
            (x, weight, bias, out), (Output(out, norm * norm.sigmoid(), 5e-3),), Vendor("torch, no SiLU", run)
        )

    return _case(
        f"group norm {batches}x{channels}x{size}",
        kernel="group_norm",
        parameters=("*bf16",) * 4 + (size, channels // groups, groups, EPS),
        configs=(config(8, 1, BLOCK=2048), config(16, 1, BLOCK=8192)),
        grid=lambda meta: (batches, groups),
        make=make,
        num_bytes=6 * batches * channels * size,
    )


def _batch_norm(batches: int, channels: int, size: int) -> Case:
    def make() -> Problem:
        x = random(batches, channels, size, dtype="float32") + 3
        mean, rstd = empty(channels, dtype="float32"), empty(channels, dtype="float32")
        wide = x.double().transpose(0, 1).reshape(channels, -1)
        exact = (wide.var(1, correction=0) + EPS).rsqrt()
        return Problem((x, mean, rstd), (Output(mean, wide.mean(1), 1e-5), Output(rstd, exact, 1e-5)))

    return _case(
        f"batch norm statistics {batches}x{channels}x{size}",
        kernel="batch_norm_statistics",
        parameters=("*fp32",) * 3 + (batches, channels, size, EPS),
        configs=(config(4, 1, BLOCK=1024), config(8, 1, BLOCK=4096)),
        grid=lambda meta: (channels,),
        make=make,
        num_bytes=4 * batches * channels * size,
    )


def _instance_norm(batches: int, size: int, channels: int) -> Case:
    def make() -> Problem:
        x, out = random(batches, size, channels), empty(batches, size, channels)
        wide = x.double()
        expected = (wide - wide.mean(1, keepdim=True)) * (wide.var(1, correction=0, keepdim=True) + EPS).rsqrt()
        return Problem((x, out), (Output(out, expected, 5e-3),))

    return _case(
        f"instance norm NHWC {batches}x{size}x{channels}",
        kernel="instance_norm_last",
        parameters=("*bf16", "*bf16", size, channels, EPS),
        configs=(config(4, 1, ROWS=32, BLOCK=64), config(8, 1, ROWS=64, BLOCK=32), config(4, 1, ROWS=64, BLOCK=16)),
        grid=lambda meta: (batches, cdiv(channels, meta["BLOCK"])),
        make=make,
        num_bytes=6 * batches * size * channels,
    )


def _softmax_middle(m: int, n: int, k: int, block: int) -> Case:
    def make() -> Problem:
        x, out = random(m, n, k), empty(m, n, k)
        return Problem((x, out), (Output(out, x.double().softmax(1), 5e-3),), Vendor("torch", lambda: x.softmax(1)))

    return _case(
        f"softmax of the middle {m}x{n}x{k}",
        kernel="softmax_middle",
        parameters=("*bf16", "*bf16", n, k),
        configs=tuple(config(w, 1, TILE_N=block, TILE_K=tile) for w, tile in ((4, 16), (4, 64), (8, 128))),
        grid=lambda meta: (cdiv(k, meta["TILE_K"]), m),
        make=make,
        num_bytes=4 * m * n * k,
    )


def _variance(rows: int, columns: int) -> Case:
    def make() -> Problem:
        x, mean, var = random(rows, columns), empty(columns, dtype="float32"), empty(columns, dtype="float32")
        wide = x.double()
        outputs = (Output(mean, wide.mean(0), 1e-4), Output(var, wide.var(0, correction=0), 1e-4))
        return Problem((x, mean, var), outputs)

    return _case(
        f"variance of columns {rows}x{columns}",
        kernel="variance_axis0",
        parameters=("*bf16", "*fp32", "*fp32", rows, columns),
        configs=(config(4, 1, ROWS=32, BLOCK=64), config(8, 1, ROWS=64, BLOCK=32), config(4, 1, ROWS=128, BLOCK=16)),
        grid=lambda meta: (cdiv(columns, meta["BLOCK"]),),
        make=make,
        num_bytes=2 * rows * columns,
    )


def _swiglu_quantise(rows: int, columns: int, block: int) -> Case:
    def make() -> Problem:
        import torch  # deferred: as above

        x, out, scales = (
            random(rows, 2 * columns),
            empty(rows, columns, dtype="float8_e4m3fn"),
            empty(rows, columns // 128, dtype="float32"),
        )
        gate, up = x.double().chunk(2, 1)
        y = (gate * gate.sigmoid() * up).view(rows, -1, 128)
        exact = y.abs().amax(2) / 448.0
        expected = (y / exact[..., None]).float().to(torch.float8_e4m3fn).float().view(rows, columns)
        return Problem((x, out, scales), (Output(out, expected, 1e-2), Output(scales, exact, 1e-5)))

    return _case(
        f"swiglu, quantise {rows}x{columns}",
        kernel="swiglu_quantise",
        parameters=("*bf16", "*fp8e4nv", "*fp32", columns),
        configs=(config(4, 1, BLOCK=block), config(8, 1, BLOCK=block)),
        grid=lambda meta: (rows, columns // meta["BLOCK"]),
        make=make,
        num_bytes=5 * rows * columns,
    )
