"""What kernels of `tests/kernels` become, stage by stage, in a process of its own.

    python -m compiler.compiled_texts swiglu_forward dropout

A line for each text: case, launch, target, stage, SHA-256.
"""

from __future__ import annotations

import hashlib
import sys
import zlib

import numpy as np
from backend.cuda.launching import compile_for

from tests.kernels.families import CASES

TARGETS = ("cpu", "cuda:90")


def lines_of(name: str) -> list[str]:
    """All stages of what a case launches, for each target."""
    launches = CASES[name](np.random.default_rng(zlib.crc32(name.encode()))).launches
    return [
        f"{name} {index} {target} {stage} {digest}"
        for index, launch in enumerate(launches)
        for target in TARGETS
        for stage, digest in _digests(target, launch)
    ]


def _digests(target: str, launch) -> list[tuple[str, str]]:
    options = {key: value for key, value in launch.options.items() if target != "cpu" or key != "plain_arguments"}
    texts = compile_for(target, launch.kernel, *launch.args, **options).asm
    return [(stage, hashlib.sha256(_bytes(texts[stage])).hexdigest()) for stage in texts]


def _bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode()


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print("\n".join(lines_of(name)), flush=True)
