"""Activations forward and backward, rotary embeddings, dropout, embeddings, AdamW."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.gpu.case import Case, Config, Output, Problem, Vendor, cdiv
from benchmarks.gpu.everyday.declare import case, config, empty, random
from benchmarks.gpu.everyday.philox import uniform

SEED = 20261122
P = 0.1


def cases(is_small: bool = False) -> Iterator[Case]:
    shape = (13, 300) if is_small else (16384, 11008)
    yield _swiglu(*shape)
    yield _swiglu_backward(*shape)
    yield _geglu(*shape)
    yield _geglu_backward(*shape)
    yield _rope(*(7, 5, 16, 8) if is_small else (16384, 32, 64, 32))
    yield _dropout(1999 if is_small else 2**27)
    yield _embedding(*(29, 11, 300) if is_small else (32768, 128256, 4096))
    yield _embedding_backward(*(29, 11, 300) if is_small else (16384, 32000, 4096))
    yield _adamw(1999 if is_small else 2**26)


def _case(
    name: str,
    kernel: str,
    parameters: tuple[Any, ...],
    configs: tuple[Config, ...],
    grid: Callable[[dict[str, Any]], tuple[int, ...]],
    make: Callable[[], Problem],
    num_bytes: float,
) -> Case:
    return case(
        "pointwise", name, "everyday/pointwise_kernels", kernel, parameters, configs, grid, make, num_bytes=num_bytes
    )


def _blocks(*sizes: tuple[int, int]) -> tuple[Config, ...]:
    return tuple(config(warps, BLOCK=block) for block, warps in sizes)


def _swiglu(rows: int, columns: int) -> Case:
    n = rows * columns

    def make() -> Problem:
        from torch.nn.functional import silu  # deferred: --precompile needs none

        gate, up, out = random(rows, columns), random(rows, columns), empty(rows, columns)
        expected = silu(gate.double()) * up.double()
        return Problem((gate, up, out), (Output(out, expected),), Vendor("torch", lambda: silu(gate) * up))

    configs, parameters = _blocks((1024, 4), (2048, 8)), ("*bf16",) * 3 + (n,)
    return _case(
        f"swiglu {rows}x{columns}", "swiglu", parameters, configs, lambda meta: (cdiv(n, meta["BLOCK"]),), make, 6 * n
    )


def _swiglu_backward(rows: int, columns: int) -> Case:
    n = rows * columns

    def make() -> Problem:
        from torch.nn.functional import silu  # deferred: as above

        dout, gate, up = (random(rows, columns) for _ in range(3))
        wide = [tensor.double().requires_grad_() for tensor in (gate, up)]
        (silu(wide[0]) * wide[1]).backward(dout.double())
        dgate, dup = empty(rows, columns), empty(rows, columns)
        return Problem((dout, gate, up, dgate, dup), (Output(dgate, wide[0].grad), Output(dup, wide[1].grad)))

    configs, parameters = _blocks((1024, 4), (2048, 8)), ("*bf16",) * 5 + (n,)
    name = f"swiglu backward {rows}x{columns}"
    return _case(name, "swiglu_backward", parameters, configs, lambda meta: (cdiv(n, meta["BLOCK"]),), make, 10 * n)


def _gelu(x: Any) -> Any:
    from torch.nn.functional import gelu  # deferred: as above

    return gelu(x, approximate="tanh")


def _geglu(rows: int, columns: int) -> Case:
    def make() -> Problem:
        joined, out = random(rows, 2 * columns), empty(rows, columns)
        wide = joined.double()
        expected = _gelu(wide[:, :columns]) * wide[:, columns:]
        run = lambda: _gelu(joined[:, :columns]) * joined[:, columns:]  # noqa: E731
        return Problem((joined, out), (Output(out, expected),), Vendor("torch", run))

    return _joined_case("geglu", "geglu", ("*bf16",) * 2, rows, columns, make, 6)


def _geglu_backward(rows: int, columns: int) -> Case:
    def make() -> Problem:
        dout, joined = random(rows, columns), random(rows, 2 * columns)
        wide = joined.double().requires_grad_()
        (_gelu(wide[:, :columns]) * wide[:, columns:]).backward(dout.double())
        djoined = empty(rows, 2 * columns)
        return Problem((dout, joined, djoined), (Output(djoined, wide.grad),))

    return _joined_case("geglu backward", "geglu_backward", ("*bf16",) * 3, rows, columns, make, 10)


def _joined_case(
    name: str,
    kernel: str,
    arrays: tuple[str, ...],
    rows: int,
    columns: int,
    make: Callable[[], Problem],
    bytes_of_each: int,
) -> Case:
    configs = _blocks((1024, 4), (2048, 8))
    return _case(
        f"{name} {rows}x{columns}",
        kernel,
        (*arrays, columns),
        configs,
        lambda meta: (rows, cdiv(columns, meta["BLOCK"])),
        make,
        bytes_of_each * rows * columns,
    )


def _rope(tokens: int, heads: int, half: int, block: int) -> Case:
    def make() -> Problem:
        import torch  # deferred: as above

        x, out = random(tokens, heads, 2 * half), empty(tokens, heads, 2 * half)
        angles = torch.arange(tokens)[:, None] * 10000.0 ** (-torch.arange(half) / half)
        cos, sin = angles.cos(), angles.sin()
        left, right = x.double().chunk(2, -1)
        c, s = cos.double()[:, None], sin.double()[:, None]
        expected = torch.cat((left * c - right * s, right * c + left * s), -1)
        return Problem((x, cos, sin, out), (Output(out, expected),))

    configs = tuple(config(warps, HALF=half, HEADS=block) for warps in (4, 8))
    num_bytes = tokens * (heads * 2 * half * 4 + half * 8)
    parameters = ("*bf16", "*fp32", "*fp32", "*bf16", heads)
    return _case(
        f"rope {tokens}x{heads}x{2 * half}", "rope", parameters, configs, lambda meta: (tokens,), make, num_bytes
    )


def _dropout(n: int) -> Case:
    def make() -> Problem:
        import torch  # deferred: as above

        x, out = random(n), empty(n)
        kept = uniform(SEED, n) > torch.tensor(P, dtype=torch.float32)
        expected = torch.where(kept, x.double() / (1 - P), 0.0)
        vendor = Vendor("torch", lambda: torch.nn.functional.dropout(x, P))
        return Problem((x, out), (Output(out, expected),), vendor)

    configs, parameters = _blocks((1024, 4), (2048, 4)), ("*bf16", "*bf16", n, P, SEED)
    return _case(f"dropout {n}", "dropout", parameters, configs, lambda meta: (cdiv(n, meta["BLOCK"]),), make, 4 * n)


def _embedding(tokens: int, vocabulary: int, columns: int) -> Case:
    def make() -> Problem:
        import torch  # deferred: as above

        ids, table, out = torch.randint(vocabulary, (tokens,)), random(vocabulary, columns), empty(tokens, columns)
        vendor = Vendor("torch", lambda: torch.nn.functional.embedding(ids, table))
        return Problem((ids, table, out), (Output(out, table[ids], 0.0),), vendor)

    return _case(
        f"embedding {tokens}x{columns}",
        "embedding",
        ("*i64", "*bf16", "*bf16", columns),
        _blocks((1024, 4), (4096, 8)),
        lambda meta: (tokens, cdiv(columns, meta["BLOCK"])),
        make,
        4 * tokens * columns,
    )


def _embedding_backward(tokens: int, vocabulary: int, columns: int) -> Case:
    def make() -> Problem:
        import torch  # deferred: as above

        ids, dout = torch.randint(vocabulary, (tokens,)), random(tokens, columns)
        dtable = empty(vocabulary, columns, dtype="float32")
        expected = torch.zeros(vocabulary, columns, dtype=torch.float64).index_add_(0, ids, dout.double())
        vendor = Vendor("torch", lambda: torch.ops.aten.embedding_dense_backward(dout, ids, vocabulary, -1, False))
        return Problem((ids, dout, dtable), (Output(dtable, expected, 1e-5),), vendor, zeroed=(dtable,))

    configs = tuple(config(4, TOKENS=count, BLOCK=block) for count, block in ((4, 256), (1, 1024)))
    return _case(
        f"embedding backward {tokens}x{columns}",
        "embedding_backward",
        ("*i64", "*bf16", "*fp32", tokens, columns),
        configs,
        lambda meta: (cdiv(tokens, meta["TOKENS"]), cdiv(columns, meta["BLOCK"])),
        make,
        10 * tokens * columns,
    )


def _adamw(n: int) -> Case:
    rate, beta1, beta2, decay, eps = 1e-3, 0.9, 0.95, 0.1, 1e-8
    corrections = 1 - beta1**7, 1 - beta2**7

    def make() -> Problem:
        param, gradient, mean = random(n, dtype="float32"), random(n), random(n, dtype="float32")
        square = random(n, dtype="float32").square()
        new = [empty(n, dtype="float32") for _ in range(3)]
        p, g, m, v = (tensor.double() for tensor in (param, gradient, mean, square))
        m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
        p = p * (1 - rate * decay) - rate * (m / corrections[0]) / ((v / corrections[1]).sqrt() + eps)
        outputs = tuple(Output(array, expected, 1e-5) for array, expected in zip(new, (p, m, v), strict=True))
        return Problem((param, gradient, mean, square, *new), outputs)

    arrays = ("*fp32", "*bf16") + ("*fp32",) * 5
    parameters = (*arrays, n, rate, beta1, beta2, decay, *corrections, eps)
    configs = _blocks((1024, 4), (2048, 8))
    name = f"adamw 2^{math.log2(n):.3g}"
    return _case(name, "adamw", parameters, configs, lambda meta: (cdiv(n, meta["BLOCK"]),), make, 26 * n)
