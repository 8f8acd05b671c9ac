"""The programs of examples/ at sizes that are no multiples of their tiles, against float64.

Tolerances are those of the project: relative errors of 1e-5 in fp32, 1e-3 in fp16 and 1e-2 in bf16, relative to the
largest element, as sums cancel.
"""

import numpy as np
import pytest

import deuteron
import deuteron.language as tl

TOLERANCE = {"float32": 1e-5, "float16": 1e-3, "bfloat16": 1e-2}


def float64(*arrays):
    return [array.astype(np.float64) for array in arrays]


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("size", [1, 1000, 1024, 5001])
def test_vector_add(example, draw, check_norm, size, dtype):
    x, y = draw(dtype, size), draw(dtype, size)
    check_norm(example("vector_add").add(x, y), np.add(*float64(x, y)), TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(3, 1), (5, 781), (2, 1024), (3, 2049)])
def test_softmax(example, draw, check_norm, shape, dtype):
    softmax, x = example("softmax"), draw(dtype, shape)
    check_norm(softmax.softmax(x), softmax.reference(x), 1e-5 if dtype == "float32" else 1e-13)


def test_softmax_of_rows_with_a_stride(example, draw, check_norm):
    softmax, wide = example("softmax"), draw("float32", (7, 333))
    x = wide[::2, :200]
    check_norm(softmax.softmax(x), softmax.reference(x), 1e-5)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(("shape", "block"), [((5, 781), 1024), ((3, 2500), 512), ((2, 64), 64)])
def test_layer_norm(example, draw, check_norm, shape, block, dtype):
    layer_norm = example("layer_norm")
    x, weight, bias = draw(dtype, shape), draw(dtype, shape[1]), draw(dtype, shape[1])
    got = layer_norm.layer_norm(x, weight, bias, block=block)
    expected = layer_norm.reference(*float64(x, weight, bias))
    check_norm(got[0], expected[0], TOLERANCE[dtype])
    # Statistics are in fp32 from inputs that float64 takes as they are; a mean near zero is a sum that cancels.
    np.testing.assert_allclose(got[1], expected[1], rtol=0, atol=1e-5)
    check_norm(got[2], expected[2], 1e-5)


@pytest.mark.share(2)
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("sizes", [(67, 45, 51), (1, 130, 17), (64, 64, 64)])
def test_matmul(example, draw, check_norm, sizes, dtype):
    m, n, k = sizes
    a, b = draw(dtype, (m, k)), draw(dtype, (k, n))
    got = example("matmul").matmul(a, b, block_m=32, block_n=64, block_k=16)
    check_norm(got, np.matmul(*float64(a, b)), TOLERANCE[dtype], dtype == "float32")


def test_matmul_of_transposed_matrices(example, draw, check_norm):
    a, b = draw("float32", (40, 65)).T, draw("float32", (33, 40)).T
    check_norm(example("matmul").matmul(a, b, 32, 32, 32), np.matmul(*float64(a, b)), 1e-5, tf32=True)


@pytest.mark.parametrize("group_m", [1, 3])
def test_matmul_grouped(example, draw, check_norm, group_m):
    a, b = draw("float16", (139, 75)), draw("float16", (75, 101))
    got = example("matmul_grouped").matmul_grouped(a, b, 32, 16, 32, group_m)
    check_norm(got, np.matmul(*float64(a, b)), 1e-3)


@pytest.mark.share(3)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(("seqlen", "blocks"), [(77, (32, 16)), (64, (16, 32)), (1, (16, 16))])
def test_attention(example, draw, check_norm, seqlen, blocks, dtype, causal):
    attention = example("attention")
    q, k, v = (draw(dtype, (2, seqlen, 32)) for _ in range(3))
    expected = attention.reference(*float64(q, k, v), causal)
    check_norm(attention.attention(q, k, v, causal, *blocks), expected, TOLERANCE[dtype], dtype == "float32")


def test_matmul_autotuned(example, draw, check_norm):
    module = example("matmul_autotuned")
    a, b = draw("float32", (37, 43)), draw("float32", (43, 53))
    check_norm(module.matmul(a, b), np.matmul(*float64(a, b)), 1e-5, tf32=True)
    assert module.matmul_autotuned_kernel.best_config in module.matmul_autotuned_kernel.configs


@pytest.mark.parametrize("num_columns", [64, 77])
def test_row_norm_with_heuristics(example, draw, check_norm, num_columns):
    x = draw("float32", (5, num_columns))
    expected = x / np.linalg.norm(x.astype(np.float64), axis=1, keepdims=True)
    check_norm(example("row_norm_heuristics").row_norm(x), expected, 1e-5)


@deuteron.jit
def größe(α_ptr, β_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(β_ptr + i, tl.load(α_ptr + i) + 1)


def test_names_that_are_not_ascii(draw, poisoned, check):
    x, out = draw("int32", 32), poisoned("int32", 32)
    größe[(1,)](x, out, N=32)
    check(out, x + np.int32(1))
