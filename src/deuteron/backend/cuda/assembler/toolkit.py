"""Programs of the CUDA toolkit: those in NVIDIA's wheels (`nvidia-cuda-nvcc`) first, then those on PATH.

find_tool("ptxas")     Path(".../site-packages/nvidia/cu13/bin/ptxas"), or None
"""

from __future__ import annotations

import shutil
from functools import cache
from importlib.util import find_spec
from pathlib import Path


@cache
def find_tool(name: str) -> Path | None:
    """The program of that name; None where there is none."""
    package = find_spec("nvidia")
    for folder in package.submodule_search_locations if package else ():
        for found in sorted(Path(folder).glob(f"*/bin/{name}*"), reverse=True):
            return found
    on_path = shutil.which(name)
    return Path(on_path) if on_path else None
