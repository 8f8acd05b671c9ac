"""The next token: a threshold for top p by bisection, Gumbel's maximum."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from benchmarks.gpu.case import Case, Output, Problem
from benchmarks.gpu.everyday.declare import case, config, empty, random

_case = functools.partial(case, "serving", source="projects/serving/sampling_kernels")


def cases(is_small: bool = False) -> Iterator[Case]:
    small = is_small
    yield _top_p(*(3, 700, 256) if small else (512, 128256, 8192))
    yield _gumbel(*(3, 700, 256) if small else (1024, 128256, 4096))


def _top_p(rows: int, columns: int, block: int) -> Case:
    def make() -> Problem:
        logits, out = random(rows, columns), empty(rows, dtype="float32")
        p = logits.double().softmax(1)
        order = p.sort(1, descending=True)[0]
        place = (order.cumsum(1) < 0.9).sum(1)
        return Problem((logits, out), (Output(out, order.gather(1, place[:, None])[:, 0], 3e-2),))

    return _case(
        f"top p {rows}x{columns}",
        kernel="top_p_threshold",
        parameters=("*bf16", "*fp32", columns, columns, 0.9),
        configs=(config(8, 1, STEPS=16, BLOCK=block), config(16, 1, STEPS=16, BLOCK=block)),
        grid=lambda meta: (rows,),
        make=make,
        num_bytes=2 * rows * columns * 18,
    )


def _gumbel(rows: int, columns: int, block: int) -> Case:
    def make() -> Problem:
        import torch  # deferred: --precompile needs none

        logits, out = random(rows, columns, dtype="float32"), empty(rows, dtype="int32")
        noise = torch.empty(rows, columns).exponential_()
        expected = (logits.double() / 0.5 - noise.double().log()).argmax(1)
        return Problem((logits, out, noise), (Output(out, expected, 0.0),))

    return _case(
        f"gumbel sample {rows}x{columns}",
        kernel="gumbel_sample",
        parameters=("*fp32", "*i32", "*fp32", columns, columns, 0.5),
        configs=(config(4, 1, BLOCK=block // 4), config(8, 1, BLOCK=block)),
        grid=lambda meta: (rows,),
        make=make,
        num_bytes=8 * rows * columns,
    )
