"""Losses of distributions, with their gradients."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from benchmarks.gpu.case import Case, Output, Problem
from benchmarks.gpu.everyday.declare import case, config, empty, random

_case = functools.partial(case, "reductions", source="projects/reductions/losses_kernels")


def cases(is_small: bool = False) -> Iterator[Case]:
    small = is_small
    yield _kl(*(3, 300, 128) if small else (4096, 32000, 8192))
    yield _jensen_shannon(*(3, 300, 128) if small else (4096, 32000, 8192))
    yield _smooth_cross_entropy(*(5, 700, 256) if small else (4096, 128256, 32768))


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
        import torch  # deferred: --precompile needs none

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
