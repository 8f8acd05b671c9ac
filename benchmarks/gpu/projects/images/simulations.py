"""Loops until all is done, n bodies, random numbers."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from benchmarks.gpu.case import Case, Output, Problem, cdiv
from benchmarks.gpu.everyday.declare import case, config, empty
from benchmarks.gpu.everyday.philox import uniforms

_case = functools.partial(case, "images", source="projects/images/simulations_kernels")


def cases(is_small: bool = False) -> Iterator[Case]:
    small = is_small
    yield _mandelbrot(*(20, 15, 50) if small else (2048, 2048, 500))
    yield _n_body(100 if small else 32768)
    yield _monte_carlo(*(3, 2) if small else (512, 1024))


def _mandelbrot(width: int, height: int, steps: int) -> Case:
    x0, y0, dx, dy = -2.0, -1.25, 2.5 / width, 2.5 / height

    def make() -> Problem:
        import torch  # deferred: --precompile needs none

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
