"""Norms over groups, batches and images, softmax of a middle axis, losses, bags, sparse rows, sorts, scans."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from benchmarks.gpu.case import Case, Output, Problem, Vendor, cdiv
from benchmarks.gpu.everyday.declare import case, config, empty, random

_case = functools.partial(case, "reductions", source="projects/reductions_kernels")
EPS = 1e-5


def cases(is_small: bool = False) -> Iterator[Case]:
    small = is_small
    yield _layer_norm_residual(*(5, 100, 128) if small else (16384, 4096, 4096))
    yield _group_norm(*(2, 6, 2, 50) if small else (16, 512, 32, 128 * 128))
    yield _batch_norm(*(3, 5, 70) if small else (64, 256, 56 * 56))
    yield _instance_norm(*(2, 60, 20) if small else (32, 128 * 128, 128))
    yield _softmax_middle(*(2, 20, 30, 32) if small else (256, 128, 4096, 128))
    yield _kl(*(3, 300, 128) if small else (4096, 32000, 8192))
    yield _jensen_shannon(*(3, 300, 128) if small else (4096, 32000, 8192))
    yield _smooth_cross_entropy(*(5, 700, 256) if small else (4096, 128256, 32768))
    yield _embedding_bag(*(20, 50, 40) if small else (16384, 100000, 512))
    yield _scatter_add(*(50, 20, 30) if small else (131072, 20000, 256))
    yield _sparse(*(30, 40, 50) if small else (65536, 65536, 128))
    yield _argsort(*(8, 32) if small else (65536, 256))
    yield _cumulative_max(*(5, 100, 128) if small else (16384, 2048, 2048))
    yield _segmented_scan(*(5, 100, 128) if small else (16384, 4096, 4096))
    yield _variance(*(70, 50) if small else (8192, 16384))
    yield _radix_counts(3000 if small else 2**26)
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


def _kl(rows: int, columns: int, block: int) -> Case:
    def make() -> Problem:
        pred, truth = (random(rows, columns, dtype="float32") for _ in range(2))
        pred, truth, loss = pred.log_softmax(1), truth.softmax(1), empty(rows, dtype="float32")
        expected = (truth.double() * (truth.double().log() - pred.double())).sum(1)
        return Problem((pred, truth, loss), (Output(loss, expected, 1e-5),))

    return _case(
        f"KL divergence {rows}x{columns}",
        kernel="kl_divergence",
        parameters=("*fp32",) * 3 + (columns, 1e-10),
        configs=(config(16, 1, BLOCK=block), config(8, 1, BLOCK=block // 2)),
        grid=lambda meta: (rows,),
        make=make,
        num_bytes=8 * rows * columns,
    )


def _jensen_shannon(rows: int, columns: int, block: int) -> Case:
    beta, scale = 0.3, 1 / rows

    def make() -> Problem:
        import torch  # deferred: as above

        x, y = (random(rows, columns, dtype="float32").log_softmax(1).to(torch.bfloat16) for _ in range(2))
        loss, dx = empty(rows, columns, dtype="float32"), empty(rows, columns)
        q, p = x.double().exp(), y.double().exp()
        log_m = (beta * p + (1 - beta) * q).log()
        of_q = (1 - beta) * q * (x.double() - log_m) * scale
        exact = beta * p * (y.double() - log_m) * scale + of_q
        return Problem((x, y, loss, dx), (Output(loss, exact, 1e-4), Output(dx, of_q, 5e-3)))

    return _case(
        f"jensen shannon {rows}x{columns}",
        kernel="jensen_shannon",
        parameters=("*bf16", "*bf16", "*fp32", "*bf16", beta, scale, columns),
        configs=(config(16, 1, BLOCK=block), config(8, 1, BLOCK=block // 4)),
        grid=lambda meta: (rows,),
        make=make,
        num_bytes=10 * rows * columns,
    )


def _smooth_cross_entropy(rows: int, columns: int, block: int) -> Case:
    smoothing, z_weight = 0.1, 1e-4

    def make() -> Problem:
        import torch  # deferred: as above

        logits, labels = random(rows, columns), torch.randint(columns, (rows,))
        labels[::7] = -100
        loss, grad = empty(rows, dtype="float32"), empty(rows, columns)
        wide = logits.double().requires_grad_()
        each = torch.nn.functional.cross_entropy(wide, labels, reduction="none", label_smoothing=smoothing)
        each = (each + torch.where(labels == -100, 0.0, z_weight * wide.logsumexp(1).square())) / rows
        exact = torch.autograd.grad(each.sum(), wide)[0]
        outputs = (Output(loss, each.detach(), 1e-4), Output(grad, exact, 5e-3))
        return Problem((logits, labels, loss, grad), outputs)

    return _case(
        f"smooth cross entropy {rows}x{columns}",
        kernel="smooth_cross_entropy",
        parameters=("*bf16", "*i64", "*fp32", "*bf16", columns, columns, smoothing, z_weight, rows, -100),
        configs=(config(32, 4, BLOCK=block), config(8, 4, BLOCK=block // 8)),
        grid=lambda meta: (rows,),
        make=make,
        num_bytes=4 * rows * columns,
    )


def _embedding_bag(bags: int, rows: int, columns: int) -> Case:
    def make() -> Problem:
        import torch  # deferred: as above

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
        import torch  # deferred: as above

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
