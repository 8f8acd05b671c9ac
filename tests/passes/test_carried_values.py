"""A loop that carries more: what it had keeps its place, its name and its hints."""

from ir_text import generic_text, parse_kernel, run_filecheck, value_named

from deuteron.ir.builder import Builder
from deuteron.ir.types import i32
from deuteron.passes.carried_values import carry, new_argument

LOOP = """
    %sum = "scf.for"(%n, %n, %n, %x) ({
    ^bb1(%i: i32, %acc: f32):
      %next = "arith.addf"(%acc, %x) : (f32, f32) -> f32
      "scf.yield"(%next) : (f32) -> ()
    }) {tt.num_stages = 4 : i32} : (i32, i32, i32, f32) -> f32
    use %sum : f32"""


def test_two_more():
    module = parse_kernel("%n: i32, %x: f32", LOOP)
    loop = value_named(module, "sum").owner
    arguments = [new_argument(loop, i32, name) for name in ("one", "other")]
    n, x = value_named(module, "n"), value_named(module, "x")
    following = Builder.before(loop.body.block.last_op).constant(7, i32)
    new = carry(loop, [n, n], [arguments[1], following])
    module.verify()
    assert [result.type for result in new.results] == [x.type, i32, i32] and loop.parent is None
    run_filecheck(
        generic_text(module, locations=False),
        """
        // CHECK:      %sum, %{{.*}}, %{{.*}} = "scf.for"(%n, %n, %n, %x, %n, %n)
        // CHECK:      (%i: i32, %acc: f32, %one: i32, %other: i32)
        // CHECK:      "scf.yield"(%next, %other, %{{.*}})
        // CHECK-NEXT: {tt.num_stages = 4 : i32}
        // CHECK-NEXT: "tt.print"(%sum)""",
    )


def test_nothing_more():
    module = parse_kernel("%n: i32, %x: f32", LOOP)
    before = generic_text(module)
    carry(value_named(module, "sum").owner, [], [])
    assert generic_text(module) == before
