"""Functions of Python that a kernel calls while it is compiled: methods and operators of run-time values in them."""

from importlib import import_module

import numpy as np
import pytest

import deuteron as triton
import deuteron.compat  # noqa: F401  (there is `triton.language.core` then)
import deuteron.language as tl

core = import_module("triton.language.core")
semantic = import_module("triton.language.semantic")


@core.builtin
def rounded(x, offset, _semantic=None):
    assert isinstance(x, tl.tensor) and isinstance(x, core.base_value) and type(x) is tl.tensor
    assert isinstance(offset, tl.constexpr)
    if x.dtype.is_floating():
        x = x.to(tl.int32, _semantic=_semantic)
    return x.__add__(offset, _semantic=_semantic)


@core.builtin
def mixed(x, y, _semantic=None):
    """Operators, those of the right operand, methods of methods, and tuples."""
    total = (1 + x) * 2 - y
    halves = total.reshape((2, 2), _semantic=_semantic).T.reshape(4, _semantic=_semantic)
    return core.tuple([halves, x.__rsub__(10, _semantic=_semantic), -x[None, :].sum(0)])


@core.extern
def of_older_triton(x, _builder=None):
    x = semantic.cast(x, tl.float32, _builder)
    x = semantic.mul(x, semantic.to_tensor(2, _builder), True, builder=_builder)
    return semantic.bitcast(x, tl.int32, _builder)


@core.builtin
def by_semantic(x, _semantic=None):
    both = _semantic.logical_and(_semantic.greater_than(x, 0), _semantic.less_than(x, 3))
    return _semantic.where(both, _semantic.add(x, x, True), _semantic.full([4], 7, tl.int32))


@core.builtin
def stored(ptr, offsets, x, _semantic=None):
    ptr = ptr.__add__(offsets, _semantic=_semantic)
    assert ptr.dtype.is_ptr() and ptr.type.scalar.element_ty == tl.int32
    ptr.store(x, _semantic=_semantic)


@triton.jit
def kernel(x_ptr, out_ptr, total_ptr):
    at = tl.arange(0, 4)
    x = tl.load(x_ptr + at)
    stored(out_ptr, at, rounded(x, 1))
    number = rounded(x, 0)
    first, second, third = mixed(number, at)
    stored(out_ptr, 4 + at, first)
    stored(out_ptr, 8 + at, second.__mul__(2).__radd__(1))
    stored(out_ptr, 12 + at, third)
    stored(out_ptr, 16 + at, of_older_triton(number))
    stored(out_ptr, 20 + at, by_semantic(number))


def test_methods_and_operators(poisoned, check):
    x, out = np.array([0.5, 1.5, 2.5, 3.5], np.float32), poisoned("int32", 24)
    kernel[(1,)](x, out, out)
    whole, at = np.arange(4), np.arange(4)
    total = (1 + whole) * 2 - at
    expected = [whole + 1, total.reshape(2, 2).T.ravel(), 1 + (10 - whole) * 2, -whole]
    expected += [(2.0 * whole).astype(np.float32).view(np.int32), np.where((whole > 0) & (whole < 3), 2 * whole, 7)]
    check(out, np.concatenate(expected))


@core.builtin
def decided(x, _semantic=None):
    return x if x > 0 else -x


@core.builtin
def misspelt(x, _semantic=None):
    return x.sqroot(_semantic=_semantic)


@core.builtin
def without_semantic(x):
    return x.to(tl.int32)


@core.builtin
def op_of_triton(x, _semantic=None):
    return _semantic.builder.create_fadd(x.handle, x.handle)


@triton.constexpr_function
def is_tensor(x):
    return isinstance(x, tl.tensor)


@triton.constexpr_function
def doubled(x):
    return x + x


@triton.jit
def one_kernel(x_ptr, FUNCTION: tl.constexpr):
    tl.store(x_ptr, FUNCTION(tl.load(x_ptr)))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (decided, "TypeError: a value of type int1 is known only when the kernel runs, and decides nothing"),
        (misspelt, "AttributeError: a value of type fp32 has no 'sqroot'"),
        (without_semantic, "run-time values have attributes only, in a function of Python without a parameter"),
        (op_of_triton, "'create_fadd'"),
        (doubled, "'doubled' runs at compile time and needs compile-time values, got (fp32)."),
    ],
)
def test_what_is_refused(function, message):
    with pytest.raises(triton.CompilationError) as raised:
        one_kernel[(1,)](np.ones(1, np.float32), FUNCTION=function)
    assert message in str(raised.value)
    assert "FUNCTION(tl.load(x_ptr))" in str(raised.value)


@triton.jit
def asking_kernel(out_ptr):
    pid = tl.program_id(0)
    tl.static_assert(is_tensor(pid))
    tl.static_assert(not is_tensor(3))
    tl.store(out_ptr, 1)


def test_functions_of_python_see_a_tensor(poisoned, check):
    out = poisoned("int32", 1)
    asking_kernel[(1,)](out)
    check(out, np.ones(1, np.int32))


@triton.jit
def classes_kernel(out_ptr, pair, N: tl.constexpr):
    pid = tl.program_id(0)
    tl.static_assert(isinstance(pid, tl.tensor | tl.constexpr) and isinstance(pid, (tl.tuple, (tl.tensor, int))))
    tl.static_assert(isinstance(pid, core.base_value) and isinstance(N, core.base_value))
    tl.static_assert(isinstance(pair, core.base_value) and not isinstance(pid, tl.constexpr | tl.tuple))
    tl.static_assert(isinstance(pid.type, core.base_type) and N.__add__(2) == 6)
    tl.store(out_ptr, pid)


def test_isinstance_of_unions_and_of_base_classes(poisoned, check):
    out = poisoned("int32", 1)
    classes_kernel[(1,)](out, (1, 2), N=4)
    check(out, np.zeros(1, np.int32))
