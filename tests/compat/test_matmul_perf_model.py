"""The configurations of a matrix product, pruned as programs of Triton 2 do it."""

import numpy as np
import pytest

import deuteron
import deuteron.language as tl
from deuteron.compat.matmul_perf_model import early_config_prune, estimate_matmul_time
from deuteron.runtime import driver
from deuteron.runtime.autotuning.config import Config


def config(m, n, k, stages=2, split=1):
    return Config({"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "SPLIT_K": split}, num_stages=stages)


@pytest.fixture
def device(monkeypatch):
    """One with 64 KB of shared memory and eight multiprocessors."""
    properties = {"max_shared_mem": 1 << 16, "multiprocessor_count": 8}
    monkeypatch.setattr(type(driver.active).utils, "get_device_properties", staticmethod(lambda device=0: properties))


def milliseconds(m, n, k, block):
    a = np.zeros((m, k), np.float16)
    return estimate_matmul_time(A=a, B=a, C=a, M=m, N=n, K=k, num_warps=4, num_stages=2, **block.kwargs)


def test_tiles_that_have_no_room_in_all_stages_are_dropped(device):
    small, stages, large = config(64, 64, 64), config(64, 64, 64, stages=5), config(256, 256, 64)
    a = {"A": np.zeros((8, 8), np.float16)}
    assert early_config_prune([large, small, stages], a) == [small]
    assert early_config_prune([small], {}, A=np.zeros((8, 8), np.float64)) == [small]
    assert early_config_prune([large, stages], a) == [large, stages]


def test_the_model_ranks(device):
    assert milliseconds(1024, 1024, 512, config(128, 128, 32)) < milliseconds(1024, 1024, 512, config(16, 16, 32))
    assert milliseconds(64, 64, 512, config(32, 32, 32)) < milliseconds(64, 64, 512, config(256, 256, 32))
    one, split = config(64, 64, 32), config(64, 64, 32, split=4)
    assert milliseconds(64, 64, 8192, split) < milliseconds(64, 64, 8192, one), "few programs, and a long sum"
    assert milliseconds(2048, 2048, 64, one) < milliseconds(2048, 2048, 64, split)


@deuteron.autotune(
    [config(16, 16, 16), config(32, 16, 16), config(4096, 4096, 16)],
    key=["M"],
    prune_configs_by={"early_config_prune": early_config_prune, "perf_model": estimate_matmul_time, "top_k": 1},
)
@deuteron.jit
def product(
    A, B, C, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, SPLIT_K: tl.constexpr
):
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    k = tl.arange(0, BLOCK_K)
    a = tl.load(A + m * K + k[None, :], mask=(m < M) & (k[None, :] < K), other=0)
    b = tl.load(B + k[:, None] * N + n, mask=(k[:, None] < K) & (n < N), other=0)
    tl.store(C + m * N + n, tl.dot(a, b, input_precision="ieee"), mask=(m < M) & (n < N))


def test_an_autotuner_takes_both(device):
    generator = np.random.default_rng(7)
    a, b = (generator.standard_normal(shape).astype(np.float32) for shape in ((40, 13), (13, 24)))
    c = np.zeros((40, 24), np.float32)
    product[lambda meta: (-(-40 // meta["BLOCK_M"]), -(-24 // meta["BLOCK_N"]))](a, b, c, 40, 24, 13)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-5)
    assert product.best_config.kwargs["BLOCK_M"] in (16, 32)
