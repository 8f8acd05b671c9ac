"""Lines of texts and the places that made them: each language, with calls, regions, what is not known."""

import pytest

from deuteron.errors import Location
from deuteron.explorer.texts import located
from deuteron.ir import location

MLIR = """\
module {
  tt.func public @k(%x: i32 loc(#loc1)) {
    %0 = scf.if %c -> (i32) {
      %1 = arith.addi %x, %x : i32 loc(#loc4)
      scf.yield %1 : i32 loc(#loc2)
    } else {
      scf.yield %x : i32 loc(#loc2)
    } loc(#loc2)
    %2 = "tt.reduce"(%t) ({
    ^bb0(%a: f32 loc(#loc5), %b: f32 loc(#loc5)):
      tt.reduce.return %a : f32 loc(#loc5)
    }) : (tensor<4xf32>) -> f32 loc(#loc5)
    tt.return loc(#loc6)
  } loc(#loc)
} loc(#loc)
#loc = loc("/k.py":1:1)
#loc1 = loc("x"(#loc))
#loc2 = loc("/k.py":3:5)
#loc3 = loc("/k.py":9:9)
#loc4 = loc(callsite(#loc3 at #loc2))
#loc5 = loc(callsite(#loc7 at #loc3))
#loc6 = loc(unknown)
#loc7 = loc("LIBRARY/sum.py":7:7)
"""

LLVM = """\
define void @k() !dbg !4 {
  %1 = add i32 %a, %b, !dbg !7
  %2 = load i32, ptr %p, align 4, !dbg !8, !noalias !3
  %3 = add i32 %1, %2, !dbg !9
  ret void
}

!llvm.dbg.cu = !{!1}
!0 = !DIFile(filename: "k.py", directory: "/src")
!4 = distinct !DISubprogram(name: "k", file: !0, line: 2, unit: !1)
!5 = !DIFile(filename: "h.py", directory: "/src")
!6 = !DILexicalBlockFile(scope: !4, file: !5, discriminator: 0)
!7 = !DILocation(line: 7, column: 3, scope: !4)
!8 = !DILocation(line: 5, column: 1, scope: !6, inlinedAt: !7)
!9 = !DILocation(line: 0, column: 0, scope: !4)
"""

PTX = """\
// deuteron kernel {}
.version 8.3
.visible .entry k(
\t.param .u64 k_param_0
)
{
\t.reg .b32 \t%r<9>;
\t.loc\t1 0 0
\tmov.u32 \t%r1, %tid.x;
\t.loc\t1 7 3
$L__BB0_1:
\t// begin inline asm
\tfence.proxy.async.shared::cta;
\t@%p1 bra \t$L__BB0_1;
\t{ .reg .pred P; W: mbarrier.try_wait P, [%r1]; @!P bra W; }
\tret;
}
\t.file\t1 "/src/k.py", 1, 1
\t.section\t.debug_line
\t{
\t}
"""

SASS = """\
.text.k:
\t//## File "/src/k.py", line 7
        /*0000*/                   MOV R1, c[0x0][0x28] ;
\t//## File "/src/h.py", line 5 inlined at "/src/k.py", line 9
\t//## File "/src/k.py", line 9
        /*0010*/                   IADD3 R1, R1, 1, RZ ;
        /*0020*/                   EXIT ;
"""


def at(file: str, line: int, column: int) -> Location:
    return Location(file, line, column)


def test_mlir():
    text = located("ttgir", MLIR.replace("LIBRARY/", location._LIBRARY))
    assert not any("loc(" in line for line in text.lines) and len(text.lines) == 15
    function, branch, call = at("/k.py", 1, 1), at("/k.py", 3, 5), at("/k.py", 9, 9)
    expected = [
        *[(function,)] * 2,  # the module and the function, at their first line
        (branch,),
        (call, branch),  # written in a function that line 3 calls
        (branch,),
        (branch,),  # else
        *[(branch,)] * 2,
        *[(call,)] * 4,  # of the standard library: where it is called
        (),
        *[(function,)] * 2,
    ]
    assert list(text.places) == expected


def test_llvm():
    text = located("llir", LLVM)
    assert len(text.lines) == 6 and text.lines[2] == "  %2 = load i32, ptr %p, align 4, !noalias !3"
    here = at("/src/k.py", 7, 3)
    assert text.places[1:5] == ((here,), (at("/src/h.py", 5, 1), here), (), ())


def test_ptx():
    text = located("ptx", PTX)
    made = {line.split()[0]: places for line, places in zip(text.lines, text.places, strict=True)}
    here = (at("/src/k.py", 7, 3),)
    assert made["mov.u32"] == () and made["$L__BB0_1:"] == () and made[".reg"] == ()
    assert [made[name] for name in ("fence.proxy.async.shared::cta;", "@%p1", "{", "ret;")] == [here] * 4
    assert "deuteron kernel" not in text.lines[0] and ".debug_line" not in "".join(text.lines)


def test_assembly_of_a_cpu():
    text = located("asm", '\t.file\t1 "/src" "k.py"\nk:\n\t.loc\t1 7 3 is_stmt 1\n\taddl\t%eax, %ebx\n\tretq\n')
    assert text.lines == ("k:", "        addl    %eax, %ebx", "        retq")
    assert text.places == ((), *[(at("/src/k.py", 7, 3),)] * 2)


def test_sass():
    text = located("sass", SASS)
    assert [line.split()[1] for line in text.lines[1:]] == ["MOV", "IADD3", "EXIT"]
    both = (at("/src/h.py", 5, 1), at("/src/k.py", 9, 1))
    assert text.places[1:] == ((at("/src/k.py", 7, 1),), both, both)


@pytest.mark.parametrize("stage", ["ttir", "llir", "ptx", "sass", "asm"])
def test_nothing(stage):
    assert located(stage, "").lines == ()
