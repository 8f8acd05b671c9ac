"""Which arguments a kernel reads and writes, in the form in which torch asks for it."""

import inspect

import numpy as np
import pytest

import deuteron
import deuteron.language as tl
from deuteron.compat.argument_types import mangle_type, native_specialize_impl
from deuteron.compat.backends import Context, load_dialects, make_backend
from deuteron.compiler import ASTSource
from deuteron.options import Target

TARGET = Target("cpu", "", 32)


@deuteron.jit
def plain(a, b, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(a + i, mask=i < n) + tl.load(b + i), mask=i < n)


@deuteron.jit
def put(p, value):
    tl.store(p, value)


@deuteron.jit
def in_a_function_and_a_loop(a, b, out, n, BLOCK: tl.constexpr):
    for i in range(n):
        put(out + i, i)
        if i > 4:
            tl.store(b, i)


@deuteron.jit
def changing_places(a, b, out, n, BLOCK: tl.constexpr):
    source, goal = a, b
    for _ in range(n):
        tl.store(goal, tl.load(source))
        source, goal = goal, source


@deuteron.jit
def atomic(a, b, out, n, BLOCK: tl.constexpr):
    tl.atomic_add(a, 1.0)


@deuteron.jit
def through_a_number(a, b, out, n, BLOCK: tl.constexpr):
    tl.store(n.to(tl.int64).to(tl.pointer_type(tl.float32)), 1.0)


@deuteron.jit
def nothing(a, b, out, n, BLOCK: tl.constexpr):
    pass


CASES = {
    plain: (["a", "b"], ["out"]),
    in_a_function_and_a_loop: ([], ["b", "out"]),
    changing_places: (["a", "b"], ["a", "b"]),
    atomic: (["a"], ["a"]),
    through_a_number: ([], ["a", "b", "n", "out"]),
    nothing: ([], []),
}


def module_of(fn):
    backend = make_backend(TARGET)
    context = Context()
    load_dialects(context)
    backend.load_dialects(context)
    options = backend.parse_options({})
    signature = {"a": "*fp32", "b": "*fp32", "out": "*fp32", "n": "i32", "BLOCK": "constexpr"}
    source = ASTSource(fn, signature, {"BLOCK": 16}, {(0,): backend.parse_attr("D")})
    assert len(inspect.signature(source.make_ir).parameters) == 5
    return source.make_ir(TARGET, options, backend.get_codegen_implementation(options), {}, context)


@pytest.mark.parametrize("fn", CASES, ids=lambda fn: fn.__name__)
def test_what_is_read_and_written(fn):
    found = module_of(fn)
    names = ["a", "b", "out", "n"]
    accesses = {"tt.load": set(), "tt.store": set()}
    order = []

    def visit(op):
        order.append(op.get_name())
        if op.get_name() in accesses:
            accesses[op.get_name()].add(names[op.get_operand(0).id()])

    found.walk(visit)
    assert found.verify() and order[-2:] == ["tt.func", "builtin.module"] and fn.__name__ in str(found)
    assert tuple(sorted(names) for names in accesses.values()) == CASES[fn]


def test_types_of_arguments():
    aligned = np.zeros(64, np.float32)
    offset = -aligned.ctypes.data % 16 // 4
    x = aligned[offset : offset + 16]
    assert native_specialize_impl(None, x, False, True, True) == ("*fp32", "D")
    assert native_specialize_impl(None, x, True, True, False) == ("*kfp32", None)
    assert native_specialize_impl(None, 16, False, True, True) == ("i32", "D")
    assert native_specialize_impl(None, 16, False, False, True) == ("i32", None)
    assert native_specialize_impl(None, 1, False, True, True) == ("constexpr", 1)
    assert native_specialize_impl(None, None, False, True, True) == ("constexpr", None)
    assert [mangle_type(value) for value in (x[1:], 1, 2.5, 2**40, True)] == ["*fp32", "i32", "fp32", "i64", "i1"]
