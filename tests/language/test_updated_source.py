"""`_unsafe_update_src`: another text for a function; kernels that use it are compiled anew."""

import inspect
from types import FunctionType

import numpy as np
import pytest

import deuteron
import deuteron.language as tl
from deuteron.errors import CompilationError, UsageError


@deuteron.constexpr_function
def width():
    return 1


@deuteron.jit
def added(x):
    return x + width()


@deuteron.jit
def kernel(x_ptr, FN: tl.constexpr):
    tl.store(x_ptr, FN(tl.load(x_ptr)))


def launched():
    x = np.zeros(1, np.int32)
    kernel[(1,)](x, added)
    return int(x[0])


def test_src_is_the_definition():
    assert added.src == "def added(x):\n    return x + width()\n" and added.raw_src[0] == "@deuteron.jit\n"
    assert width.src.startswith("def width()") and added.starting_line_number + 1 == added.source.definition_line


@pytest.mark.parametrize(("function", "old", "new", "result"), [(added, "x +", "x + 5 +", 6), (width, "1", "3", 3)])
def test_kernels_that_use_it_are_compiled_anew(function, old, new, result):
    source, key = function.src, added.cache_key
    assert launched() == 1
    function._unsafe_update_src(source.replace(old, new))
    try:
        assert launched() == result and added.cache_key != key
    finally:
        function._unsafe_update_src(source)
    assert launched() == 1 and added.cache_key == key


def test_src_may_be_set_as_before_triton_3_4():
    source = added.src
    with pytest.warns(UserWarning, match="_unsafe_update_src"):
        added.src = source.replace("x +", "x + 7 +")
    assert launched() == 8
    added._unsafe_update_src(source)


def test_a_function_within_another_has_its_key_back():
    @deuteron.jit
    def inner(x):
        return x + 1

    source, key = inner.src, inner.cache_key
    place = inner.location(inner.tree.body[0])
    inner._unsafe_update_src(source.replace("1", "2"))
    assert inner.cache_key != key and inner.src == source.replace("1", "2")
    assert inner.location(inner.tree.body[0]) == place
    inner._unsafe_update_src(source)
    assert inner.cache_key == key


def test_the_names_that_a_function_can_use():
    step = deuteron.language.constexpr(3)

    @deuteron.jit
    def inner(x):
        return x + step

    scope = inner.get_capture_scope()
    assert scope["step"] is step and scope["added"] is added and "step" not in added.get_capture_scope()
    assert not inner.is_gluon()


def test_a_kernel_that_a_program_makes_of_a_text():
    def template():
        pass

    made = FunctionType(template.__code__, {**globals(), "STEP": tl.constexpr(4)})
    made.__name__ = "stepped"
    made.__signature__ = inspect.signature(lambda x_ptr: None)
    fn = deuteron.jit(made)
    fn._unsafe_update_src("def stepped(x_ptr):\n    tl.store(x_ptr, tl.load(x_ptr) + STEP)\n")
    x = np.ones(1, np.int32)
    fn[(1,)](x)
    assert x[0] == 5


def test_a_program_says_where_its_function_comes_from():
    @deuteron.jit
    def copied(x_ptr):
        tl.store(x_ptr, tl.load(x_ptr) + missing)  # noqa: F821

    line, column = copied.def_file_line_number, copied.def_file_col_number
    assert copied.starting_line_number == line - 1 and column == 5 and copied.file_name == __file__
    copied.raw_src = added.raw_src
    copied.file_name, copied.starting_line_number = added.file_name, 3
    copied.def_file_line_number, copied.def_file_col_number = line + 20, column + 4
    assert copied.raw_src == added.raw_src and copied.file_name == added.file_name
    assert copied.location(copied.tree.body[0]).line == line + 21 and copied.tree.body[0].col_offset == 12
    with pytest.raises(CompilationError, match=f"test_updated_source.py:{line + 21}:.*\n?.*missing"):
        copied[(1,)](np.ones(1, np.int32))


def test_a_moved_function_computes_the_same():
    place = added.starting_line_number, added.def_file_line_number
    added.starting_line_number += 5
    assert added.def_file_line_number == place[1] + 5 and launched() == 1
    added.def_file_line_number = place[1]
    assert launched() == 1


def test_a_text_that_is_no_function():
    for text in ("def added(:", "x = 1\n"):
        with pytest.raises(UsageError, match="the new source of 'added'"):
            added._unsafe_update_src(text)


def test_hash_and_globals_are_computed():
    added.hash, added.used_global_vals = None, {}
    assert added.hash == added.cache_key and not added.used_global_vals
    with pytest.raises(UsageError):
        added.hash = "abc"
