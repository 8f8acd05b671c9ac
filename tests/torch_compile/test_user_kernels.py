"""Launches of a user's kernels in functions for torch.compile."""

import pytest

pytest.importorskip("torch")

import torch  # noqa: E402
import triton  # noqa: E402
import triton.language as tl  # noqa: E402

pytestmark = pytest.mark.torch


@triton.jit
def doubled(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, 2 * tl.load(x_ptr + i, mask=i < n), mask=i < n)


@pytest.mark.parametrize("options", [{}, {"num_warps": 2}, {"num_ctas": 1}])
def test_a_launch_in_a_compiled_function(options: dict[str, int]):
    """Of `num_ctas` torch makes no node of a graph: the launch runs in Python, which torch follows."""

    def function(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        doubled[(triton.cdiv(x.numel(), 16),)](x, out, x.numel(), BLOCK=16, **options)
        return out + 1

    x = torch.randn(77)
    torch.testing.assert_close(torch.compile(function, backend="aot_eager")(x), 2 * x + 1)
