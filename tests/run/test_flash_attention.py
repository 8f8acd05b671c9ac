"""The FlashAttention forward: every combination of even and uneven lengths, causal or not, and its log-sum-exp.

Tolerances are the project's: 1e-3 for fp16, 1e-2 for bf16, 1e-5 for fp32 (and for log-sum-exp, which is fp32).
"""

import itertools

import numpy as np
import pytest

pytestmark = pytest.mark.each_gpu

TOLERANCE = {"float32": 1e-5, "float16": 1e-3, "bfloat16": 1e-2}


def compare(example, check_norm, arrays, causal, dtype):
    flash = example("flash_attention_forward")
    out, lse = flash.flash_attention(*arrays, causal, block_m=32, block_n=16)
    expected_out, expected_lse = flash.reference(*(array.astype(np.float64) for array in arrays), causal)
    check_norm(out, expected_out, TOLERANCE[dtype], dtype == "float32")
    check_norm(lse, expected_lse, 1e-5, dtype == "float32")


@pytest.mark.share(6)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("even_m", "even_n", "even_headdim"), list(itertools.product([True, False], repeat=3)))
def test_even_and_uneven_lengths(example, draw, check_norm, even_m, even_n, even_headdim, causal):
    seqlen_q, seqlen_k, headdim = 64 if even_m else 45, 48 if even_n else 55, 32 if even_headdim else 24
    q = draw("float16", (2, seqlen_q, 3, headdim))
    k, v = (draw("float16", (2, seqlen_k, 3, headdim)) for _ in range(2))
    compare(example, check_norm, (q, k, v), causal, "float16")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_other_types(example, draw, check_norm, dtype):
    q, k, v = (draw(dtype, (1, 45, 2, 24)) for _ in range(3))
    compare(example, check_norm, (q, k, v), True, dtype)


def test_heads_before_rows_in_memory(example, draw, check_norm):
    q, k, v = (draw("float16", (2, 3, 37, 32)).swapaxes(1, 2) for _ in range(3))
    compare(example, check_norm, (q, k, v), False, "float16")


def test_masks_also_where_lengths_are_even(example, draw, check_norm, monkeypatch):
    """The uneven branches are right for even lengths too: the same kernel with all booleans false."""
    flash = example("flash_attention_forward")
    q, k, v = (draw("float16", (1, 64, 1, 32)) for _ in range(3))
    out, lse = np.full_like(q, np.nan), np.full((1, 1, 64), np.nan, np.float32)
    strides = (64 * 32, 32, 32) * 4
    flash.flash_attention_forward[(2, 1)](
        *(q, k, v, out, lse, np.empty_like(lse), 32**-0.5, *strides, 1, 64, 64, 64, 32, 1, False, False, False),
        IS_CAUSAL=True,
        BLOCK_HEADDIM=32,
        BLOCK_M=32,
        BLOCK_N=32,
    )
    expected_out, expected_lse = flash.reference(q, k, v, True)
    check_norm(out, expected_out, 1e-3)
    check_norm(lse, expected_lse, 1e-5)
