"""What a function of the language asks of in Python is known at compile time: no value of the kernel counts as true."""

import re

import numpy as np
import pytest

import deuteron
import deuteron.language as tl
from deuteron.errors import CompilationError


@deuteron.jit
def add(x, y):
    return x + y


@deuteron.jit
def flagged(p, n, KIND: tl.constexpr):
    i = tl.arange(0, 16)
    x = tl.load(p + i[:, None] * 16 + i[None, :])
    if KIND == "trans_a":
        tl.dot(x, x, trans_a=n)
    elif KIND == "reverse":
        tl.cumsum(x, 0, reverse=n)
    elif KIND == "reverse by place":
        tl.associative_scan(x, 0, add, n)
    elif KIND == "keep_dims":
        tl.sum(x, 0, keep_dims=n)
    elif KIND == "volatile":
        tl.load(p + i, volatile=n)
    elif KIND == "ieee_rounding":
        tl.softmax(x, ieee_rounding=n)
    elif KIND == "hex":
        tl.device_print("x", i, hex=n)
    elif KIND == "is_pure":
        tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [i], tl.int32, is_pure=n, pack=1)
    elif KIND == "max_num_imprecise_acc":
        tl.dot(x, x, max_num_imprecise_acc=n)
    elif KIND == "strides":
        tl.make_tensor_descriptor(p, [16, 16], n, [16, 16])


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        *[
            (one, f"'{one}' of '")
            for one in ("trans_a", "reverse", "keep_dims", "volatile", "ieee_rounding", "hex", "is_pure")
        ],
        (
            "reverse by place",
            "'reverse' of 'associative_scan' is True or False, got int32, which is known only at run time",
        ),
        ("max_num_imprecise_acc", "is an integer that is known at compile time, got int32"),
        ("strides", "expected 2 integers, as the block has, got int32"),
    ],
)
def test_what_is_known_only_at_run_time_is_no_flag(kind, message):
    with pytest.raises(CompilationError, match=re.escape(message)):
        flagged.warmup(np.zeros((16, 16), np.float32), 0, KIND=kind, grid=(1,))


@deuteron.jit
def sorted_either_way(x, out, n):
    i = tl.arange(0, 16)
    tl.store(out + i, tl.sort(tl.load(x + i), descending=n))


@pytest.mark.parametrize("descending", [0, 1])
def test_a_flag_of_a_function_in_the_language_may_be_a_value(rng, descending):
    x, out = rng.standard_normal(16).astype(np.float32), np.zeros(16, np.float32)
    sorted_either_way[(1,)](x, out, descending)
    np.testing.assert_array_equal(out, np.sort(x)[:: -1 if descending else 1])
