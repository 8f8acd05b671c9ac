"""PTX text to data: scopes, labels, declarations, locations, operands."""

from __future__ import annotations

import time

import pytest
from emulator.case import HEADER, kernel

from deuteron.errors import IRError
from deuteron.ptx import parse
from deuteron.ptx.syntax import Immediate, Memory, Pair, Register, Symbol, Vector


def body_of(body: str, **options):
    return parse(kernel(body, [".u64 .ptr .global .align 16 x", ".align 64 .b8 map[128]"], **options)).functions["k"]


def test_operands():
    function = body_of("""  .reg .b32 %r<4>; .reg .pred %p<2>; .reg .b64 a;
  @!%p1 ld.global.v2.b32 {%r1, _}, [a+-8];
  shfl.sync.idx.b32 %r2|%p0, %r1, 0, 31, -1;
  mov.b32 %r3, 0f3F800000;
  cp.async.bulk.tensor.2d.x [a], [a, {%r1, %r2}], [x+16];""")
    load, shuffle, move, copy = function.instructions[:4]
    assert load.guard == Register(5)
    assert load.guard_negated
    assert load.operands == (Vector((Register(1), None)), Memory(Register(6), -8))
    assert shuffle.operands == (Pair(Register(2), Register(4)), Register(1), Immediate(0), Immediate(31), Immediate(-1))
    assert move.operands[1] == Immediate(0x3F800000, "f32")
    assert copy.operands[1].coordinates == Vector((Register(1), Register(2)))
    assert copy.operands[2] == Memory(Symbol("x"), 16)
    assert load.text == "@!%p1 ld.global.v2.b32 {%r1, _}, [a+-8];"


def test_scopes_have_their_own_registers_and_labels():
    scope = "{ .reg .pred p; L: @p bra L; bra END; END: }"
    function = body_of(f"  .reg .b32 p;\n  {scope}\n  {scope}\n  mov.b32 p, 1;")
    assert len(function.registers) == 3
    assert len(function.labels) == 4
    assert function.instructions[0].guard != function.instructions[2].guard
    assert function.labels[function.instructions[2].operands[0].name] == 2


def test_a_jump_by_an_index_has_the_labels_of_its_table():
    function = body_of(
        "  .reg .b32 %r<2>;\n  T: .branchtargets\n A,\n B;\n brx.idx %r1, T;\n A: mov.b32 %r1, 1;\n B: ret;"
    )
    number, targets = function.instructions[0].operands
    assert (number, [function.labels[label.name] for label in targets.elements]) == (Register(1), [1, 2])
    assert set(function.labels) == {label.name for label in targets.elements}
    assert function.instructions[0].text == "brx.idx %r1, T;"


def test_declarations():
    module = parse(
        HEADER.format(target="sm_80")
        + """.extern .shared .align 1024 .b8 smem[];
.visible .global .align 4 .u32 table[3] = {1, -2, 0x10};
.global .align 8 .u64 where[2] = {generic(table), table+8};
.entry k(.param .f32 s) .reqntid 128, 1, 1 .maxnreg 64 { .local .align 16 .b8 depot[40]; ret; }"""
    )
    assert module.target == "sm_80"
    assert module.variables["smem"].is_extern
    assert module.variables["table"].initial == (Immediate(1), Immediate(-2), Immediate(16))
    assert module.variables["where"].initial == (Symbol("table"), Symbol("table", 8))
    function = module.functions["k"]
    assert function.directives == {"reqntid": (128, 1, 1), "maxnreg": (64,)}
    assert function.variables["depot"].size == 40


def test_locations_and_skipped_sections():
    text = kernel(
        '  .loc 1 7 3\n  .pragma "nounroll";\n  bar.sync 0;\n  .loc 1 8 1, function_name $L__x, inlined_at 1 2 3', []
    )
    text += '\t.file\t1 "/tmp/a.py"\n.section .debug_info { .b8 1 \n L: .b32 .x }\n'
    first, second = parse(text).functions["k"].instructions
    assert (first.source.file, first.source.line, first.source.column) == ("/tmp/a.py", 7, 3)
    assert second.source.line == 8


@pytest.mark.parametrize("body", ["bra NOWHERE;", "add.s32 1 2;", "mov.b32 ], 1;", "{ ret;"])
def test_bad_text_names_the_line(body: str):
    with pytest.raises(IRError, match="PTX line"):
        parse(kernel(f"  {body}", []))


def test_five_thousand_lines_a_second():
    lines = "  mad.lo.s32 %r1, %r2, 5, %r3;\n  @%p1 st.shared.v2.b32 [%r1+16], {%r2, %r3};\n" * 2500
    text = kernel(f"  .reg .b32 %r<4>; .reg .pred %p<2>;\n{lines}", [])
    start = time.process_time()
    assert len(parse(text).functions["k"].instructions) == 5001
    assert time.process_time() - start < 1
