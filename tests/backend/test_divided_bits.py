"""Divisions of bits in tile IR that comes as text: `-1 // -1` is no number of one bit, so that LLVM leaves it open."""

import numpy as np
import pytest

import deuteron
import deuteron.language as tl
from deuteron.compiler import ASTSource, IRSource
from deuteron.emulator import run_kernel
from deuteron.interpreter import run_module
from deuteron.ir.text import parse_module

COUNT = 64


@deuteron.jit
def kernel(x, y, a, out, masked, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    divided = (tl.load(x + i) > 0) // (tl.load(y + i) > 0)
    tl.store(out + i, divided.to(tl.int32))
    tl.store(masked + i, tl.load(a + i, mask=divided, other=-1))


SIGNATURE = {name: "*i32" for name in ("x", "y", "a", "out", "masked")} | {"BLOCK": "constexpr"}


@pytest.fixture(scope="module")
def unsigned() -> str:
    source = ASTSource(kernel, SIGNATURE, {"BLOCK": COUNT})
    return deuteron.compile(source, target="cpu").asm["ttir"]


@pytest.mark.parametrize("op", ["divsi", "remsi", "floordivsi", "ceildivsi"])
def test_signed_divisions_of_bits(op, unsigned, rng):
    assert "arith.divui" in unsigned
    text = unsigned.replace("arith.divui", f"arith.{op}")
    x, y = (rng.integers(0, 2, COUNT, np.int32) for _ in range(2))
    a = np.arange(COUNT, dtype=np.int32)
    expected = [np.full(COUNT, 77, np.int32) for _ in range(2)]
    run_module(parse_module(text), [x, y, a, *expected], (1, 1, 1))
    for target in ("cpu", "cuda:90"):
        found = [np.full(COUNT, 78, np.int32) for _ in range(2)]
        launch(text, target, [x, y, a, *found])
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other, err_msg=f"{op} on {target}")


def launch(text: str, target: str, arrays: list[np.ndarray]) -> None:
    compiled = deuteron.compile(IRSource.from_text(text, "ttir"), target=target)
    if target == "cpu":
        compiled.launch((1, 1, 1), [array.ctypes.data for array in arrays])
    else:
        run_kernel(compiled.asm["ptx"], compiled.metadata, (1, 1, 1), arrays)
