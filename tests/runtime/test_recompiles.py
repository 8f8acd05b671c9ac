"""What was compiled, when and why; launches that may not compile."""

import time

import numpy as np
import pytest

import deuteron
import deuteron.language as tl
from deuteron.errors import LaunchError, StrictError
from deuteron.runtime.recompiles import shown
from deuteron.runtime.specialise import constexpr_token, specialise


def make_kernel():
    @deuteron.jit
    def scale(x_ptr, n, mode: tl.constexpr, BLOCK: tl.constexpr = 16):
        i = tl.arange(0, BLOCK)
        tl.store(x_ptr + i, tl.load(x_ptr + i, mask=i < n) * 2, mask=i < n)

    return scale


def test_what_was_compiled_and_why(monkeypatch, tmp_path):
    monkeypatch.setenv("DEUTERON_CACHE_DIR", str(tmp_path))
    scale, x = make_kernel(), np.ones(64, np.float32)
    before, begin = len(deuteron.recompiles()), time.time()
    scale[(1,)](x, 5, None)
    scale[(1,)](x, 7, None)
    scale[(1,)](x, 16, None, BLOCK=32)
    scale[(1,)](x[1:], 5, None, num_warps=8)
    scale.device_caches.clear()
    scale.warmup(tl.float32, 5, None, grid=(1,))
    first, second, third, fourth = deuteron.recompiles()[before:]
    assert first.reason == "the first launch" and not first.is_cached
    assert first.arguments == {"x_ptr": "*fp32:16", "n": "i32", "mode": "None", "BLOCK": "16"}
    assert sum(first.stage_seconds.values()) <= first.seconds and {"ttir", "obj"} <= first.stage_seconds.keys()
    assert begin <= first.when <= time.time()
    assert second.reason == "n is i32:16, was i32; BLOCK is 32, was 16"
    assert third.reason == "x_ptr is *fp32, was *fp32:16; num_warps is 8, was not given"
    assert (fourth.reason, fourth.is_cached, fourth.is_warmup) == ("the first launch", True, True)
    assert str(second).startswith("scale(x_ptr: *fp32:16, n: i32:16, mode: None, BLOCK: 32) for cpu:native, ")
    assert "read from the cache on disk" in str(fourth)


def test_a_launch_that_may_not_compile(monkeypatch, tmp_path):
    monkeypatch.setenv("DEUTERON_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("DEUTERON_STRICT", "1")
    scale, x = make_kernel(), np.ones(64, np.float32)
    message = r"'scale' would be compiled .*: for x_ptr: \*fp32:16, .*; none has been compiled"
    with pytest.raises(StrictError, match=message):
        scale[(1,)](x, 5, None)
    scale.prepare(x, 5, None, grid=(1,))
    for _ in range(3):
        scale[(1,)](x, 5, None)
    assert x[0] == 8
    with pytest.raises(LaunchError, match="the nearest that there is differs: n is i32:1, was i32. Compile it before"):
        scale[(1,)](x, 1, None)
    assert x[0] == 8
    again = make_kernel()
    again[(1,)](x, 7, None)  # it is in the cache on disk
    assert x[0] == 16


@pytest.mark.parametrize(
    ("token", "text"),
    [
        (specialise((1, (None, 0.5)))[0], "(i32:1, (None, fp32))"),
        (constexpr_token(0.25)[0], "0.25"),
        (constexpr_token((1, "a", (2.0,)))[0], "(1, 'a', (2.0))"),
        (constexpr_token(specialise)[0], "specialise"),
        (constexpr_token({"a": 1, "b": (2,)})[0], "{'a': 1, 'b': (2)}"),
        (constexpr_token({2, 1})[0], "{1, 2}"),
    ],
)
def test_tokens_are_shown(token, text):
    assert shown(token) == text


def test_types_are_shown_as_python():
    assert shown(constexpr_token(tl.float32)[0]) == repr(tl.float32)
