"""What benchmarks.torch_kernels measures: parts of models by name, in the sizes and types that they have on a GPU.

    PROGRAMS["swiglu of two"].make()    (function, arguments); tensors that require a gradient get one of each result

Functions are made under `torch.device("cuda")`.
"""

from __future__ import annotations

from benchmarks.torch_models import (  # noqa: F401 they declare programs
    attention,
    gates,
    images_and_sound,
    indexing,
    integers,
    losses,
    norms,
    optimisers,
    quantisation,
    structures,
)
from benchmarks.torch_models.declare import PROGRAMS as PROGRAMS
