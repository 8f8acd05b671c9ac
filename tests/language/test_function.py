"""Functions of the language: parameters, source, cache key."""

from __future__ import annotations

import ast
import importlib.util
import linecache
import sys
from pathlib import Path

import pytest

import deuteron.language as tl
from deuteron.errors import Location, UsageError
from deuteron.language.builtin import Builtin
from deuteron.language.functions import source_functions
from deuteron.language.functions.function import Function
from deuteron.language.functions.keys import uses_of
from deuteron.language.functions.source import read_source

HEADER = (
    "import deuteron.language as tl; from deuteron.language.functions.function import *\n"
    "from deuteron.language.functions.source_functions import *\njit = Function\n"
)


@pytest.fixture
def key(tmp_path: Path):
    """key(text): the cache key of `kernel` in a module of this text."""
    count = iter(range(1000))

    def key(text: str) -> str:
        path = tmp_path / f"k{next(count)}.py"
        path.write_text(HEADER + text)
        spec = importlib.util.spec_from_file_location("k", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.kernel.cache_key

    return key


def test_parameters():
    def kernel(x_ptr, n: "tl.int32" = 4, *, BLOCK: tl.constexpr, STEP: "tl.constexpr" = 2):  # noqa: UP037
        pass

    fn = Function(kernel, do_not_specialize=["n"], do_not_specialize_on_alignment=[0])
    assert fn.arg_names == ["x_ptr", "n", "BLOCK", "STEP"]
    assert [param.is_constexpr for param in fn.params] == [False, False, True, True]
    assert [param.has_default for param in fn.params] == [False, True, False, True]
    assert [param.do_not_specialize for param in fn.params] == [False, True, False, False]
    assert [param.do_not_specialize_on_alignment for param in fn.params] == [True, False, False, False]
    assert (fn.__name__, fn.__doc__) == ("kernel", None)
    assert repr(fn) == f"Function({__name__}:test_parameters.<locals>.kernel)"


def test_call_outside_of_a_kernel_says_what_to_do():
    def add(x):
        pass

    with pytest.raises(UsageError, match=r"call it within a kernel, or launch it as a kernel with add\[grid\]"):
        Function(add)(1)


def test_only_functions_can_be_decorated():
    with pytest.raises(UsageError, match="@jit decorates functions, got 3"):
        Function(3)


def test_source_of_executed_text_comes_from_linecache():
    text = "def kernel(x):\n    return x\n"
    linecache.cache["<made>"] = (len(text), None, text.splitlines(True), "<made>")
    space: dict = {}
    exec(compile(text, "<made>", "exec"), space)
    fn = Function(space["kernel"])
    assert fn.src == text
    assert fn.location(fn.tree.body[0]) == Location("<made>", 2, 5, 13)


def test_text_without_a_source_is_an_error():
    space: dict = {}
    exec("def kernel(x):\n    return x\n", space)
    with pytest.raises(UsageError, match="cannot read the source of 'kernel'"):
        read_source(space["kernel"])


def test_a_frozen_program_without_the_file(monkeypatch):
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    names = {"__name__": "package.kernels"}
    exec("def kernel(x): return x", names)
    with pytest.raises(UsageError, match="pyinstaller --add-data package/kernels.py:package"):
        read_source(names["kernel"])


@pytest.mark.parametrize("kernel", ["def kernel(x): return {}", "kernel = lambda x: {}"])
def test_a_frozen_program_reads_what_it_brings(tmp_path, monkeypatch, kernel):
    """And no file of that name in the current folder, which PyInstaller's names of modules are relative to."""
    brought, here = tmp_path / "brought", tmp_path / "here"
    for folder, value in ((brought, "x"), (here, "1")):
        folder.mkdir()
        (folder / "kernels.py").write_text(kernel.format(value))
    names = {"__name__": "kernels"}
    exec(compile(kernel.format("x"), "kernels.py", "exec"), names)
    monkeypatch.chdir(here)
    monkeypatch.setattr(sys, "_MEIPASS", str(brought), raising=False)
    assert read_source(names["kernel"]).text.rstrip() == kernel.format("x")
    (brought / "kernels.py").unlink()
    with pytest.raises(UsageError, match="cannot read the source of .*: there is no"):
        read_source(names["kernel"])


def test_key_is_the_same_for_the_same_source(key):
    text = "@jit\ndef kernel(x):\n    return x\n"
    assert key(text) == key(text)
    assert len(key(text)) == 64


def test_key_changes_with_the_source(key):
    assert key("@jit\ndef kernel(x):\n    return x\n") != key("@jit\ndef kernel(x):\n    return -x\n")


def test_key_changes_with_a_function_that_is_called_by_a_called_one(key):
    text = "@jit\ndef a(x): return x {}\n@jit\ndef b(x): return a(x)\n@jit\ndef kernel(x): return b(x)\n"
    assert key(text.format("+ 1")) != key(text.format("+ 2"))


def test_key_changes_with_a_function_of_a_module(key):
    text = (
        "import types\nmod = types.ModuleType('mod')\n@jit\ndef a(x): return x {}\nmod.a = a\ndel a\n"
        "@jit\ndef kernel(x): return mod.a(x)\n"
    )
    assert key(text.format("+ 1")) != key(text.format("+ 2"))


def test_key_changes_with_a_constexpr_global(key):
    text = "W = tl.constexpr({})\n@jit\ndef kernel(x): return x + W\n"
    assert key(text.format(1)) != key(text.format(2))


def test_key_changes_with_a_compile_time_function(key):
    text = "@constexpr_function\ndef f(x): return x + {}\n@jit\ndef kernel(x): return f(x)\n"
    assert key(text.format(1)) != key(text.format(2))


def test_key_changes_with_what_a_function_in_a_constexpr_uses(key):
    text = "W = {}\n@tl.constexpr\ndef f(n): return n + W if n else f(1)\n@jit\ndef kernel(x): return f(x)\n"
    assert key(text.format(1)) != key(text.format(2))


def test_key_changes_with_what_a_compile_time_function_calls(key):
    text = "def g(x): return x + {}\ndef h(x): return g(x)\n@constexpr_function\ndef f(x): return h(x)\n"
    kernel = "@jit\ndef kernel(x): return f(x)\n"
    assert key(text.format(1) + kernel) != key(text.format(2) + kernel)
    text = "g = lambda x: x + {}\n@constexpr_function\ndef f(x): return g(x)\n"
    assert key(text.format(1) + kernel) != key(text.format(2) + kernel)


def test_key_changes_with_a_marked_function_of_python(key):
    made = "def made(g):\n  def f(x, _semantic): return g(x)\n  return f\n"
    text = "f = made(lambda x: x.value + {})\nf.__triton_builtin__ = True\n@jit\ndef kernel(x): return f(x)\n"
    assert key(made + text.format(1)) != key(made + text.format(2))
    assert key(made + text.format(1)) == key(made + text.format(1))


def test_key_changes_with_a_function_of_the_language_of_which_no_source_is_read(key, monkeypatch):
    read = []
    monkeypatch.setattr(source_functions, "read_source", lambda fn, lines: read.append(fn) or read_source(fn, lines))
    text = "f, held = {0}, ({0},)\n@jit\ndef kernel(x): return {1}(x, x)\n"
    for name in ("f", "held[0]"):
        for where in ("tl", "tl.math", "tl.libdevice"):
            assert key(text.format(f"{where}.fma", name)) != key(text.format(f"{where}.abs", name))
    assert {fn.__name__ for fn in read} == {"kernel"}


def test_key_says_of_functions_of_the_library_their_names(key, monkeypatch):
    monkeypatch.setattr(source_functions.SourceFunction, "num_updates", 0)
    kernel = "@jit\ndef kernel(x): return tl.{}(x, 0)\n"
    assert key(kernel.format("sum")) != key(kernel.format("max"))
    assert uses_of(tl.sum) == ("deuteron.language.reductions.sum", ())
    before = key(kernel.format("sum"))
    source = tl.sum.source
    try:
        tl.sum._unsafe_update_src(source.definition + "  # another")
        assert key(kernel.format("sum")) != before
    finally:
        tl.sum.__dict__["source"] = source


def test_functions_of_the_library_have_names_of_their_own():
    found = {
        id(each): each for namespace in (tl, tl.math, tl.standard, tl.libdevice) for each in vars(namespace).values()
    }
    kinds = (Builtin, source_functions.SourceFunction)
    names = [(each.__module__, each.__qualname__) for each in found.values() if isinstance(each, kinds)]
    assert len(set(names)) == len(names) > 100


def test_key_does_not_depend_on_other_globals(key):
    text = "W = {}\n@jit\ndef kernel(x): return x\n"
    assert key(text.format(1)) == key(text.format(2))


def test_functions_that_call_each_other_have_keys(key):
    assert key("@jit\ndef a(x): return kernel(x)\n@jit\ndef kernel(x): return a(x)\n")


@pytest.mark.parametrize(
    "function",
    [
        "@jit\ndef f(x, w=W): return x + w",
        "@jit\ndef f(x, *, w: tl.constexpr = W): return x + w",
        "@constexpr_function\ndef f(x, w=W): return x + w",
        "f = tl.constexpr(lambda x, *, w=W: x + w)",
        "g = tl.constexpr(W)\n@jit\ndef f(x, w=(g, None)): return x + w[0]",
        "@jit\ndef g(x): return x + W\n@jit\ndef f(x, w=g): return w(x)",
    ],
)
def test_key_changes_with_the_value_of_a_default(key, function):
    text = f"W = tl.constexpr({{}})\n{function}\n@jit\ndef kernel(x): return f(x)\n"
    assert key(text.format(1)) != key(text.format(2))
    assert key(text.format(1)) == key(text.format(1))


def test_key_changes_with_a_function_that_a_default_is(key):
    text = "@jit\ndef g(x): return x {}\n@jit\ndef f(x, w=g): return w(x)\n@jit\ndef kernel(x): return f(x)\n"
    assert key(text.format("+ 1")) != key(text.format("+ 2"))


@pytest.mark.parametrize("function", ["lambda x: x + {}", "partial(lambda x, y: x + y, {})", "partial(lambda x: {})"])
def test_key_changes_with_a_lambda_or_a_partial_in_a_constexpr(key, function):
    text = f"from functools import partial\nf = tl.constexpr({function})\n@jit\ndef kernel(x): return f(x)\n"
    assert key(text.format(1)) != key(text.format(2))
    assert key(text.format(1)) == key(text.format(1))


def test_source_of_a_lambda():
    one, (two, three) = lambda a: a + 1, (lambda a: lambda b: a + b, lambda a: (
        a - 1))  # fmt: skip
    inner = two(3)
    bodies = [ast.unparse(read_source(fn).tree.body[0]) for fn in (one, two, inner, three)]
    assert bodies == ["return a + 1", "return lambda b: a + b", "return a + b", "return a - 1"]
    source = read_source(three)
    assert source.location(source.tree.body[0]).line == source.first_line + 1
