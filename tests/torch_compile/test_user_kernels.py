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


@triton.autotune(
    [triton.Config({"BLOCK": block}) for block in (16, 32, 64)],
    key=[],
    restore_value=["x_ptr"],
    prune_configs_by={"early_config_prune": lambda configs, arguments, **_: configs[:2]},
)
@triton.jit
def incremented(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.load(x_ptr + i, mask=i < n) + 1, mask=i < n)


def test_trials_of_what_pruning_leaves_restore_arrays():
    """torch makes an autotuner of the configurations that are left, and says nothing of `restore_value`."""

    def function(x: torch.Tensor) -> torch.Tensor:
        out = x.clone()
        for _ in range(2):
            incremented[lambda meta: (triton.cdiv(out.numel(), meta["BLOCK"]),)](out, out.numel())
        return out

    x = torch.randn(77)
    torch.testing.assert_close(torch.compile(function, backend="aot_eager")(x), x + 1 + 1)
