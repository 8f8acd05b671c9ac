"""Kernels by what they are for, in the manner of the collections where they are found.

CASES["swiglu_forward"](rng)     a Case; a file enters its cases when it is imported
"""

from tests.kernels.case import CASES
from tests.kernels.families import (
    activations,
    algorithms,
    attention,
    convolutions,
    experts,
    indexing,
    losses,
    matmul,
    norms,
    optimizers,
    quantization,
    recurrences,
    rotary,
    sampling,
)

__all__ = [
    "CASES",
    "activations",
    "algorithms",
    "attention",
    "convolutions",
    "experts",
    "indexing",
    "losses",
    "matmul",
    "norms",
    "optimizers",
    "quantization",
    "recurrences",
    "rotary",
    "sampling",
]
