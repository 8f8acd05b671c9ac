"""From text to machine code: what LLVM refuses is an InternalError, and gcc takes the assembly."""

from __future__ import annotations

import subprocess
import sys

import pytest

from deuteron.backend.llvm.compile import emit_assembly, emit_object, external_symbols, optimise
from deuteron.backend.llvm.loader import load_object
from deuteron.backend.llvm.module import Module
from deuteron.backend.llvm.types import array_const, const
from deuteron.errors import InternalError, IRError

BROKEN = [
    "define i32 @f() { ret i64 0 }",
    "define void @f() { br label %nowhere }",
    "define void @f() { entry: br label %entry }",
    "define i32 @f() { a: br label %b b: ret i32 %x c: %x = add i32 1, 1 ret i32 0 }",
    "nonsense",
]


@pytest.mark.parametrize("text", BROKEN)
def test_broken_ir_is_an_internal_error(text):
    with pytest.raises(InternalError, match="LLVM does not accept"):
        emit_object(text, "x86-64-v3")


LETHAL = [
    'module asm "bogus"',
    'define void @f() {\n  call void asm sideeffect "bogus", ""()\n  ret void\n}',
    "declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()\ndefine i32 @f() {\n"
    "  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n  ret i32 %t\n}",
]


@pytest.mark.parametrize("text", LETHAL)
def test_what_would_end_the_process_is_refused(text):
    with pytest.raises(IRError, match="not accepted"):
        emit_object(text, "x86-64-v3")


def test_names_with_asm_in_them_are_accepted():
    text = 'define void @asm(ptr %asm) {\n  call void @asm(ptr %asm)\n  ret void\n}\n!0 = !{!"call asm"}\n'
    assert "@asm" in optimise(text, "x86-64-v3")


def square_table() -> Module:
    """`f(i)`: an element of a table, by way of a function of its own; prints it first."""
    module = Module("m")
    helper = module.function("helper", "i32", [("i64", "i")], attributes="nounwind noinline")
    table = module.constant(array_const("i32", [i * i for i in range(20)]))
    helper.ret(helper.load("i32", helper.gep("i32", table, helper.parameters[0])))
    b = module.function("f", "i32", [("i64", "i")], linkage="external")
    value = b.call("i32", "helper", b.parameters[0])
    b.call_variadic("i32", "printf", [module.string("%d\n")], value)
    b.ret(value)
    return module


def test_external_symbols_of_assembly():
    assembly = emit_assembly(optimise(square_table().text(), "x86-64-v3"), "x86-64-v3")
    assert external_symbols(assembly) == {"printf"}


def test_a_call_of_libm_shows():
    module = Module("m")
    b = module.function("f", "float", [("float", "x")], linkage="external")
    b.ret(b.frem(b.parameters[0], const("float", 3.0)))
    assert external_symbols(emit_assembly(module.text(), "x86-64-v3")) == {"fmodf"}


MAIN = "extern int f(long); int main(void) { return f(7) == 49 ? 0 : 1; }"
MAIN_OF_LIBRARY = "extern int f(long); int g(void) { return f(7); }"


@pytest.mark.parametrize("flags", [["-pie", "-fPIE"], ["-no-pie", "-static"]])
def test_gcc_assembles_and_links_it(tmp_path, flags):
    (tmp_path / "f.s").write_text(emit_assembly(optimise(square_table().text(), "x86-64-v3"), "x86-64-v3"))
    (tmp_path / "main.c").write_text(MAIN)
    subprocess.run(["gcc", "-Wl,-z,text", *flags, "main.c", "f.s", "-o", "main"], cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "main"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "49\n")


def test_a_shared_library_hides_the_symbol(tmp_path):
    (tmp_path / "f.s").write_text(emit_assembly(optimise(square_table().text(), "x86-64-v3"), "x86-64-v3"))
    (tmp_path / "g.c").write_text(MAIN_OF_LIBRARY)
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-Wl,-z,text,-z,defs", "g.c", "f.s", "-o", "g.so"], cwd=tmp_path, check=True
    )
    symbols = subprocess.run(["nm", "-D", "g.so"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert " T g\n" in symbols
    assert " f\n" not in symbols


def test_level_0_only_parses():
    text = "define i32 @f() {\n  %unused = add i32 1, 2\n  ret i32 0\n}\n"
    assert "%unused" in optimise(text, "generic", opt_level=0)
    assert "%unused" not in optimise(text, "generic", opt_level=1)


def test_an_object_with_an_unknown_symbol_is_an_internal_error():
    module = Module("m")
    b = module.function("f", "void", [], linkage="external")
    b.call("void", "there_is_no_such_function")
    b.ret()
    with pytest.raises(InternalError, match="cannot be loaded"):
        load_object(emit_object(module.text(), "generic"), ["f"])


def test_two_processes_emit_the_same_bytes():
    program = (
        "from deuteron.backend.llvm.compile import emit_object, optimise;"
        "import hashlib, sys; t = sys.stdin.read();"
        "print(hashlib.sha256(emit_object(optimise(t, 'x86-64-v3'), 'x86-64-v3')).hexdigest())"
    )
    text = square_table().text()
    runs = [
        subprocess.run([sys.executable, "-c", program], input=text, capture_output=True, text=True) for _ in range(2)
    ]
    assert len(runs[0].stdout) == 65, runs[0].stderr
    assert runs[0].stdout == runs[1].stdout


def loaded_again_after(num_branches: int) -> str:
    """Both branches load what is loaded again, after more branches that store elsewhere."""
    between = "".join(
        f"""
        b{i}: %c{i} = load volatile i1, ptr %q
        br i1 %c{i}, label %t{i}, label %b{i + 1}
        t{i}: store i32 {i}, ptr %q
        br label %b{i + 1}"""
        for i in range(num_branches)
    )
    return f"""define i32 @f(ptr noalias %p, ptr noalias %q) {{
        %c = load volatile i1, ptr %q
        br i1 %c, label %left, label %right
        left: %l = load i32, ptr %p
        store volatile i32 %l, ptr %q
        br label %b0
        right: %r = load i32, ptr %p
        %s = add i32 %r, 1
        store volatile i32 %s, ptr %q
        br label %b0{between}
        b{num_branches}: %y = load i32, ptr %p
        ret i32 %y
    }}"""


@pytest.mark.parametrize(("num_branches", "is_found"), [(30, True), (80, False)])
def test_what_a_load_finds_is_looked_for_in_so_many_blocks(num_branches, is_found):
    """All blocks before each load would take time that is square in the kernel's length."""
    text = optimise(loaded_again_after(num_branches), "x86-64-v3")
    assert ("%y = load" not in text) == is_found
