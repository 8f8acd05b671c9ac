"""Many threads launch and autotune the same kernels: right results, and one compile for each specialisation."""

from __future__ import annotations

import threading
import time
from collections import Counter

import numpy as np
import pytest

import deuteron
import deuteron.language as tl

DTYPES = (np.float32, np.float64, np.int32)
BLOCKS = (16, 32, 64)


@deuteron.jit
def scale(x, out, factor, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, factor * tl.load(x + i, mask=i < n), mask=i < n)


@deuteron.autotune(configs=[deuteron.Config({"BLOCK": block}) for block in (32, 64)], key=["n"], warmup=1, rep=1)
@deuteron.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


def launch_scale(rng):
    n = int(rng.integers(1, 200))
    x = rng.integers(-9, 9, n).astype(DTYPES[rng.integers(3)])
    out, block = np.empty_like(x), BLOCKS[rng.integers(3)]
    scale[(deuteron.cdiv(n, block),)](x, out, 3, n, BLOCK=block)
    return out, 3 * x


def launch_add(rng):
    n = int(rng.integers(1, 4)) * 50
    x, y = rng.integers(-9, 9, (2, n)).astype(np.float32)
    out = np.empty_like(x)
    add[lambda meta: (deuteron.cdiv(n, meta["BLOCK"]),)](x, y, out, n)
    return out, x + y


def work(seed, end, start, failures, counts):
    rng = np.random.default_rng(seed)
    start.wait()
    try:
        while time.monotonic() < end and not failures:
            found, expected = (launch_scale, launch_add)[counts[seed] % 4 == 3](rng)
            np.testing.assert_array_equal(found, expected)
            counts[seed] += 1
    except BaseException as error:
        failures.append(error)


def run(seconds, seed, monkeypatch, tmp_path):
    monkeypatch.setenv("DEUTERON_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("DEUTERON_TARGET", "cpu")
    for kernel in (scale, add.fn):
        kernel.device_caches.clear()
    before = len(deuteron.recompiles())
    failures, counts, start = [], Counter(), threading.Barrier(16)
    seeds = range(seed, seed + 16)
    asked = time.monotonic() + seconds, start, failures, counts
    threads = [threading.Thread(target=work, args=(each, *asked)) for each in seeds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    made = [(each.kernel, str(each.arguments), str(each.options)) for each in deuteron.recompiles()[before:]]
    assert len(made) == len(set(made))
    return min(counts[each] for each in seeds)


def test_for_a_second(seed, monkeypatch, tmp_path):
    run(1.5, seed, monkeypatch, tmp_path)


@pytest.mark.long
def test_for_a_minute(seed, monkeypatch, tmp_path):
    assert run(60, seed, monkeypatch, tmp_path) > 100
