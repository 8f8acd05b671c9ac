"""Each kernel compiles for every architecture, ptxas included, without spilling."""

from __future__ import annotations

import pytest
from backend.cuda.launching import ARCHITECTURES, compile_for

from tests.kernels.families import CASES


@pytest.mark.share(6)
@pytest.mark.parametrize("capability", ARCHITECTURES)
@pytest.mark.parametrize("name", CASES)
def test_compile(rng, name: str, capability: int):
    for launch in CASES[name](rng).launches:
        kernel = compile_for(f"cuda:{capability}", launch.kernel, *launch.args, **launch.options)
        assert kernel.asm["cubin"]
