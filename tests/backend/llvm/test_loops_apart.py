"""Many loops in a function: the text for code generation keeps them apart, and the machine code is what it was."""

from __future__ import annotations

import ctypes

import pytest
from processor_time import slowness, used

from deuteron.backend.llvm.compile import emit_object, optimise
from deuteron.backend.llvm.loader import load_object
from deuteron.backend.llvm.loops_apart import LONG, TOGETHER, keep_loops_apart


def loops(count: int) -> str:
    """A function that adds up i * n in its i-th loop, and one that calls it."""
    body = "".join(
        f"""
l{i}:
  %k{i} = phi i64 [ 0, %e{i} ], [ %n{i}, %l{i} ]
  %old{i} = load i64, ptr %p, align 8
  %new{i} = add i64 %old{i}, {i}
  store volatile i64 %new{i}, ptr %p, align 8
  %n{i} = add nsw i64 %k{i}, 1
  %c{i} = icmp slt i64 %n{i}, %n
  br i1 %c{i}, label %l{i}, label %e{i + 1}
e{i + 1}:
  br label %{"done" if i == count - 1 else f"l{i + 1}"}"""
        for i in range(count)
    )
    return f"""define void @f(ptr %p, i64 %n) {{
e0:
  br label %l0{body}
done:
  ret void
}}

define void @g(ptr %p) {{
  call void @f(ptr %p, i64 3)
  ret void
}}
"""


def test_every_eighth_loop_of_a_long_function_is_apart():
    text = keep_loops_apart(loops(LONG))
    assert text.count("br i1 true") == LONG // TOGETHER
    eighth = f"l{TOGETHER - 1}"
    assert f"br i1 true, label %{eighth}.entry, label %{eighth}.entry\n{eighth}.entry:\n  br label %{eighth}\n" in text
    assert f"phi i64 [ 0, %{eighth}.entry ]" in text and f"phi i64 [ 0, %e{TOGETHER} ]" in text


def test_a_function_that_is_not_long_stays_as_it_is():
    assert keep_loops_apart(loops(LONG // 2 - 2)) == loops(LONG // 2 - 2)


@pytest.mark.parametrize("cpu", ["x86-64-v3", "x86-64-v4", "cortex-a72"])
def test_the_machine_code_is_the_same(monkeypatch, cpu):
    text = optimise(loops(LONG), cpu)
    assert keep_loops_apart(text) != text
    code = emit_object(text, cpu)
    monkeypatch.setattr("deuteron.backend.llvm.compile.keep_loops_apart", lambda llir: llir)
    assert emit_object(text, cpu) == code


@pytest.mark.parametrize("count", [3, LONG])
def test_it_computes_the_same(count):
    code = emit_object(optimise(loops(count), "generic"), "generic")
    total = ctypes.c_int64(5)
    loaded = load_object(code, ["g"])
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(loaded.address("g"))
    function(ctypes.addressof(total))
    assert total.value == 5 + 3 * sum(range(count))


def test_many_loops_take_time_by_their_number():
    """512 loops took 7.7 s, 256 of them 3.7; 0.2 s now."""
    text, begin = loops(2 * LONG), used()
    emit_object(optimise(text, "x86-64-v3"), "x86-64-v3")
    assert (used() - begin) / slowness() < 2
