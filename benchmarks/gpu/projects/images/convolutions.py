"""Convolutions, pooling and resizing."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator

from benchmarks.gpu.case import Case, Output, Problem, Vendor, cdiv
from benchmarks.gpu.everyday.declare import case, config, empty, random

_case = functools.partial(case, "images", source="projects/images/convolutions_kernels")


def cases(is_small: bool = False) -> Iterator[Case]:
    small = is_small
    yield _max_pool(*(3, 9, 11) if small else (64 * 64, 112, 112))
    yield _conv2d(*(2, 9, 10, 16, 32, 3, 2) if small else (32, 56, 56, 128, 128, 3, 1))
    yield _conv2d(*(2, 9, 10, 16, 32, 1, 1) if small else (32, 14, 14, 512, 512, 3, 2))
    yield _conv1d(*(2, 40, 16, 32, 3) if small else (16, 3000, 768, 768, 3))
    yield _conv_transpose2d(*(5, 7, 16, 24) if small else (192, 192, 128, 128))
    yield _resize(*(3, 9, 11, 14, 20) if small else (64 * 3, 512, 512, 1024, 1024))


def _max_pool(images: int, height: int, width: int) -> Case:
    oh, ow = (height - 1) // 2 + 1, (width - 1) // 2 + 1

    def make() -> Problem:
        from torch.nn.functional import max_pool2d  # deferred: --precompile needs none

        x, out = random(images, height, width), empty(images, oh, ow)
        vendor = Vendor("torch", lambda: max_pool2d(x[None], 3, 2, 1))
        return Problem((x, out), (Output(out, max_pool2d(x.float()[None], 3, 2, 1)[0], 0.0),), vendor)

    return _case(
        f"max pool {images}x{height}x{width}",
        kernel="max_pool",
        parameters=("*bf16", "*bf16", 1, height, width, oh, ow),
        configs=tuple(config(4, 1, KERNEL=3, STRIDE=2, PAD=1, BLOCK=block) for block in (512, 1024)),
        grid=lambda meta: (images, cdiv(oh * ow, meta["BLOCK"])),
        make=make,
        num_bytes=2 * images * (height * width + oh * ow),
    )


def _conv2d(batches: int, height: int, width: int, channels: int, outs: int, taps: int, stride: int) -> Case:
    pad = taps // 2
    oh, ow = (height + 2 * pad - taps) // stride + 1, (width + 2 * pad - taps) // stride + 1

    def make() -> Problem:
        import torch  # deferred: as above

        x = random(batches, height, width, channels, dtype="float16")
        w = random(outs, taps, taps, channels, dtype="float16", scale=0.1)
        out = empty(batches, oh, ow, outs, dtype="float16")
        wide = torch.nn.functional.pad(x.double(), (0, 0, pad, pad, pad, pad))
        expected = torch.zeros(batches, oh, ow, outs, dtype=torch.float64)
        for dy, dx in itertools.product(range(taps), range(taps)):
            here = wide[:, dy : dy + stride * oh : stride, dx : dx + stride * ow : stride][:, :oh, :ow]
            expected += here @ w[:, dy, dx].double().T
        views, options = (x.permute(0, 3, 1, 2), w.permute(0, 3, 1, 2)), {"stride": stride, "padding": pad}
        vendor = Vendor("cuDNN", lambda: torch.nn.functional.conv2d(*views, **options))
        return Problem((x, w, out), (Output(out, expected),), vendor)

    tiles = (
        ((32, 32, 16, 4, 2),) if channels < 64 else ((128, 128, 64, 8, 3), (128, 128, 32, 4, 4), (64, 128, 64, 4, 3))
    )
    return _case(
        f"conv2d {batches}x{height}x{width}x{channels} to {outs}, {taps}x{taps} by {stride}",
        kernel="conv2d_nhwc",
        parameters=("*fp16",) * 3 + (batches, height, width, channels, outs, oh, ow),
        configs=tuple(
            config(wr, s, R=taps, S=taps, STRIDE=stride, PAD=pad, BLOCK_M=bm, BLOCK_N=bn, BLOCK_K=bk)
            for bm, bn, bk, wr, s in tiles
        ),
        grid=lambda meta: (cdiv(batches * oh * ow, meta["BLOCK_M"]), cdiv(outs, meta["BLOCK_N"])),
        make=make,
        num_bytes=2 * batches * (height * width * channels + oh * ow * outs),
        operations=2 * batches * oh * ow * outs * channels * taps * taps,
    )


def _conv1d(batches: int, length: int, channels: int, outs: int, taps: int) -> Case:
    def make() -> Problem:
        import torch  # deferred: as above

        x, w = random(batches, length, channels), random(taps, channels, outs, scale=0.1)
        out = empty(batches, length, outs)
        wide = torch.nn.functional.pad(x.double(), (0, 0, taps // 2, taps // 2))
        exact = sum(wide[:, tap : tap + length] @ w[tap].double() for tap in range(taps))
        return Problem((x, w, out), (Output(out, exact),))

    tiles = ((32, 32, 16, 4, 2),) if channels < 64 else ((128, 128, 64, 8, 3), (64, 128, 64, 4, 3))
    return _case(
        f"conv1d {batches}x{length}x{channels} to {outs}, {taps}",
        kernel="conv1d",
        parameters=("*bf16",) * 3 + (length, channels, outs),
        configs=tuple(config(w, s, K=taps, BLOCK_T=bt, BLOCK_N=bn, BLOCK_C=bc) for bt, bn, bc, w, s in tiles),
        grid=lambda meta: (cdiv(length, meta["BLOCK_T"]), cdiv(outs, meta["BLOCK_N"]), batches),
        make=make,
        num_bytes=2 * batches * length * (channels + outs),
        operations=2 * batches * length * channels * outs * taps,
    )


def _conv_transpose2d(height: int, width: int, channels: int, outs: int) -> Case:
    def make() -> Problem:
        import torch  # deferred: as above

        x = random(height, width, channels, dtype="float16")
        w = random(4, 4, channels, outs, dtype="float16", scale=0.1)
        bias, out = random(outs, dtype="float32"), empty(2 * height, 2 * width, outs, dtype="float16")
        views, options = (x.permute(2, 0, 1)[None], w.permute(2, 3, 0, 1)), {"stride": 2, "padding": 1}
        transposed = torch.nn.functional.conv_transpose2d
        expected = transposed(*(view.float() for view in views), bias, **options)[0].permute(1, 2, 0)
        vendor = Vendor("cuDNN", lambda: transposed(*views, bias.half(), **options))
        return Problem((x, w, bias, out), (Output(out, expected),), vendor)

    tiles = ((32, 32, 4),) if channels < 64 else ((128, 128, 8), (128, 128, 4), (64, 64, 4))
    return _case(
        f"conv transpose {height}x{width}x{channels} to {outs}, 4x4 by 2",
        kernel="conv_transpose2d",
        parameters=("*fp16", "*fp16", "*fp32", "*fp16", height, width, outs),
        configs=tuple(config(w, 1, C=channels, BLOCK_M=bm, BLOCK_N=bn) for bm, bn, w in tiles),
        grid=lambda meta: (cdiv(height * width, meta["BLOCK_M"]), cdiv(outs, meta["BLOCK_N"]), 4),
        make=make,
        num_bytes=2 * height * width * (channels + 4 * outs),
        operations=2 * 4 * height * width * outs * channels * 4,
    )


def _resize(images: int, height: int, width: int, oh: int, ow: int) -> Case:
    def make() -> Problem:
        from torch.nn.functional import interpolate  # deferred: as above

        x, out = random(images, height, width), empty(images, oh, ow)
        expected = interpolate(x.double()[None], (oh, ow), mode="bilinear")[0]
        vendor = Vendor("torch", lambda: interpolate(x[None], (oh, ow), mode="bilinear"))
        return Problem((x, out), (Output(out, expected),), vendor)

    return _case(
        f"resize {images}x{height}x{width} to {oh}x{ow}",
        kernel="resize_bilinear",
        parameters=("*bf16", "*bf16", height, width, oh, ow, height / oh, width / ow),
        configs=(config(4, 1, BLOCK=512), config(8, 1, BLOCK=2048)),
        grid=lambda meta: (images, cdiv(oh * ow, meta["BLOCK"])),
        make=make,
        num_bytes=2 * images * (height * width + oh * ow),
    )
