"""The programs, a file for each family; importing this declares them all."""

from torch_compile.programs import (
    attention,
    convolutions,
    dynamic_shapes,
    indexing,
    matmuls,
    models,
    normalisation,
    optimisers,
    pointwise,
    random_numbers,
    reductions,
    scans,
)

__all__ = [
    "attention",
    "convolutions",
    "dynamic_shapes",
    "indexing",
    "matmuls",
    "models",
    "normalisation",
    "optimisers",
    "pointwise",
    "random_numbers",
    "reductions",
    "scans",
]
