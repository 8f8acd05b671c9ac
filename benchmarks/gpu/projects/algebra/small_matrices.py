"""Many small matrices: Cholesky's factors, Fourier transforms, exponentials."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from benchmarks.gpu.case import Case, Output, Problem, Vendor, cdiv
from benchmarks.gpu.everyday.declare import case, config, empty, random

_case = functools.partial(case, "algebra", source="projects/algebra/small_matrices_kernels")


def cases(is_small: bool = False) -> Iterator[Case]:
    small = is_small
    yield _cholesky(*(3, 16) if small else (65536, 16))
    yield _cholesky(*(2, 32) if small else (32768, 32))
    yield _dft(*(70, 16) if small else (1048576, 64))
    yield _exponential(*(2, 16) if small else (32768, 32))


def _cholesky(count: int, n: int) -> Case:
    def make() -> Problem:
        import torch  # deferred: --precompile needs none

        x = random(count, n, n, dtype="float32")
        a = x @ x.transpose(1, 2) + n * torch.eye(n)
        out = empty(count, n, n, dtype="float32")
        return Problem((a, out), (Output(out, torch.linalg.cholesky(a.double()), 1e-4),))

    return _case(
        f"cholesky {count} of {n}x{n}",
        kernel="cholesky_16",
        parameters=("*fp32", "*fp32", count),
        configs=tuple(config(w, 1, N=n) for w in (1, 2, 4)),
        grid=lambda meta: (count,),
        make=make,
        num_bytes=8 * count * n * n,
    )


def _dft(rows: int, n: int) -> Case:
    def make() -> Problem:
        import torch  # deferred: as above

        re, im = random(rows, n, dtype="float32"), random(rows, n, dtype="float32")
        angle = -2 * torch.pi * torch.outer(torch.arange(n).double(), torch.arange(n).double()) / n
        out_re, out_im = empty(rows, n, dtype="float32"), empty(rows, n, dtype="float32")
        exact = torch.fft.fft(torch.complex(re.double(), im.double()))
        outputs = (Output(out_re, exact.real, 2e-3), Output(out_im, exact.imag, 2e-3))
        vendor = Vendor("cuFFT", lambda: torch.fft.fft(torch.complex(re, im)))
        return Problem((re, im, angle.cos().float(), angle.sin().float(), out_re, out_im), outputs, vendor)

    tiles = ((16, 4),) if n < 64 else ((64, 4), (128, 8), (32, 4))
    return _case(
        f"dft {rows}x{n}",
        kernel="dft_64",
        parameters=("*fp32",) * 6 + (rows,),
        configs=tuple(config(w, 1, N=n, BLOCK=block) for block, w in tiles),
        grid=lambda meta: (cdiv(rows, meta["BLOCK"]),),
        make=make,
        num_bytes=16 * rows * n,
    )


def _exponential(count: int, n: int) -> Case:
    def make() -> Problem:
        import torch  # deferred: as above

        a, out = random(count, n, n, dtype="float32", scale=0.1), empty(count, n, n, dtype="float32")
        return Problem((a, out), (Output(out, torch.linalg.matrix_exp(a.double()), 1e-5),))

    return _case(
        f"matrix exponential {count} of {n}x{n}",
        kernel="matrix_exponential",
        parameters=("*fp32", "*fp32"),
        configs=tuple(config(w, 1, N=n, TERMS=12) for w in (1, 4)),
        grid=lambda meta: (count,),
        make=make,
        num_bytes=8 * count * n * n,
        operations=2 * count * n**3 * 11 * 495 / 67,
        multiplied="fp32",
    )
