"""`triton._C.libtriton.nvidia.cublas`: NVIDIA's matrix products, which Triton's tutorials time their own against.

    cublas = nvidia.cublas.CublasLt(workspace)
    cublas.matmul(a, b, c)                    c = a @ b.T
    cublas.gemm(a, b, c, d, 2.0, 1.0)         d = 2 * (a @ b.T) + c

Torch calls the library. Products of fp8 accumulate fast, in about 14 bits on Hopper, as Triton asks the library for and
as `tl.dot` does by default. Products with a scale for each block are not among these.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from deuteron.errors import UsageError

_TYPES = ("float8_e4m3fn", "float16", "bfloat16", "float32")


class CublasLt:
    """Products of matrices of torch, of which both have rows along the summed axis."""

    def __init__(self, workspace: Any):
        self.workspace = workspace

    def matmul(self, a: Any, b: Any, c: Any) -> None:
        """Of float8_e4m3fn, float16, bfloat16 or float32."""
        c.copy_(_product(a, b))

    def gemm(self, a: Any, b: Any, c: Any, d: Any, alpha: float, beta: float) -> None:
        d.copy_(alpha * _product(a, b) + beta * c)


def _product(a: Any, b: Any) -> Any:
    import torch  # deferred: the tensors are its own

    name = str(a.dtype).rpartition(".")[2]
    if name not in _TYPES or a.dtype != b.dtype or a.shape[1:] != b.shape[1:]:
        given = f"{name}{list(a.shape)} and {str(b.dtype).rpartition('.')[2]}{list(b.shape)}"
        raise UsageError(f"cublas takes [M, K] and [N, K] of one of the types {', '.join(_TYPES)}, got {given}")
    if name != _TYPES[0]:
        return a @ b.T
    one = torch.ones((), device=a.device)
    return torch._scaled_mm(a, b.T, scale_a=one, scale_b=one, out_dtype=torch.float32, use_fast_accum=True)


NAMES = {"cublas": SimpleNamespace(CublasLt=CublasLt)}
