"""PTX types as NumPy types.

TYPES["s32"]    int32            BITS["s32"]    uint32, which is how registers of 32 bits are held
"""

from __future__ import annotations

import numpy as np

TYPES: dict[str, type] = {
    "pred": np.bool_,
    **{f"s{bits}": getattr(np, f"int{bits}") for bits in (8, 16, 32, 64)},
    **{f"{kind}{bits}": getattr(np, f"uint{bits}") for kind in "ub" for bits in (8, 16, 32, 64)},
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
    "bf16": np.uint16,
    "f16x2": np.uint32,
    "bf16x2": np.uint32,
    "f32x2": np.uint64,
    "e4m3x2": np.uint16,
    "e5m2x2": np.uint16,
    "tf32": np.uint32,
}

BITS: dict[str, type] = {
    name: np.bool_ if type is np.bool_ else {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[type().itemsize]
    for name, type in TYPES.items()
}

UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}

KINDS: dict[str, str] = {
    **{f"{kind}{bits}": "int" for kind in "sub" for bits in (8, 16, 32, 64)},
    "pred": "pred",
    "f32": "float",
    "f64": "float",
    "f32x2": "float",
    "f16": "half",
    "bf16": "half",
    "f16x2": "half",
    "bf16x2": "half",
    "s16x2": "pair",
    "u16x2": "pair",
}
