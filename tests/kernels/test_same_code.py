"""A kernel becomes the same code each time, wherever in memory the compiler's objects are."""

from __future__ import annotations

import pytest
from backend.cuda.launching import compile_for

from tests.kernels.families import CASES


@pytest.mark.share(16)
@pytest.mark.parametrize(("target", "text"), [("cpu", "llir"), ("cuda:90", "ptx")])
@pytest.mark.parametrize("name", CASES)
def test_same_code(rng, monkeypatch, name: str, target: str, text: str):
    monkeypatch.setenv("DEUTERON_ALWAYS_COMPILE", "1")
    for launch in CASES[name](rng).launches:
        options = {key: value for key, value in launch.options.items() if target != "cpu" or key != "plain_arguments"}
        found, kept = set(), []
        for _ in range(3):
            kernel = compile_for(target, launch.kernel, *launch.args, **options)
            found.add(kernel.asm[text].partition("\n")[2])  # the first line has the time
            kept += [kernel, [object() for _ in range(rng.integers(1, 9999))]]
        assert len(found) == 1
