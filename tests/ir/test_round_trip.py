"""Every op's text, generic or not, parses, prints, and parses again to the same."""

from __future__ import annotations

import re
from io import StringIO

import pytest
from ir_text import generic_text
from xdsl.dialects import arith, scf
from xdsl.printer import Printer

from deuteron.ir.text import parse_module, print_module
from deuteron.ir.tt import TT

POINTERS, MASK, TILE = "tensor<4x!tt.ptr<f32>>", "tensor<4xi1>", "tensor<4xf32>"
CACHE = "boundaryCheck = array<i32>, cache = 1 : i32, evict = 1 : i32"
ORDER = "sem = 4 : i32, scope = 1 : i32"
REGION = """({{
    ^bb1(%ra: f32, %rb: f32):
      %rc = "arith.addf"(%ra, %rb) <{{fastmath = #arith.fastmath<none>}}> : (f32, f32) -> f32
      "tt.{}.return"(%rc) : (f32) -> ()
    }})"""
BLOCK_POINTER = "!tt.ptr<tensor<4xf32>>"
MAKE_BLOCK_POINTER = f"""%w = "arith.extsi"(%n) : (i32) -> i64
        %bp = "tt.make_tensor_ptr"(%p, %w, %w, %n) <{{order = array<i32: 0>}}>
            : (!tt.ptr<f32>, i64, i64, i32) -> {BLOCK_POINTER}"""
DESC, BLOCK = "!tt.tensordesc<8x4xui32>", "tensor<8x4xi32>"
VALUE = f'%v = "arith.constant"() <{{value = dense<1> : {BLOCK}}}> : () -> {BLOCK}'
DESCRIPTOR = f"""%b = "tt.bitcast"(%p) : (!tt.ptr<f32>) -> !tt.ptr<i32>
        %1 = "arith.constant"() <{{value = 1 : i64}}> : () -> i64
        %d = "tt.make_tensor_descriptor"(%b, %n, %n, %1, %1) <{{padding = 1 : i32,
            operandSegmentSizes = array<i32: 1, 2, 2>}}> : (!tt.ptr<i32>, i32, i32, i64, i64) -> {DESC}"""
ROW = "!tt.tensordesc<1x8xui32>"
ROWS = DESCRIPTOR.replace(DESC, ROW)

# Parameters: %n i32, %f f32, %c i1, %p pointer, %ps pointers, %m mask, %t and %u tiles, %i offsets, %s 2 x 2 x 2.
SNIPPETS = {
    "tt.get_program_id": '%r = "tt.get_program_id"() <{axis = 2 : i32}> : () -> i32',
    "tt.get_num_programs": '%r = "tt.get_num_programs"() <{axis = 0 : i32}> : () -> i32',
    "tt.addptr": f'%r = "tt.addptr"(%ps, %i) : ({POINTERS}, tensor<4xi32>) -> {POINTERS}',
    "tt.load": f"""%r = "tt.load"(%ps, %m, %t) <{{operandSegmentSizes = array<i32: 1, 1, 1>, {CACHE},
        isVolatile = false}}> : ({POINTERS}, {MASK}, {TILE}) -> {TILE}""",
    "tt.store": f'"tt.store"(%ps, %t, %m) <{{{CACHE}}}> : ({POINTERS}, {TILE}, {MASK}) -> ()',
    "tt.make_tensor_ptr": MAKE_BLOCK_POINTER,
    "tt.advance": f"""{MAKE_BLOCK_POINTER}
        %r = "tt.advance"(%bp, %n) : ({BLOCK_POINTER}, i32) -> {BLOCK_POINTER}""",
    "tt.atomic_rmw": f"""%r = "tt.atomic_rmw"(%ps, %t, %m) <{{atomic_rmw_op = 5 : i32, {ORDER}}}>
        : ({POINTERS}, {TILE}, {MASK}) -> {TILE}""",
    "tt.atomic_cas": f'%r = "tt.atomic_cas"(%p, %f, %f) <{{{ORDER}}}> : (!tt.ptr<f32>, f32, f32) -> f32',
    "tt.atomic_load": f"""%r = "tt.atomic_load"(%ps, %m) <{{sem = 2 : i32, scope = 1 : i32}}>
        : ({POINTERS}, {MASK}) -> {TILE}""",
    "tt.atomic_store": '"tt.atomic_store"(%p, %f) <{sem = 3 : i32, scope = 3 : i32}> : (!tt.ptr<f32>, f32) -> ()',
    "tt.global_timer": '%r = "tt.global_timer"() : () -> i64',
    "tt.make_tensor_descriptor": f"{DESCRIPTOR}",
    "tt.descriptor_load": f"""{DESCRIPTOR}
        %r = "tt.descriptor_load"(%d, %n, %n) <{{cache = 1 : i32, evict = 1 : i32}}> : ({DESC}, i32, i32) -> {BLOCK}""",
    "tt.descriptor_store": f"""{DESCRIPTOR}
        {VALUE}
        "tt.descriptor_store"(%d, %v, %n, %n) : ({DESC}, {BLOCK}, i32, i32) -> ()""",
    "tt.descriptor_reduce": f"""{DESCRIPTOR}
        {VALUE}
        "tt.descriptor_reduce"(%d, %v, %n, %n) <{{kind = 3 : i32}}> : ({DESC}, {BLOCK}, i32, i32) -> ()""",
    "tt.descriptor_gather": f"""{ROWS}
        %r = "tt.descriptor_gather"(%d, %i, %n) : ({ROW}, tensor<4xi32>, i32) -> tensor<4x8xi32>""",
    "tt.descriptor_scatter": f"""{ROWS}
        %v = "arith.constant"() <{{value = dense<1> : tensor<4x8xi32>}}> : () -> tensor<4x8xi32>
        "tt.descriptor_scatter"(%d, %i, %n, %v) : ({ROW}, tensor<4xi32>, i32, tensor<4x8xi32>) -> ()""",
    "tt.make_range": '%r = "tt.make_range"() <{start = 4 : i32, end = 8 : i32}> : () -> tensor<4xi32>',
    "tt.splat": f'%r = "tt.splat"(%f) : (f32) -> {TILE}',
    "tt.unsplat": '%o = "tt.splat"(%f) : (f32) -> tensor<1x1xf32>\n%r = "tt.unsplat"(%o) : (tensor<1x1xf32>) -> f32',
    "tt.expand_dims": f'%r = "tt.expand_dims"(%t) <{{axis = 1 : i32}}> : ({TILE}) -> tensor<4x1xf32>',
    "tt.broadcast": f"""%e = "tt.expand_dims"(%t) <{{axis = 0 : i32}}> : ({TILE}) -> tensor<1x4xf32>
        %r = "tt.broadcast"(%e) : (tensor<1x4xf32>) -> tensor<2x4xf32>""",
    "tt.reshape": f'%r = "tt.reshape"(%t) <{{allow_reorder}}> : ({TILE}) -> tensor<2x2xf32>',
    "tt.trans": '%r = "tt.trans"(%s) <{order = array<i32: 2, 0, 1>}> : (tensor<2x2x2xf32>) -> tensor<2x2x2xf32>',
    "tt.join": f'%r = "tt.join"(%t, %u) : ({TILE}, {TILE}) -> tensor<4x2xf32>',
    "tt.split": '%r:2 = "tt.split"(%s) : (tensor<2x2x2xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>)',
    "tt.cat": f'%r = "tt.cat"(%t, %u) : ({TILE}, {TILE}) -> tensor<8xf32>',
    "tt.gather": f'%r = "tt.gather"(%t, %i) <{{axis = 0 : i32}}> : ({TILE}, tensor<4xi32>) -> {TILE}',
    "tt.histogram": f'%r = "tt.histogram"(%i, %m) : (tensor<4xi32>, {MASK}) -> tensor<16xi32>',
    "tt.elementwise_inline_asm": """%r = "tt.elementwise_inline_asm"(%n, %f) <{asm_string = "add.f32 $0, $1, $2;",
        constraints = "=f,r,f", pure = true, packed_element = 1 : i32}> : (i32, f32) -> f32""",
    "tt.map_elementwise": f'%r = "tt.map_elementwise"(%t, %u) <{{pack = 1 : i32}}> {REGION.format("map_elementwise")} '
    f": ({TILE}, {TILE}) -> {TILE}",
    "tt.reduce": f'%r = "tt.reduce"(%t) <{{axis = 0 : i32}}> {REGION.format("reduce")} : ({TILE}) -> f32',
    "tt.scan": f'%r = "tt.scan"(%t) <{{axis = 0 : i32, reverse = true}}> {REGION.format("scan")} : ({TILE}) -> {TILE}',
    "tt.dot": """%r = "tt.dot"(%s, %s, %s) <{inputPrecision = 2 : i32, maxNumImpreciseAcc = 0 : i32}>
        : (tensor<2x2x2xf32>, tensor<2x2x2xf32>, tensor<2x2x2xf32>) -> tensor<2x2x2xf32>""",
    "tt.dot_scaled": """%a = "arith.constant"() <{value = dense<1> : tensor<16x16xi8>}> : () -> tensor<16x16xi8>
        %b = "arith.constant"() <{value = dense<1.0> : tensor<32x16xf16>}> : () -> tensor<32x16xf16>
        %z = "arith.constant"() <{value = dense<1.0> : tensor<16x16xf32>}> : () -> tensor<16x16xf32>
        %w = "arith.constant"() <{value = dense<1> : tensor<16x1xi8>}> : () -> tensor<16x1xi8>
        %r = "tt.dot_scaled"(%a, %b, %z, %w) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 0>, a_elem_type = 4 : i32,
            b_elem_type = 6 : i32, fastMath = false, lhs_k_pack = true, rhs_k_pack = true}>
        : (tensor<16x16xi8>, tensor<32x16xf16>, tensor<16x16xf32>, tensor<16x1xi8>) -> tensor<16x16xf32>""",
    "tt.bitcast": '%r = "tt.bitcast"(%f) : (f32) -> i32',
    "tt.ptr_to_int": f'%r = "tt.ptr_to_int"(%ps) : ({POINTERS}) -> tensor<4xi64>',
    "tt.int_to_ptr": """%w = "tt.ptr_to_int"(%p) : (!tt.ptr<f32>) -> i64
        %r = "tt.int_to_ptr"(%w) : (i64) -> !tt.ptr<i8>""",
    "tt.fp_to_fp": f'%r = "tt.fp_to_fp"(%t) <{{rounding = 1 : i32}}> : ({TILE}) -> tensor<4xf8E4M3FN>',
    "tt.clampf": f'%r = "tt.clampf"(%t, %u, %t) <{{propagateNan = 0 : i32}}> : ({TILE}, {TILE}, {TILE}) -> {TILE}',
    "tt.extern_elementwise": '%r = "tt.extern_elementwise"(%t) '
    '<{libname = "", libpath = "", symbol = "__nv_tanhf", pure = true}>'
    f" : ({TILE}) -> {TILE}",
    "tt.precise_sqrt": f'%r = "tt.precise_sqrt"(%t) : ({TILE}) -> {TILE}',
    "tt.precise_divf": f'%r = "tt.precise_divf"(%t, %u) : ({TILE}, {TILE}) -> {TILE}',
    "tt.mulhiui": '%r = "tt.mulhiui"(%n, %n) : (i32, i32) -> i32',
    "tt.print": '"tt.print"(%t, %n) <{prefix = " x: ", hex = true, isSigned = array<i32: 1, 0>}>'
    f" : ({TILE}, i32) -> ()",
    "tt.assert": f'"tt.assert"(%m) <{{message = "no"}}> : ({MASK}) -> ()',
    "tt.call": '%r = "tt.call"(%n) <{callee = @f}> : (i32) -> i32',
    "ttg.fence": '"ttg.fence"() <{scope = 2 : i32}> : () -> ()',
    "ttg.barrier": '"ttg.barrier"() <{addrSpace = 31 : i32}> : () -> ()',
    "arith.cmpi": '%r = "arith.cmpi"(%i, %i) <{predicate = 6 : i64}> : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>',
    "arith.cmpf": f"""%r = "arith.cmpf"(%t, %u) <{{predicate = 4 : i64, fastmath = #arith.fastmath<none>}}>
        : ({TILE}, {TILE}) -> {MASK}""",
    "arith.select": f'%r = "arith.select"(%c, %t, %u) : (i1, {TILE}, {TILE}) -> {TILE}',
    "arith.remf": f'%r = "arith.remf"(%t, %u) <{{fastmath = #arith.fastmath<none>}}> : ({TILE}, {TILE}) -> {TILE}',
    "arith.extsi": '%r = "arith.extsi"(%i) : (tensor<4xi32>) -> tensor<4xi64>',
    "arith.uitofp": f'%r = "arith.uitofp"(%m) : ({MASK}) -> {TILE}',
    "arith.fptosi": f'%r = "arith.fptosi"(%t) : ({TILE}) -> tensor<4xi8>',
    "arith.truncf": f'%r = "arith.truncf"(%t) : ({TILE}) -> tensor<4xbf16>',
    "math.exp2": f'%r = "math.exp2"(%t) <{{fastmath = #arith.fastmath<none>}}> : ({TILE}) -> {TILE}',
    "scf.for": """%r = "scf.for"(%n, %n, %n, %f) ({
    ^bb1(%j: i32, %a: f32):
      "scf.yield"(%a) : (f32) -> ()
    }) : (i32, i32, i32, f32) -> f32""",
    "scf.if": """%r = "scf.if"(%c) ({
      "scf.yield"(%n) : (i32) -> ()
    }, {
      "scf.yield"(%n) : (i32) -> ()
    }) : (i1) -> i32""",
    "scf.while": """%r = "scf.while"(%n) ({
    ^bb1(%a: i32):
      "scf.condition"(%c, %a) : (i1, i32) -> ()
    }, {
    ^bb2(%b: i32):
      "scf.yield"(%b) : (i32) -> ()
    }) : (i32) -> i32""",
}
PARAMETERS = "; ".join(
    [
        "%n: i32",
        "%f: f32",
        "%c: i1",
        "%p: !tt.ptr<f32>",
        f"%ps: {POINTERS}",
        f"%m: {MASK}",
        f"%t: {TILE}",
        f"%u: {TILE}",
        "%i: tensor<4xi32>",
        "%s: tensor<2x2x2xf32>",
    ]
)


@pytest.mark.parametrize("name", SNIPPETS)
def test_op(parse_body, name):
    module = parse_body(PARAMETERS, SNIPPETS[name] + ' loc("k.py":3:7)')
    text = generic_text(module)
    assert f'"{name}"(' in text
    assert generic_text(parse_module(text)) == text
    pretty = print_module(module)
    again = parse_module(pretty)
    assert again.is_structurally_equivalent(module)
    assert print_module(again) == pretty
    for key, value in re.findall(r'(?<![:%\w])(\w+) = (-?\d+ : \w+|true|false|"[^"]*"|array<[^>]*>)', SNIPPETS[name]):
        assert f"{key} = {value}" in text


def test_every_op_of_the_dialect_has_a_snippet():
    inside_others = {"tt.func", "tt.return", "tt.reduce.return", "tt.scan.return", "tt.map_elementwise.return"}
    assert {op.name for op in TT.operations} - inside_others <= set(SNIPPETS)
    assert {arith.SelectOp.name, scf.ForOp.name} <= set(SNIPPETS)


CONSTANTS = [
    ("i32", "-5 : i32"),
    ("i1", "true"),
    ("f32", "0x7f800000 : f32"),
    ("f32", "0.100000001 : f32"),
    ("f64", "0.10000000000000001 : f64"),
    ("bf16", "0x7fc0 : bf16"),
    ("tensor<4xi8>", "dense<[1, -2, 3, -4]> : tensor<4xi8>"),
    ("tensor<4xf32>", "dense<0xFF800000> : tensor<4xf32>"),
    ("tensor<2x2xf16>", "dense<1.5> : tensor<2x2xf16>"),
    ("tensor<4xi1>", "dense<true> : tensor<4xi1>"),
    ("tensor<4xf32>", "dense<[0.0, -0.0, -0.0, 0.0]> : tensor<4xf32>"),
    ("tensor<4xf16>", "dense<-0.0> : tensor<4xf16>"),
    ("tensor<2xf64>", "dense<0x7ff8000000000001> : tensor<2xf64>"),
    ("tensor<2x2xi1>", "dense<[[true, false], [true, true]]> : tensor<2x2xi1>"),
]


@pytest.mark.parametrize(("type", "value"), CONSTANTS)
def test_constants(parse_body, type, value):
    module = parse_body("", f'%r = "arith.constant"() <{{value = {value}}}> : () -> {type}')
    text = generic_text(module)
    again = parse_module(text)
    assert generic_text(again) == text
    constants = [next(iter(m.body.block.first_op.body.block.ops)).value for m in (module, again)]
    assert constants[0] == constants[1] or "7fc0" in value
    if type.startswith("tensor"):
        assert constants[0].data.data == constants[1].data.data


def test_arguments_keep_their_attributes_and_names():
    text = """
    "builtin.module"() ({
      "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f32>, i32) -> (), sym_visibility = "public",
                    arg_attrs = [{tt.divisibility = 16 : i32}, {}]}> ({
      ^bb0(%x_ptr: !tt.ptr<f32>, %n: i32):
        "tt.return"() : () -> ()
      }) : () -> ()
    }) : () -> ()"""
    module = parse_module(generic_text(parse_module(text)))
    function = module.body.block.first_op
    assert [function.arg_divisibility(0), function.arg_divisibility(1)] == [16, 1]
    assert [arg.name_hint for arg in function.args] == ["x_ptr", "n"]


def test_the_text_is_as_xdsl_prints_it():
    """Our printer is quicker, and says the same; only layouts have names of their own."""
    module = parse_module(
        """"builtin.module"() ({
          "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f32>, i32) -> (), sym_visibility = "public",
                        arg_attrs = [{tt.divisibility = 16 : i32}, {}]}> ({
          ^bb0(%p: !tt.ptr<f32>, %n: i32):
            %x = "arith.constant"() <{value = dense<0xff800000> : tensor<4xf32>}> : () -> tensor<4xf32>
            %0 = "arith.constant"() <{value = 0 : i32}> : () -> i32
            %r, %s = "scf.for"(%0, %n, %n, %x, %0) ({
            ^bb0(%i: i32, %y: tensor<4xf32>, %1: i32):
              "scf.yield"(%y, %i) {"a-b" = "quoted \\22", unit} : (tensor<4xf32>, i32) -> ()
            }) : (i32, i32, i32, tensor<4xf32>, i32) -> (tensor<4xf32>, i32)
            "tt.return"() : () -> () loc(callsite("x"("k.py":1:2) at "k.py":3:4))
          }) : () -> ()
        }) {"ttg.num-warps" = 4 : i32} : () -> ()"""
    )
    for locations in (True, False):
        stream = StringIO()
        Printer(stream, print_generic_format=True, print_debuginfo=locations).print_op(module)
        assert generic_text(module, locations) == stream.getvalue() + "\n"
