"""Convolutions, pooling, resizing, stencils, n bodies, random numbers, permutations of axes, concatenation."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from typing import Any

from benchmarks.gpu.case import Case, Output, Problem, Vendor, cdiv
from benchmarks.gpu.everyday.declare import case, config, empty, random
from benchmarks.gpu.everyday.philox import uniforms

_case = functools.partial(case, "images", source="projects/images_kernels")


def cases(is_small: bool = False) -> Iterator[Case]:
    small = is_small
    yield _max_pool(*(3, 9, 11) if small else (64 * 64, 112, 112))
    yield _conv2d(*(2, 9, 10, 16, 32, 3, 2) if small else (32, 56, 56, 128, 128, 3, 1))
    yield _conv2d(*(2, 9, 10, 16, 32, 1, 1) if small else (32, 14, 14, 512, 512, 3, 2))
    yield _conv1d(*(2, 40, 16, 32, 3) if small else (16, 3000, 768, 768, 3))
    yield _resize(*(3, 9, 11, 14, 20) if small else (64 * 3, 512, 512, 1024, 1024))
    yield _heat(*(30, 50) if small else (8192, 8192))
    yield _laplace(*(6, 10, 40) if small else (512, 512, 512))
    yield _sobel(*(9, 100) if small else (16384, 16384))
    yield _mandelbrot(*(20, 15, 50) if small else (2048, 2048, 500))
    yield _n_body(100 if small else 32768)
    yield _monte_carlo(*(3, 2) if small else (512, 1024))
    yield _permute(*(2, 20, 6, 16) if small else (16, 4096, 32, 128))
    yield _to_nhwc(*(2, 20, 50) if small else (64, 256, 56 * 56))
    yield _concatenate(*(5, 70, 30) if small else (16384, 3000, 1096))
    yield _life(*(20, 30) if small else (16384, 16384))


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


def _heat(height: int, width: int) -> Case:
    def make() -> Problem:
        from torch.nn.functional import pad  # deferred: as above

        x, out = random(height, width, dtype="float32"), empty(height, width, dtype="float32")
        p = pad(x.double(), (1, 1, 1, 1))
        around = p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:]
        return Problem((x, out), (Output(out, x.double() + 0.1 * (around - 4 * x.double())),))

    return _case(
        f"heat {height}x{width}",
        kernel="heat_2d",
        parameters=("*fp32", "*fp32", height, width, 0.1),
        configs=tuple(config(4, 1, BLOCK_Y=by, BLOCK_X=bx) for by, bx in ((16, 64), (4, 256), (32, 32))),
        grid=lambda meta: (cdiv(height, meta["BLOCK_Y"]), cdiv(width, meta["BLOCK_X"])),
        make=make,
        num_bytes=8 * height * width,
    )


def _laplace(depth: int, height: int, width: int) -> Case:
    def make() -> Problem:
        import torch  # deferred: as above

        x, out = random(depth, height, width, dtype="float32"), empty(depth, height, width, dtype="float32")
        w, inner = x.double(), slice(1, -1)
        expected = torch.zeros_like(w)
        total = -6 * w[inner, inner, inner] + w[:-2, inner, inner] + w[2:, inner, inner]
        total += w[inner, :-2, inner] + w[inner, 2:, inner] + w[inner, inner, :-2] + w[inner, inner, 2:]
        expected[inner, inner, inner] = total
        return Problem((x, out), (Output(out, expected),))

    return _case(
        f"laplace {depth}x{height}x{width}",
        kernel="laplace_3d",
        parameters=("*fp32", "*fp32", depth, height, width),
        configs=tuple(
            config(4, 1, BLOCK_Z=z, BLOCK_Y=y, BLOCK_X=x) for z, y, x in ((4, 4, 64), (1, 8, 128), (8, 8, 8))
        ),
        grid=lambda meta: (cdiv(depth, meta["BLOCK_Z"]), cdiv(height, meta["BLOCK_Y"]), cdiv(width, meta["BLOCK_X"])),
        make=make,
        num_bytes=8 * depth * height * width,
    )


def _sobel(height: int, width: int) -> Case:
    def make() -> Problem:
        import torch  # deferred: as above

        x, out = torch.randint(256, (height, width), dtype=torch.uint8), empty(height, width, dtype="uint8")
        p = torch.nn.functional.pad(x.float(), (1, 1, 1, 1))
        smooth_y = p[:-2] + 2 * p[1:-1] + p[2:]
        smooth_x = p[:, :-2] + 2 * p[:, 1:-1] + p[:, 2:]
        gx, gy = smooth_y[:, 2:] - smooth_y[:, :-2], smooth_x[2:] - smooth_x[:-2]
        expected = (gx.square() + gy.square()).sqrt().clamp(max=255).to(torch.uint8)
        return Problem((x, out), (Output(out, expected, 1e-3),))

    return _case(
        f"sobel {height}x{width}",
        kernel="sobel",
        parameters=("*u8", "*u8", height, width),
        configs=tuple(config(4, 1, BLOCK=block) for block in (512, 1024, 2048)),
        grid=lambda meta: (height, cdiv(width, meta["BLOCK"])),
        make=make,
        num_bytes=2 * height * width,
    )


def _mandelbrot(width: int, height: int, steps: int) -> Case:
    x0, y0, dx, dy = -2.0, -1.25, 2.5 / width, 2.5 / height

    def make() -> Problem:
        import torch  # deferred: as above

        out = empty(height, width, dtype="int32")
        i = torch.arange(width * height)
        cx, cy = x0 + (i % width).float() * dx, y0 + (i // width).float() * dy
        cx, cy = cx.double(), cy.double()
        x, y, count = torch.zeros_like(cx), torch.zeros_like(cx), torch.zeros_like(i)
        for _ in range(steps):
            inside = x * x + y * y <= 4.0
            x, y = torch.where(inside, x * x - y * y + cx, x), torch.where(inside, 2 * x * y + cy, y)
            count += inside
        return Problem((out,), (Output(out, count.view(height, width), 5e-2),))

    return _case(
        f"mandelbrot {width}x{height}",
        kernel="mandelbrot",
        parameters=("*i32", width, height, x0, y0, dx, dy),
        configs=(config(1, 1, STEPS=steps, BLOCK=128), config(4, 1, STEPS=steps, BLOCK=1024)),
        grid=lambda meta: (cdiv(width * height, meta["BLOCK"]),),
        make=make,
        num_bytes=4 * width * height,
    )


def _n_body(n: int) -> Case:
    def make() -> Problem:
        import torch  # deferred: as above

        x, y, z, m = (torch.rand(n) for _ in range(4))
        outs = tuple(empty(n, dtype="float32") for _ in range(3))
        place, wide_m = torch.stack([x, y, z], 1).double(), m.double()
        expected = torch.empty(n, 3, dtype=torch.float64)
        for start in range(0, n, 1024):
            d = place[None] - place[start : start + 1024, None]
            w = wide_m * (d.square().sum(2) + 0.01) ** -1.5
            expected[start : start + 1024] = torch.einsum("ij,ijc->ic", w, d)
        outputs = tuple(Output(out, expected[:, axis], 1e-4) for axis, out in enumerate(outs))
        return Problem((x, y, z, m, *outs), outputs)

    return _case(
        f"n body {n}",
        kernel="n_body",
        parameters=("*fp32",) * 7 + (n, 0.01),
        configs=tuple(config(w, 2, BLOCK_I=i, BLOCK_J=j) for w, i, j in ((4, 128, 32), (4, 32, 128), (4, 64, 64))),
        grid=lambda meta: (cdiv(n, meta["BLOCK_I"]),),
        make=make,
        num_bytes=28 * n,
    )


def _monte_carlo(programs: int, steps: int) -> Case:
    block = 1024

    def make() -> Problem:
        out = empty(programs, dtype="int32")
        return Problem((out,), (Output(out, _points_inside(programs, steps * block), 1e-3),))

    return _case(
        f"monte carlo {programs}x{steps}",
        kernel="monte_carlo",
        parameters=("*i32", 7),
        configs=(config(4, 1, STEPS=steps, BLOCK=block), config(8, 1, STEPS=steps, BLOCK=block)),
        grid=lambda meta: (programs,),
        make=make,
        num_bytes=4 * programs,
        operations=2e-3 * programs * steps * block,
    )


def _points_inside(programs: int, each: int) -> Any:
    import torch  # deferred: as above

    counts = []
    for program in range(programs):
        a, b, c, d = uniforms(7, program * each, each)
        counts.append((a * a + b * b < 1).sum() + (c * c + d * d < 1).sum())
    return torch.stack(counts)


def _permute(outer: int, b: int, c: int, d: int) -> Case:
    def make() -> Problem:
        x, out = random(outer, b, c, d), empty(outer, c, b, d)
        vendor = Vendor("torch", lambda: x.transpose(1, 2).contiguous())
        return Problem((x, out), (Output(out, x.transpose(1, 2), 0.0),), vendor)

    return _case(
        f"permute {outer}x{b}x{c}x{d}",
        kernel="permute_0213",
        parameters=("*bf16", "*bf16", b, c),
        configs=tuple(config(4, 1, BLOCK_B=bb, BLOCK_C=bc, D=d) for bb, bc in ((8, 8), (16, 4), (1, 16))),
        grid=lambda meta: (cdiv(b, meta["BLOCK_B"]), cdiv(c, meta["BLOCK_C"]), outer),
        make=make,
        num_bytes=4 * outer * b * c * d,
    )


def _to_nhwc(batches: int, channels: int, size: int) -> Case:
    def make() -> Problem:
        x, out = random(batches, channels, size, dtype="float16"), empty(batches, size, channels, dtype="float16")
        vendor = Vendor("torch", lambda: x.transpose(1, 2).contiguous())
        return Problem((x, out), (Output(out, x.transpose(1, 2), 0.0),), vendor)

    return _case(
        f"NCHW to NHWC {batches}x{channels}x{size}",
        kernel="nchw_to_nhwc",
        parameters=("*fp16", "*fp16", channels, size),
        configs=tuple(config(4, 1, BLOCK_C=bc, BLOCK_S=bs) for bc, bs in ((64, 64), (32, 64), (128, 32))),
        grid=lambda meta: (cdiv(channels, meta["BLOCK_C"]), cdiv(size, meta["BLOCK_S"]), batches),
        make=make,
        num_bytes=4 * batches * channels * size,
    )


def _concatenate(rows: int, a: int, b: int) -> Case:
    def make() -> Problem:
        import torch  # deferred: as above

        x, y, out = random(rows, a), random(rows, b), empty(rows, a + b)
        return Problem(
            (x, y, out), (Output(out, torch.cat([x, y], 1), 0.0),), Vendor("torch", lambda: torch.cat([x, y], 1))
        )

    return _case(
        f"concatenate {rows}x{a}+{b}",
        kernel="concatenate",
        parameters=("*bf16",) * 3 + (a, b),
        configs=(config(4, 1, BLOCK=1024), config(4, 1, BLOCK=2048)),
        grid=lambda meta: (rows, cdiv(a + b, meta["BLOCK"])),
        make=make,
        num_bytes=4 * rows * (a + b),
    )


def _life(height: int, width: int) -> Case:
    def make() -> Problem:
        import torch  # deferred: as above

        x, out = torch.randint(2, (height, width), dtype=torch.int8), empty(height, width, dtype="int8")
        shifts = [(dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if dy or dx]
        count = sum(x.roll(shift, (0, 1)) for shift in shifts)
        return Problem((x, out), (Output(out, ((count == 3) | ((count == 2) & (x == 1))).to(torch.int8), 0.0),))

    return _case(
        f"life {height}x{width}",
        kernel="life",
        parameters=("*i8", "*i8", height, width),
        configs=tuple(config(4, 1, BLOCK_Y=by, BLOCK_X=bx) for by, bx in ((8, 256), (1, 1024), (32, 64))),
        grid=lambda meta: (cdiv(height, meta["BLOCK_Y"]), cdiv(width, meta["BLOCK_X"])),
        make=make,
        num_bytes=2 * height * width,
    )
