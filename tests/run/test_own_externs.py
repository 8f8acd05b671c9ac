"""Functions that programs mark as Triton marks its own: libdevice's by symbol, and Python that calls the language."""

from importlib import import_module

import numpy as np
import pytest

import deuteron as triton
import deuteron.compat  # noqa: F401  (there is `triton.language.core` then)
import deuteron.language as tl

core = import_module("triton.language.core")
sort_impl = import_module("triton.language.standard").sort_impl


@core.extern
def power(base, exponent, _semantic=None):
    floats, doubles = core.dtype("fp32"), core.dtype("fp64")
    table = {
        (floats, floats): ("__nv_powf", floats),
        (floats, core.dtype("int32")): ("__nv_powif", floats),
        (doubles, doubles): ("__nv_pow", doubles),
    }
    return core.extern_elementwise("libdevice", "", [base, exponent], table, is_pure=True, _semantic=_semantic)


@core.extern
def leading_zeros(x, _builder=None):
    """As before Triton 3.4; a scalar as well as a tile."""
    table = {(core.dtype("uint32"),): ("__nv_clz", core.int32)}
    return core.extern_elementwise("", "", [x], table, True, _builder=_builder)


@core.builtin
def with_sum(values, other, _semantic=None):
    """Of a tuple and a number, which is a constexpr here."""
    assert isinstance(other, core.constexpr)
    first, *_ = values.values
    total = first + other if isinstance(first, core.constexpr) else core.add(first, other, _semantic=_semantic)
    return core.tuple([*values.values, total])


@core.builtin
def lanes(_semantic=None):
    """As many as there are threads of warps, which options say."""
    options = _semantic.builder.options
    assert options.arch.startswith("sm") == (options.backend_name == "cuda")
    return core.constexpr(options.num_warps * 32)


def marked(fn):
    setattr(fn, core.TRITON_BUILTIN, True)
    return fn


@marked
def copies(x, count, _semantic=None):
    return core.tuple([_semantic.to_tensor(x)] * core._unwrap_if_constexpr(count))


@triton.jit
def options_kernel(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.store(out_ptr + tl.arange(0, 4), sort_impl(x, 4, 0, True))
    tl.store(out_ptr + 4 + tl.arange(0, N), sort_impl(x))
    first, second, third = copies(2.5, 3)
    tl.store(out_ptr + 4 + N, first + second + third + lanes())


@triton.jit
def own_kernel(x_ptr, bits_ptr, out_ptr, zeros_ptr, first, N: tl.constexpr):
    offsets = tl.arange(0, N)
    x = tl.load(x_ptr + offsets)
    tl.store(out_ptr + offsets, power(x, 2) + power(x, 1.5) + power(x, offsets))
    pair = with_sum((x,), 3)
    tl.static_assert(with_sum((4, 5), 6)[2] == 10)
    tl.store(out_ptr + N + offsets, pair[1] - pair[0])
    tl.store(zeros_ptr + offsets, leading_zeros(tl.load(bits_ptr + offsets)))
    tl.store(zeros_ptr + N, leading_zeros(first.to(tl.uint32)))


def test_values(draw, poisoned, check):
    x, bits = draw("float32", 32, 0.5, 1.5), draw("uint32", 32)
    out, zeros = poisoned("float32", 64), poisoned("int32", 33)
    own_kernel[(1,)](x, bits, out, zeros, 54321, N=32)
    wide, exponents = x.astype(np.float64), np.arange(32)
    check(out[:32], wide**2 + wide**1.5 + wide**exponents, ulps=16)
    np.testing.assert_allclose(out[32:], 3, rtol=1e-6)
    check(zeros, np.array([32 - int(number).bit_length() for number in (*bits, 54321)]))


def test_what_functions_ask_of_the_kernel(draw, poisoned, check):
    x, out = draw("float32", 16), poisoned("float32", 21)
    options_kernel[(1,)](x, out, N=16, num_warps=2)
    expected = np.sort(x)
    check(out, np.concatenate([expected[:-5:-1], expected, [7.5 + 64]]), ulps=0)
    assert core.is_builtin(lanes) and core.is_builtin(tl.load) and not core.is_builtin(len)


@core.extern
def unknown(x, _semantic=None):
    table = {(core.dtype("fp32"),): ("my_function", core.dtype("fp32"))}
    return core.extern_elementwise("mine", "/lib/mine.bc", [x], table, is_pure=True, _semantic=_semantic)


@core.extern
def own_version(x, _semantic=None):
    table = {(core.dtype("fp32"),): ("__nv_tanhf", core.dtype("fp32"))}
    return core.extern_elementwise("mine", "/lib/mine.bc", [x], table, is_pure=True, _semantic=_semantic)


@core.extern
def mistaken(x, _semantic=None):
    table = {(core.dtype("fp32"),): ("__nv_clz", core.dtype("fp32"))}
    return core.extern_elementwise("", "", [x], table, is_pure=True, _semantic=_semantic)


@core.extern
def too_many(x, _semantic=None):
    table = {(core.dtype("fp32"),): ("__nv_tanhf", core.dtype("fp32"))}
    return core.extern_elementwise("", "", [x, x], table, is_pure=True, _semantic=_semantic)


@core.extern
def no_table(x, _semantic=None):
    return core.extern_elementwise("", "", [x], {"fp32": "__nv_tanhf"}, is_pure=True, _semantic=_semantic)


@core.builtin
def inside_triton(x, _semantic=None):
    return _semantic.make_tensor(x.handle, x.type)


@triton.jit
def one_kernel(x_ptr, FUNCTION: tl.constexpr):
    tl.store(x_ptr, FUNCTION(tl.load(x_ptr)))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (unknown, "'my_function' is no function of libdevice, and others are not linked. Write it in the language"),
        (own_version, "'__nv_tanhf' of /lib/mine.bc: only libdevice's is known, nothing is linked."),
        (mistaken, "'__nv_clz' is (int32) -> int32, not (fp32) -> fp32. Correct the entry."),
        (too_many, "'__nv_tanhf' takes 1 argument, tl.core.extern_elementwise got 2."),
        (no_table, "arg_type_symbol_dict of tl.core.extern_elementwise has 'fp32': '__nv_tanhf'; an entry is such as"),
        (
            inside_triton,
            "'make_tensor' is Triton's own, which Deuteron has not. Call functions of the language with it",
        ),
    ],
)
def test_what_is_refused(function, message):
    with pytest.raises(triton.CompilationError) as raised:
        one_kernel[(1,)](np.ones(1, np.float32), FUNCTION=function)
    assert message in str(raised.value)
    assert "FUNCTION(tl.load(x_ptr))" in str(raised.value)
