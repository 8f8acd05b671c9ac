"""How a part of a model is declared.

@program()
def swiglu() -> Made:
    return lambda gate, up: F.silu(gate) * up, (random(8192, 14336, grad=True), random(8192, 14336))
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

Made = tuple[Callable, tuple]
BF16, FP16 = torch.bfloat16, torch.float16


@dataclass(frozen=True)
class Program:
    """One program. Outputs that differ by more than the tolerance, of the largest of them, are wrong."""

    make: Callable[[], Made]
    tolerance: float


PROGRAMS: dict[str, Program] = {}


def program(tolerance: float = 2e-2) -> Callable:
    def enter(make: Callable[[], Made]) -> Callable[[], Made]:
        PROGRAMS[make.__name__.replace("_", " ").strip()] = Program(make, tolerance)
        return make

    return enter


def random(*shape: int, dtype: torch.dtype = BF16, grad: bool = False) -> torch.Tensor:
    return torch.randn(*shape, dtype=dtype).requires_grad_(grad)


def indices(limit: int, *shape: int) -> torch.Tensor:
    return torch.randint(0, limit, shape)
