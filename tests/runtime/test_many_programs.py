"""Grids of more programs than those in which nothing overflows that the code takes not to."""

from __future__ import annotations

import numpy as np
import pytest

import deuteron
import deuteron.language as tl
from deuteron.compiler.kernel import CompiledKernel
from deuteron.emulator.faults import EmulatorError
from deuteron.errors import LaunchError


@deuteron.jit
def pairs(out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i % 4096, 1.0, mask=i // 8 % 2 == 0)


def compiled(**options):
    source = deuteron.ASTSource(pairs, {"out": "*fp32"}, {"BLOCK": 1024}, {(0,): [["tt.divisibility", 16]]})
    return deuteron.compile(source, "cuda:90", options)


def test_what_kernels_rely_on():
    assert compiled().metadata.most_programs == 2**21
    assert compiled(many_programs=True).metadata.most_programs is None
    assert "st.global.v4" in compiled().asm["ptx"]
    assert "st.global.v4" not in compiled(many_programs=True).asm["ptx"]


def test_a_larger_grid_is_launched_with_a_kernel_that_does_not_rely_on_it(monkeypatch):
    monkeypatch.setattr(CompiledKernel, "launch", property(lambda kernel: kernel.metadata))
    kernel = compiled()
    larger = kernel._launch_of_more(2**21 + 1)
    assert larger.options["many_programs"] and larger.most_programs is None
    assert kernel._launch_of_more(2**23) is larger


def test_a_text_that_relies_on_it(tmp_path):
    text = tmp_path / "pairs.ttgir"
    text.write_text(compiled().asm["ttgir"])
    kernel = deuteron.compile(str(text), "cuda:90")
    assert kernel.metadata.most_programs == 2**21
    with pytest.raises(LaunchError, match="the text that it was compiled of relies on that"):
        kernel._launch_of_more(2**21 + 1)


@deuteron.jit
def quotients(out, n, KIND: tl.constexpr, BLOCK: tl.constexpr):
    pid, i = tl.program_id(0), tl.arange(0, BLOCK)
    if KIND == "argument":
        tile = pid // n
    elif KIND == "number":
        tile = pid // 3
    elif KIND == "maximum":
        tile = pid // tl.maximum(n, 1)
    elif KIND == "minimum":
        tile = tl.minimum(pid, 1) // (n - 1)
    tl.store(out + pid * BLOCK + i, (tile * BLOCK + i) // 8)


@pytest.mark.parametrize(
    ("kind", "looks"), [("argument", True), ("number", False), ("maximum", False), ("minimum", True)]
)
def test_what_looks_at_divisors(kind, looks):
    constants = {"KIND": kind, "BLOCK": 1024}
    source = deuteron.ASTSource(quotients, {"out": "*i32", "n": "i32"}, constants, {(0,): [["tt.divisibility", 16]]})
    kernel = deuteron.compile(source, "cuda:90")
    assert ("trap" in kernel.asm["ptx"]) == looks == ("tt.natural_divisor" in kernel.asm["llir"] + kernel.asm["ttgir"])


@pytest.mark.parametrize("target", ["cpu", "cuda:90"])
@pytest.mark.parametrize("n", [3, 0, -2])
def test_quotients_by_negative_numbers(monkeypatch, target, n):
    """They are right, or an error: eight neighbours below 0 do not have one quotient."""
    monkeypatch.setenv("DEUTERON_TARGET", target)
    monkeypatch.setenv("DEUTERON_EMULATE", "1" if target != "cpu" else "0")
    out = np.zeros(8 * 1024, np.int32)
    if target != "cpu" and n < 0:
        with pytest.raises(EmulatorError, match="trap"):
            quotients[(8,)](out, n, KIND="argument", BLOCK=1024)
        return
    quotients[(8,)](out, n, KIND="argument", BLOCK=1024)
    tiles = np.array([int(pid / n) if n else 0 for pid in range(8)])
    expected = np.trunc((tiles[:, None] * 1024 + np.arange(1024)) / 8)
    np.testing.assert_array_equal(out.reshape(8, 1024), expected)
