"""Grids whose elements are computed of their neighbours."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from benchmarks.gpu.case import Case, Output, Problem, cdiv
from benchmarks.gpu.everyday.declare import case, config, empty, random

_case = functools.partial(case, "images", source="projects/images/stencils_kernels")


def cases(is_small: bool = False) -> Iterator[Case]:
    small = is_small
    yield _heat(*(30, 50) if small else (8192, 8192))
    yield _laplace(*(6, 10, 40) if small else (512, 512, 512))
    yield _sobel(*(9, 100) if small else (16384, 16384))
    yield _life(*(20, 30) if small else (16384, 16384))


def _heat(height: int, width: int) -> Case:
    def make() -> Problem:
        from torch.nn.functional import pad  # deferred: --precompile needs none

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
