"""Elements that change their places only: axes permuted, arrays concatenated."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from benchmarks.gpu.case import Case, Output, Problem, Vendor, cdiv
from benchmarks.gpu.everyday.declare import case, config, empty, random

_case = functools.partial(case, "images", source="projects/images/permutations_kernels")


def cases(is_small: bool = False) -> Iterator[Case]:
    small = is_small
    yield _permute(*(2, 20, 6, 16) if small else (16, 4096, 32, 128))
    yield _to_nhwc(*(2, 20, 50) if small else (64, 256, 56 * 56))
    yield _concatenate(*(5, 70, 30) if small else (16384, 3000, 1096))


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
        import torch  # deferred: --precompile needs none

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
