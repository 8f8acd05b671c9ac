"""The builder: LLVM accepts every instruction, names come from hints, flags and metadata are where they belong."""

from __future__ import annotations

import pytest

from deuteron.backend.llvm.builder import Builder, mangle
from deuteron.backend.llvm.compile import optimise
from deuteron.backend.llvm.module import Module
from deuteron.backend.llvm.types import Value, const, vector, vector_const

INTEGER_OPERATIONS = ["add", "sub", "mul", "sdiv", "udiv", "srem", "urem", "shl", "lshr", "ashr", "and_", "or_", "xor"]


def function(fast_math: str = "") -> Builder:
    return Module("m", fast_math).function(
        "f", "void", [("ptr", "p"), ("i32", "i"), ("float", "x")], linkage="external"
    )


def verified(b: Builder) -> str:
    """The text of the module, which LLVM has parsed and verified."""
    b.ret()
    optimise(b.module.text(), "generic", opt_level=0)
    return b.module.text()


@pytest.mark.parametrize("lanes", [1, 4])
def test_every_operation_is_accepted(lanes):
    b = function("contract")
    p, i, x = b.parameters
    integer, number = b.splat(i, lanes), b.splat(x, lanes)
    for name in INTEGER_OPERATIONS:
        integer = getattr(b, name)(integer, const(integer.type, 3))
    for name in ("fadd", "fsub", "fmul", "fdiv", "frem"):
        number = getattr(b, name)(number, const(number.type, 3.0))
    number = b.fneg(b.freeze(number))
    is_less = b.and_(b.icmp("slt", integer, const(integer.type, 5)), b.fcmp("olt", number, const(number.type, 5.0)))
    integer = b.select(is_less, integer, b.bitcast(number, integer.type))
    wide = b.sext(b.trunc(b.zext(integer, vector("i64", lanes)), vector("i8", lanes)), vector("i64", lanes))
    double = b.fpext(number, vector("double", lanes))
    b.store(b.fptrunc(double, number.type), p)
    b.store(b.fptosi(double, wide.type), p)
    b.store(b.fptoui(double, wide.type), p)
    b.store(b.fadd(b.sitofp(wide, double.type), b.uitofp(wide, double.type)), p)
    b.store(b.ptrtoint(b.inttoptr(wide, vector("ptr", lanes)), wide.type), p)
    text = verified(b)
    assert text.count("contract") == 6


def test_memory_operations_are_accepted():
    b = function()
    p, i, x = b.parameters
    ptrs = b.gep("float", p, vector_const("i64", [0, 5, 2, 9]))
    mask = b.icmp("sgt", b.splat(i, 4), vector_const("i32", [0, 1, 2, 3]))
    value = b.masked_load("<4 x float>", p, 4, mask, const("<4 x float>", 9.0))
    b.masked_store(value, p, 4, mask)
    b.masked_store(b.masked_gather("<4 x float>", ptrs, 4, mask), p, 4, mask)
    b.store(b.shufflevector(value, None, [3, -1, 0, 0]), b.alloca("<4 x float>"))
    b.store(b.extractelement(b.insertelement(value, x, i), i), p)
    b.atomicrmw("fadd", p, x)
    b.cmpxchg(p, const("i32", 0), i, "acq_rel", "acquire")
    b.fence("seq_cst")
    verified(b)


def test_bytes_that_are_not_stored_do_not_poison_their_neighbours():
    b = function()
    spread = b.shufflevector(const("<4 x i8>", 7), None, [0, -1, 1, -1])
    b.masked_store(spread, b.parameters[0], 1, vector_const("i1", [1, 0, 1, 0]))
    assert f"freeze <4 x i8> {spread.text}" in verified(b)


@pytest.mark.parametrize("lanes", [1, 2, 16])
def test_splat(lanes):
    b = function()
    assert b.splat(const("float", 1.0), lanes).is_constant
    assert b.splat(b.parameters[2], lanes).type == vector("float", lanes)
    verified(b)


def test_names_come_from_hints_and_are_unique():
    b = function()
    p = b.parameters[0]
    names = [b.load("i32", p, hint=hint).text for hint in ("acc", "acc", "acc.1", "acc_1", "2x", "größe", "p", "")]
    assert names[0] == "%acc"
    assert len(set(names)) == len(names)
    assert verified(b).count("%acc") >= 3


def test_a_cast_to_the_same_type_is_no_instruction():
    b = function()
    assert b.zext(b.parameters[1], "i32") is b.parameters[1]


def test_flags_given_replace_the_default():
    b = function("contract")
    x = b.parameters[2]
    b.fadd(x, x, flags="")
    b.fmul(x, x, flags="nnan")
    b.add(b.parameters[1], b.parameters[1], flags="nsw nuw")
    text = verified(b)
    assert "fadd float %x, %x" in text
    assert "fmul nnan float %x, %x" in text
    assert "add nsw nuw i32" in text


def test_externals_are_declared_once_and_intrinsics_never():
    b = function()
    x = b.parameters[2]
    for _ in range(2):
        b.intrinsic("llvm.fma", "float", x, x, x)
        b.call("i32", "getpid")
        b.call_variadic("i32", "printf", [b.module.string("%d")], b.parameters[1])
    text = verified(b)
    assert text.count("declare") == 2
    assert "call i32 (ptr, ...) @printf" in text


@pytest.mark.parametrize(
    ("type", "name"), [("<8 x float>", "v8f32"), ("i1", "i1"), ("<4 x ptr>", "v4p0"), ("bfloat", "bf16")]
)
def test_mangled_types(type, name):
    assert mangle(type) == name


def test_parameter_attributes_are_not_part_of_the_operand():
    b = Module("m").function("g", "void", [("ptr noalias align 16", "p")], linkage="external")
    assert b.parameters[0] == Value("ptr", "%p")
    assert "@g(ptr noalias align 16 %p)" in verified(b)


def test_instructions_carry_the_debug_location():
    b = function()
    b.set_debug_location(b.module.debug_location(b, "/src/k.py", 12, 5))
    b.add(b.parameters[1], const("i32", 1))
    text = verified(b)
    assert "!DILocation(line: 12, column: 5" in text
    assert '!DIFile(filename: "k.py", directory: "/src")' in text
    assert "add i32 %i, 1, !dbg !" in text


def test_memory_of_a_call_is_in_its_entry_block():
    """Wherever it is asked for; kernels with vectors on the stack ended where one block moved it."""
    b = function()
    with b.loop(const("i32", 0), b.parameters[1], const("i32", 1), [], hint="i"):
        place = b.alloca("i32", 3, align=4)
        b.store(const("i32", 5), place)
    text = verified(b)
    assert text.index(" = alloca i32, i32 3, align 4") < text.index("\n  br ") and text.count("alloca") == 1
