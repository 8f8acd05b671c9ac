"""Kernels that are compiled from what another process was told of them."""

import json
from enum import Enum
from typing import NamedTuple

import numpy as np
import pytest

import deuteron
import deuteron.language as tl
from deuteron import knobs
from deuteron.errors import UsageError
from deuteron.runtime.preload import read, written
from deuteron.runtime.specialise import constexpr_token, specialise
from deuteron.tools.tensor_descriptor import TensorDescriptor


@deuteron.jit
def twice(x):
    return 2 * x


@deuteron.jit
def apply(x_ptr, n, sizes, fn: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + i, fn(tl.load(x_ptr + i, mask=i < n)) + sizes[1], mask=i < n)


@deuteron.jit
def other(x_ptr, n, sizes, fn: tl.constexpr, BLOCK: tl.constexpr):
    pass


class Sizes(NamedTuple):
    rows: int
    columns: int


class Mode(Enum):
    FIRST = 1


@pytest.fixture
def told(monkeypatch):
    found = []
    monkeypatch.setattr(knobs.runtime, "jit_post_compile_hook", lambda **about: found.append(about["compile"]))
    return found


def test_a_launch_finds_what_was_preloaded(told):
    x = np.arange(32, dtype=np.float32)
    for options in ({}, {"num_warps": 8}):
        made = apply.warmup(tl.float32, 5, Sizes(3, 1), twice, 16, grid=(1,), **options)
        apply.device_caches.clear()
        preloaded = apply.preload(told[-1]["specialization_data"])
        assert preloaded.hash == made.hash
        count = len(told)
        assert apply[(1,)](x, 5, Sizes(4, 1), twice, 16, **options) is preloaded
        assert len(told) == count
    np.testing.assert_array_equal(x[:7], [3, 7, 11, 15, 19, 5, 6])


def test_what_is_of_another_kernel(told):
    apply.warmup(tl.float32, 5, Sizes(3, 1), twice, 16, grid=(1,))
    apply.device_caches.clear()
    apply.preload(told[-1]["specialization_data"])
    with pytest.raises(
        RuntimeError, match=r"Specialization data is for .*\.apply, and the kernel to preload is .*other"
    ):
        other.preload(told[-1]["specialization_data"])


def test_what_is_for_another_target(told):
    apply.device_caches.clear()
    apply.warmup(tl.float32, 5, Sizes(3, 1), twice, 16, grid=(1,))
    text = told[-1]["specialization_data"].replace('"cpu"', '"other"')
    with pytest.raises(
        RuntimeError, match="Specialization data is for {'backend': 'other', 'arch': 'native'}, and a la"
    ):
        apply.preload(text)


def test_a_function_that_is_local(told):
    def make(number):
        @deuteron.jit
        def local(x):
            return x + number

        return local

    first = make(tl.constexpr(1))
    text = written((constexpr_token(first)[0],), {})
    assert read([None], text).values == [first]
    second = make(tl.constexpr(2))
    with pytest.raises(UsageError, match="the source of .*local, or what it uses, is another"):
        read([None], text)
    assert second is not first


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"name": "x"}', None])
def test_what_is_no_such_text(text):
    with pytest.raises(UsageError, match="this is not what a kernel was compiled for"):
        apply.preload(text)


VALUES = [
    None,
    True,
    1,
    -(2**70),
    0.1,
    "text",
    (1, (2.0, None)),
    [1],
    {"a": (1,)},
    {1, 2},
    tl.float16,
    twice,
    int,
    Sizes,
]


@pytest.mark.parametrize("value", VALUES)
def test_constants_are_read_as_they_were_written(value):
    tokens = (constexpr_token(value)[0],)
    found = read([None], json.loads(json.dumps(written(tokens, {"num_warps": 4}))))
    assert found.tokens == tokens and found.values == [value] and found.options == {"num_warps": 4}


def test_arguments_are_read_as_they_were_written():
    array = np.zeros((16, 16), np.float32)
    arguments = (array, 1, 16, (1, None, Sizes(5, 0.5)), TensorDescriptor.from_tensor(array, [8, 8]))
    tokens = tuple(specialise(argument)[0] for argument in arguments)
    found = read(arguments, json.loads(json.dumps(written(tokens, {}))))
    assert found.tokens == tokens
    assert [isinstance(passed, tuple) for passed in found.passed] == [False, False, False, True, True]


@pytest.mark.parametrize("value", [object(), lambda x: x, 1j])
def test_a_constant_without_a_text(value):
    assert written((constexpr_token(value)[0],), {}) is None


def test_a_member_of_an_enum():
    token, _ = constexpr_token(Mode.FIRST)
    text = json.dumps(written((token,), {}))
    assert read(apply.params[:1], json.loads(text)).tokens == (token,)
