"""What `cpu.py` measures: each case runs a kernel of the examples and the same in NumPy (or torch: `torch_cases.py`).

    for case in cases():
        print(case.measure())    # {"name": "vector add ...", "peer": "NumPy", "ours_ms": 11.2, "peer_ms": 12.0, ...}

To be imported when the environment says how many threads to use.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import deuteron as triton
from benchmarks.programs import load_example

TOLERANCE = 1e-5
POISON = 1 << 30  # no result is near it; a number that every type of a result has
ROUNDS = 7
SECONDS_PER_ROUND = 0.1


@dataclass(frozen=True)
class Case:
    """`ours` writes to `out`, an array or a tensor; `theirs` does, or gives another one. `amount`: what a call does, in
    1e9 of `unit`.
    """

    name: str
    ours: Callable[[], Any]
    theirs: Callable[[], Any]
    out: Any
    expected: np.ndarray
    amount: float
    unit: str
    required: float = 1.0
    threaded: bool = False
    peer: str = "NumPy"
    tolerance: float = TOLERANCE

    def error(self, run: Callable[[], Any]) -> float:
        """The relative error against float64; infinite, or large, where an element was not written."""
        self.out[...] = POISON
        made = run()
        result = made if isinstance(made, type(self.out)) else self.out
        error = np.abs(_as_float64(result) - self.expected).max() / np.abs(self.expected).max()
        return float(error) if np.isfinite(error) else float("inf")

    def measure(self) -> dict[str, Any]:
        errors = {"ours": self.error(self.ours), self.peer: self.error(self.theirs)}
        if max(errors.values()) > self.tolerance:
            raise SystemExit(f"{self.name}: wrong result: {errors}")
        ours, theirs = fastest_of_both(self.ours, self.theirs)
        return {
            "name": self.name,
            "peer": self.peer,
            "ours_ms": ours * 1e3,
            "peer_ms": theirs * 1e3,
            "rate": f"{self.amount / ours:.1f} {self.unit}",
            "required": self.required,
            "error": errors["ours"],
        }


def _as_float64(out: Any) -> np.ndarray:
    return out.astype(np.float64) if isinstance(out, np.ndarray) else out.double().numpy()


def fastest_of_both(*runs: Callable[[], Any]) -> tuple[float, ...]:
    """The fastest call of each, in seconds, from rounds that alternate between them."""
    fastest = [float("inf")] * len(runs)
    for _ in range(ROUNDS):
        for index, run in enumerate(runs):
            end = time.perf_counter() + SECONDS_PER_ROUND
            while (start := time.perf_counter()) < end:
                run()
                fastest[index] = min(fastest[index], time.perf_counter() - start)
    return tuple(fastest)


def cases() -> Iterator[Case]:
    rng = np.random.default_rng(0)
    for make in (vector_add, softmax, layer_norm, matmul, attention):
        yield make(rng)


def vector_add(rng: np.random.Generator) -> Case:
    kernel = load_example("vector_add").add_kernel
    x, y = rng.standard_normal((2, 4096 * 4096), dtype=np.float32)
    out, block = np.empty_like(x), 4096
    grid = (triton.cdiv(x.size, block),)
    return Case(
        "vector add 4096 x 4096 fp32",
        lambda: kernel[grid](x, y, out, x.size, BLOCK=block),
        lambda: np.add(x, y, out=out),
        out,
        x.astype(np.float64) + y,
        3 * x.nbytes * 1e-9,
        "GB/s",
    )


def softmax(rng: np.random.Generator) -> Case:
    example = load_example("softmax")
    x = rng.standard_normal((4096, 4096), dtype=np.float32)
    out = np.empty_like(x)

    def with_numpy() -> None:
        np.subtract(x, x.max(axis=1, keepdims=True), out=out)
        np.exp(out, out=out)
        np.divide(out, out.sum(axis=1, keepdims=True), out=out)

    return Case(
        "softmax 4096 x 4096 fp32",
        lambda: example.softmax_kernel[(4096,)](x, out, 4096, 4096, 4096, BLOCK=4096),
        with_numpy,
        out,
        example.reference(x),
        2 * x.nbytes * 1e-9,
        "GB/s",
    )


def layer_norm(rng: np.random.Generator) -> Case:
    example = load_example("layer_norm")
    x = rng.standard_normal((4096, 4096), dtype=np.float32)
    weight, bias = rng.standard_normal((2, 4096), dtype=np.float32)
    out, mean, rstd = np.empty_like(x), np.empty(4096, np.float32), np.empty(4096, np.float32)

    def ours() -> None:
        kernel = example.layer_norm_kernel
        kernel[(4096,)](x, out, weight, bias, mean, rstd, 4096, 4096, 1e-5, BLOCK=4096)

    def with_numpy() -> None:
        np.subtract(x, x.mean(axis=1, keepdims=True), out=out)
        variance = np.einsum("ij,ij->i", out, out)[:, None] / 4096
        np.multiply(out, 1 / np.sqrt(variance + 1e-5), out=out)
        np.multiply(out, weight, out=out)
        np.add(out, bias, out=out)

    expected = example.reference(x, weight, bias)[0]
    return Case("layer norm 4096 x 4096 fp32", ours, with_numpy, out, expected, 2 * x.nbytes * 1e-9, "GB/s")


def matmul(rng: np.random.Generator) -> Case:
    kernel = load_example("matmul").matmul_kernel
    a, b = rng.standard_normal((2, 1024, 1024), dtype=np.float32)
    out, grid = np.empty_like(a), (4, 4)
    strides = (1024, 1) * 3
    return Case(
        "matmul 1024 x 1024 x 1024 fp32",
        lambda: kernel[grid](a, b, out, 1024, 1024, 1024, *strides, BLOCK_M=256, BLOCK_N=256, BLOCK_K=128),
        lambda: np.matmul(a, b, out=out),
        out,
        a.astype(np.float64) @ b,
        2 * 1024**3 * 1e-9,
        "GFLOP/s",
        required=0.9,
        threaded=True,
    )


def attention(rng: np.random.Generator) -> Case:
    example = load_example("attention")
    heads, seqlen, dim, block = 4, 1024, 64, 64
    q, k, v = rng.standard_normal((3, heads, seqlen, dim), dtype=np.float32)
    out, scores = np.empty_like(q), np.empty((heads, seqlen, seqlen), np.float32)
    scale = np.float32(dim**-0.5)

    def ours() -> None:
        example.attention_kernel[(seqlen // block, heads)](
            q,
            k,
            v,
            out,
            dim**-0.5,
            seqlen * dim,
            dim,
            seqlen,
            CAUSAL=False,
            HEAD_DIM=dim,
            BLOCK_M=block,
            BLOCK_N=block,
        )

    def with_numpy() -> None:
        np.matmul(q * scale, k.swapaxes(-1, -2), out=scores)
        np.subtract(scores, scores.max(axis=-1, keepdims=True), out=scores)
        np.exp(scores, out=scores)
        np.matmul(scores, v, out=out)
        np.divide(out, scores.sum(axis=-1, keepdims=True), out=out)

    return Case(
        "attention 4 heads of 1024 x 64 fp32",
        ours,
        with_numpy,
        out,
        example.reference(q, k, v),
        4 * heads * seqlen * seqlen * dim * 1e-9,
        "GFLOP/s",
        threaded=True,
    )
