"""tl.device_print and tl.device_assert."""

import numpy as np
import pytest
from backend.cuda.launching import compile_for, emulate_compiled, instructions_with

import deuteron
import deuteron.language as tl


@deuteron.jit
def show(x, n, N: tl.constexpr):
    tl.device_print("x", tl.load(x + tl.arange(0, N)))
    tl.device_print("n", n, hex=True)


@pytest.mark.parametrize("num_warps", [1, 4])
def test_a_line_for_each_element(num_warps):
    x, printed = np.array([1.5, -2, 0, 4], np.float32), []
    emulate_compiled(compile_for("cuda:90", show, x, 255, N=4, num_warps=num_warps), x, 255, grid=(2,), printed=printed)
    lines = sorted("".join(printed).splitlines())
    expected = [f"pid ({pid}, 0, 0) idx ({i}) x: {v:f}" for pid in range(2) for i, v in enumerate(x)]
    expected += [f"pid ({pid}, 0, 0) idx () n: 0x000000ff" for pid in range(2)]
    assert lines == sorted(expected)


@deuteron.jit
def insist(x, N: tl.constexpr):
    tl.device_assert(tl.load(x + tl.arange(0, N)) > 0, "positive numbers")


def test_assertions_are_compiled_in_debug_mode_only():
    x = np.ones(128, np.float32)
    assert not instructions_with(compile_for("cuda:90", insist, x, N=128), "__assertfail")
    debug = compile_for("cuda:90", insist, x, N=128, debug=True)
    assert instructions_with(debug, "__assertfail")
    emulate_compiled(debug, x)
    x[77] = -1
    with pytest.raises(Exception, match="positive numbers"):
        emulate_compiled(debug, x)


@deuteron.jit
def show_dot(x, N: tl.constexpr):
    i = tl.arange(0, N)
    tile = tl.load(x + i[:, None] * N + i[None, :])
    tl.device_print("p", tl.dot(tile, tile))


def test_a_dot_is_not_moved_into_the_branch_that_prints_it():
    x, printed = np.eye(16, dtype=np.float16), []
    emulate_compiled(compile_for("cuda:90", show_dot, x, N=16, num_warps=2), x, printed=printed)
    lines = "".join(printed).splitlines()
    assert len(lines) == 256
    assert sorted(line for line in lines if line.endswith("1.000000")) == sorted(
        f"pid (0, 0, 0) idx ({i:2}, {i:2}) p: 1.000000" for i in range(16)
    )
