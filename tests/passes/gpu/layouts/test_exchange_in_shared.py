"""Sorts of many elements in each thread have no shuffles where ptxas takes time by their square; others have."""

from dataclasses import replace

import numpy as np
import pytest
from backend.cuda.launching import compile_for

import deuteron
import deuteron.language as tl
from deuteron.machine.gpu import GPUConfig
from deuteron.passes.gpu.layouts.exchange_in_shared import ExchangeInShared

X = np.zeros(1 << 13, np.float32)


@deuteron.jit
def sort(x, out, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out + at, tl.sort(tl.load(x + at)))


def exchanges(target: str, size: int, num_warps: int) -> tuple[int, int]:
    """Through shared memory within warps, and by shuffles."""
    kernel = compile_for(target, sort, X, X, N=size, num_warps=num_warps)
    return kernel.asm["ttgir"].count("ttg.in_shared"), kernel.asm["ptx"].count("shfl")


@pytest.mark.parametrize(("target", "size"), [("cuda:80", 256), ("cuda:90", 1024)])
def test_few_shuffles_or_another_machine(target, size):
    in_shared, shuffles = exchanges(target, size, num_warps=1)
    assert not in_shared
    assert shuffles


def test_many():
    """1,280 of them, which took 7 s."""
    in_shared, shuffles = exchanges("cuda:80", 1024, num_warps=1)
    assert in_shared
    assert not shuffles


@pytest.mark.parametrize(("size", "in_shared"), [(512, True), (2048, False)])
def test_room_for_the_tile(monkeypatch, size, in_shared):
    """Half of 4 KB is for what is exchanged."""

    def small(config: GPUConfig) -> ExchangeInShared:
        shared = replace(config.machine.shared, max_bytes=4096)
        return ExchangeInShared(replace(config, machine=replace(config.machine, max_shuffles=0, shared=shared)))

    monkeypatch.setattr("deuteron.passes.gpu.ExchangeInShared", small)
    assert bool(exchanges("cuda:90", size, num_warps=2)[0]) == in_shared
