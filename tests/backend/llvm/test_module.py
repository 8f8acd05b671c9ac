"""What the functions of a module share, and that its text is the same each time."""

from __future__ import annotations

import re

import llvmlite.binding as llvm
import pytest

from deuteron.backend.llvm.compile import optimise
from deuteron.backend.llvm.module import Module
from deuteron.backend.llvm.types import const, vector_const


def test_equal_constants_share_a_global():
    module = Module("m")
    first = module.constant(vector_const("float", [1.0, 2.0]))
    assert module.constant(vector_const("float", [1.0, 2.0])) == first
    assert module.constant(vector_const("float", [1.0, 3.0])) != first
    assert module.text().count("private unnamed_addr constant") == 2


def test_strings_are_escaped():
    module = Module("m")
    module.string('a "b" \\ %\n\u00e9')
    assert 'c"a \\22b\\22 \\5C %\\0A\\C3\\A9\\00"' in module.text()
    optimise(module.text(), "generic", opt_level=0)


def test_a_function_of_the_module_is_not_declared():
    module = Module("m")
    b = module.function("caller", "i32", [], linkage="external")
    b.ret(b.call("i32", "callee", const("i32", 1)))
    callee = module.function("callee", "i32", [("i32", "x")])
    callee.ret(callee.parameters[0])
    assert "declare" not in module.text()
    assert module.has_function("callee")
    assert "ret i32 1" in optimise(module.text(), "generic")


def test_external_functions_are_hidden():
    module = Module("m")
    module.function("f", "void", [], linkage="external").ret()
    module.function("g", "void", []).ret()
    assert "define hidden void @f()" in module.text()
    assert "define internal void @g()" in module.text()


def test_text_is_made_the_same_each_time():
    def make() -> str:
        module = Module("m")
        b = module.function("f", "void", [("ptr", "p")], linkage="external")
        b.set_debug_location(module.debug_location(b, "k.py", 1, 2))
        b.store(const("float", 0.5), b.parameters[0])
        b.ret()
        return module.text()

    assert make() == make()


def test_places_of_several_files_keep_their_file():
    module = Module("m")
    b = module.function("f", "void", [("ptr", "p")], linkage="external")
    for file in ("k.py", "helpers.py", "k.py"):
        b.set_debug_location(module.debug_location(b, f"/src/{file}", 3, 1))
        b.store(const("float", 0.5), b.parameters[0])
    b.ret()
    text = module.text()
    assert text.count("DIFile") == 2 and text.count("DILexicalBlockFile") == 1
    assert len(re.findall(r"!DILocation\(line: 3", text)) == 2


@pytest.mark.parametrize(("column", "known"), [(65535, 65535), (65536, 0), (1 << 20, 0)])
def test_columns_that_llvm_does_not_take_are_not_known(column, known):
    module = Module("m")
    b = module.function("f", "void", [], linkage="external")
    b.set_debug_location(module.debug_location(b, "k.py", 3, column))
    b.ret()
    text = module.text()
    assert f"!DILocation(line: 3, column: {known}," in text
    llvm.parse_assembly(text)
