"""Each thing that a verifier objects to, in as few ops as it takes."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import UNKNOWN_LOC, StringAttr

from deuteron.analysis.aliasing.apart import pairs_apart
from deuteron.errors import InternalError, IRError, Location
from deuteron.ir.text import parse_module
from deuteron.ir.verifier import check_input, verify_ttir

P, PS, T, M = "!tt.ptr<f32>", "tensor<4x!tt.ptr<f32>>", "tensor<4xf32>", "tensor<4xi1>"
CACHE = "boundaryCheck = array<i32>, cache = 1 : i32, evict = 1 : i32"
PARAMETERS = "; ".join(
    ["%n: i32", "%f: f32", f"%p: {P}", f"%ps: {PS}", f"%t: {T}", f"%m: {M}", "%i: tensor<4xi32>", "%k: tensor<8xi1>"]
)


def load(operands: str, segments: str, types: str, result: str) -> str:
    properties = f"operandSegmentSizes = array<i32: {segments}>, {CACHE}, isVolatile = false"
    return f'%r = "tt.load"({operands}) <{{{properties}}}> : ({types}) -> {result}'


def dot(a: str, b: str, c: str, r: str) -> str:
    return f"""%a = "arith.constant"() <{{value = dense<1.0> : {a}}}> : () -> {a}
    %b = "arith.constant"() <{{value = dense<1.0> : {b}}}> : () -> {b}
    %c = "arith.constant"() <{{value = dense<1.0> : {c}}}> : () -> {c}
    %r = "tt.dot"(%a, %b, %c) <{{inputPrecision = 0 : i32, maxNumImpreciseAcc = 0 : i32}}> : ({a}, {b}, {c}) -> {r}"""


def dot_scaled(a: str, b: str, scale: str, a_format: int = 4) -> str:
    """e2m1 (4) with scales, e5m2 (1) without, into f32."""
    c = "tensor<4x8xf32>"
    return f"""%a = "arith.constant"() <{{value = dense<1> : {a}}}> : () -> {a}
    %b8 = "arith.constant"() <{{value = dense<1> : {b}xi8>}}> : () -> {b}xi8>
    %b = "tt.bitcast"(%b8) : ({b}xi8>) -> {b}xf8E5M2>
    %c = "arith.constant"() <{{value = dense<1.0> : {c}}}> : () -> {c}
    %x = "arith.constant"() <{{value = dense<1> : {scale}}}> : () -> {scale}
    %r = "tt.dot_scaled"(%a, %b, %c, %x) <{{operandSegmentSizes = array<i32: 1, 1, 1, 1, 0>, a_elem_type = {a_format}
        : i32, b_elem_type = 1 : i32, fastMath = false, lhs_k_pack = true, rhs_k_pack = true}}>
        : ({a}, {b}xf8E5M2>, {c}, {scale}) -> {c}"""


def half_with_scales_of_fp8(a: str, a_format: int) -> str:
    c, scale = "tensor<4x8xf32>", "tensor<4x1xf8E4M3FN>"
    return f"""%a = "arith.constant"() <{{value = dense<1.0> : {a}}}> : () -> {a}
    %b8 = "arith.constant"() <{{value = dense<1> : tensor<32x8xi8>}}> : () -> tensor<32x8xi8>
    %b = "tt.bitcast"(%b8) : (tensor<32x8xi8>) -> tensor<32x8xf8E5M2>
    %c = "arith.constant"() <{{value = dense<1.0> : {c}}}> : () -> {c}
    %x8 = "arith.constant"() <{{value = dense<1> : tensor<4x1xi8>}}> : () -> tensor<4x1xi8>
    %x = "tt.bitcast"(%x8) : (tensor<4x1xi8>) -> {scale}
    %r = "tt.dot_scaled"(%a, %b, %c, %x) <{{operandSegmentSizes = array<i32: 1, 1, 1, 1, 0>, a_elem_type = {a_format}
        : i32, b_elem_type = 1 : i32, fastMath = false, lhs_k_pack = true, rhs_k_pack = true}}>
        : ({a}, tensor<32x8xf8E5M2>, {c}, {scale}) -> {c}"""


def reduce(axis: int, result: str, types: str = "%a: f32, %b: f32") -> str:
    return f"""%r = "tt.reduce"(%t) <{{axis = {axis} : i32}}> ({{
    ^bb1({types}):
      "tt.reduce.return"(%a) : ({types.split(",")[0].split(":")[1]}) -> ()
    }}) : ({T}) -> {result}"""


def gather(indices: str, type: str, result: str, axis: int) -> str:
    return f'%r = "tt.gather"(%t, {indices}) <{{axis = {axis} : i32}}> : ({T}, {type}) -> {result}'


def map_elementwise(pack: int, types: str, result: str) -> str:
    return f"""%r = "tt.map_elementwise"(%t) <{{pack = {pack} : i32}}> ({{
    ^bb1({types}):
      "tt.map_elementwise.return"(%a) : (f32) -> ()
    }}) : ({T}) -> {result}"""


def assembly(constraints: str, operand: str) -> str:
    return f"""%r = "tt.elementwise_inline_asm"(%n) <{{asm_string = "mov.b32 $0, {operand};",
        constraints = "{constraints}", pure = true, packed_element = 1 : i32}}> : (i32) -> i32"""


def describe(base: str, result: str, last: int = 1, sizes: str = "1, 1, 1", padding: int = 1) -> str:
    operands = {"1, 1, 1": "%n, %s", "1, 2, 1": "%n, %n, %s", "1, 2, 2": "%n, %n, %s, %s"}[sizes]
    types = {"1, 1, 1": "i32, i64", "1, 2, 1": "i32, i32, i64", "1, 2, 2": "i32, i32, i64, i64"}[sizes]
    return f"""%q = "tt.bitcast"(%p) : ({P}) -> !tt.ptr<{base}>
    %s = "arith.constant"() <{{value = {last} : i64}}> : () -> i64
    %d = "tt.make_tensor_descriptor"(%q, {operands}) <{{padding = {padding} : i32,
        operandSegmentSizes = array<i32: {sizes}>}}> : (!tt.ptr<{base}>, {types}) -> !tt.tensordesc<{result}>"""


def block_pointer(rest: str = "", order: str = "0", type: str = "4xf32", offset: str = "%n", width: str = "i32") -> str:
    return f"""%w = "arith.extsi"(%n) : (i32) -> i64
    %h = "arith.constant"() <{{value = 1 : i16}}> : () -> i16
    %q = "tt.make_tensor_ptr"(%p, %w, %w, {offset}) <{{order = array<i32: {order}>}}>
        : ({P}, i64, i64, {width}) -> !tt.ptr<tensor<{type}>>
    {rest}"""


BP = "!tt.ptr<tensor<4xf32>>"


def block_load(mask: str = "", checked: str = "", pointer: str = "%q", type: str = BP, result: str = T) -> str:
    segments, operands, types = ("1, 1, 0", f"{pointer}, %m", f"{type}, {M}") if mask else ("1, 0, 0", pointer, type)
    properties = load(operands, segments, types, result).replace(
        "array<i32>", f"array<i32: {checked}>" if checked else "array<i32>"
    )
    return block_pointer(properties)


def descriptor_load(indices: str, types: str, result: str) -> str:
    return f"""{describe("f32", "4xf32")}
    %r = "tt.descriptor_load"(%d{indices}) <{{cache = 1 : i32, evict = 1 : i32}}>
        : (!tt.tensordesc<4xf32>{types}) -> {result}"""


def gather_rows(
    desc: str = "1x4xf32", rows: str = "%i", type: str = "tensor<4xi32>", result: str = "tensor<4x4xf32>"
) -> str:
    described = describe("f32", desc, sizes="1, 2, 2" if "x4x" in desc else "1, 1, 1")
    return f"""{described}
    %r = "tt.descriptor_gather"(%d, {rows}, %n) : (!tt.tensordesc<{desc}>, {type}, i32) -> {result}"""


ERRORS = [
    (block_pointer(order="1"), "does not order its dimensions"),
    (block_pointer(type="4x4xf32", order="1, 0"), "has 1 sizes, strides and offsets"),
    (block_pointer(type="4xf16"), "does not point to elements of"),
    (block_pointer(offset="%h", width="i16"), "offsets have 32 or 64 bits"),
    (block_pointer(f'%r = "tt.advance"(%q, %n, %n) : ({BP}, i32, i32) -> {BP}'), "has 2 offsets"),
    (block_pointer(f'%r = "tt.advance"(%p, %n) : ({P}, i32) -> {P}'), "has 1 offsets"),
    (block_pointer(f'%r = "tt.addptr"(%q, %n) : ({BP}, i32) -> {BP}'), "adds integers to pointers"),
    (block_load(mask="%m"), "through a block pointer there is no mask"),
    (block_load(checked="0, 1"), "has no dimension 1 to check"),
    (block_load(checked="0", pointer="%ps", type=PS), "has no dimension 0 to check"),
    (block_load(result="tensor<8xf32>"), "does not go with values of"),
    (describe("f32", "4xf32", sizes="1, 2, 1"), "has 2 sizes and 1 strides"),
    (describe("f32", "4xf16"), "does not point to elements of"),
    (describe("f32", "4xf32", last=2), "the last stride is the constant 1"),
    (describe("i32", "4xsi32", padding=2), "integers are not padded with NaN"),
    (descriptor_load("", "", T), "has 0 offsets"),
    (gather_rows(desc="4xf32"), "accesses parts of rows, got"),
    (gather_rows(desc="2x4xf32"), "accesses parts of rows, got"),
    (gather_rows(rows="%m", type=M), "needs a vector of rows of i32"),
    (gather_rows(result="tensor<4x8xf32>"), "are not tensor<4x8xf32>"),
    (descriptor_load(", %n", ", i32", "tensor<8xf32>"), "are not tensor<8xf32>"),
    ('%r = "tt.get_program_id"() <{axis = 3 : i32}> : () -> i32', "needs an axis of 0, 1 or 2, got 3"),
    (f'%r = "tt.addptr"(%t, %i) : ({T}, tensor<4xi32>) -> {T}', "adds integers to pointers"),
    (f'%r = "tt.addptr"(%ps, %n) : ({PS}, i32) -> {PS}', "shapes differ"),
    (load("%t", "1, 0, 0", T, T), "needs a pointer"),
    (load("%ps", "1, 0, 0", PS, "f32"), "does not go with values of f32"),
    (load("%ps, %k", "1, 1, 0", f"{PS}, tensor<8xi1>", T), "the mask is"),
    (load("%ps, %m, %f", "1, 1, 1", f"{PS}, {M}, f32", T), "`other` is f32"),
    (load("%ps, %t", "1, 0, 1", f"{PS}, {T}", T), "`other` without a mask"),
    (f'"tt.store"(%ps, %f) <{{{CACHE}}}> : ({PS}, f32) -> ()', "does not go with values of f32"),
    ('%r = "tt.make_range"() <{start = 0 : i32, end = 4 : i32}> : () -> tensor<8xi32>', "of 4 integers gives"),
    (f'%r = "tt.splat"(%n) : (i32) -> {T}', "splat of i32 gives"),
    (f'%r = "tt.unsplat"(%t) : ({T}) -> f32', "unsplat of"),
    (f'%r = "tt.broadcast"(%t) : ({T}) -> tensor<8xf32>', "broadcast from"),
    (f'%r = "tt.expand_dims"(%t) <{{axis = 0 : i32}}> : ({T}) -> tensor<4x1xf32>', "expand_dims of .* gives"),
    (f'%r = "tt.reshape"(%t) : ({T}) -> tensor<8xf32>', "reshape from"),
    (f'%r = "tt.trans"(%t) <{{order = array<i32: 1>}}> : ({T}) -> {T}', "is no permutation"),
    (f'%r = "tt.join"(%t, %t) : ({T}, {T}) -> tensor<2x4xf32>', "join of two .* gives"),
    (f'%r:2 = "tt.split"(%t) : ({T}) -> (f32, f32)', "split of"),
    (f'%r = "tt.cat"(%t, %t) : ({T}, {T}) -> {T}', "cat of two"),
    (gather("%f", "f32", T, 0), "needs indices that are integers"),
    (gather("%i", "tensor<4xi32>", T, 1), "along axis 1 of"),
    (gather("%i", "tensor<4xi32>", "tensor<4xf64>", 0), "gives tensor<4xf64>"),
    (f'%r = "tt.histogram"(%t) : ({T}) -> tensor<4xi32>', "needs integers in one dimension"),
    ('%r = "tt.histogram"(%i, %k) : (tensor<4xi32>, tensor<8xi1>) -> tensor<4xi32>', "has a mask of tensor<8xi1>"),
    ('%r = "tt.histogram"(%i) : (tensor<4xi32>) -> tensor<4xi64>', "gives i32 in one dimension"),
    (assembly("=r,r", "$2"), r"it names operand \$2"),
    (assembly("=r", "$0"), "there are 0 inputs"),
    (map_elementwise(2, "%a: f32", T), "arguments do not match"),
    (map_elementwise(1 << 30, "%a: f32", T), "arguments do not match"),
    (map_elementwise(1, "%a: f32", "tensor<4xf64>"), "does not match the results"),
    (map_elementwise(1, "%a: f32", "tensor<8xf32>"), "tiles of one shape"),
    (reduce(1, "f32"), "axis 1 of a tile of rank 1"),
    (reduce(0, T), "tt.reduce gives"),
    (reduce(0, "f32", "%a: i32, %b: i32"), "arguments do not match"),
    (dot("tensor<4x8xf32>", "tensor<4x8xf32>", "tensor<4x8xf32>", "tensor<4x8xf32>"), "do not go together"),
    (dot(T, T, T, T), "needs tiles of rank 2 or 3"),
    (dot("tensor<4x4xf32>", "tensor<4x4xf32>", "tensor<4x4xf32>", "tensor<4x4xf16>"), "the result is"),
    (dot_scaled("tensor<4x16xi16>", "tensor<32x8", "tensor<4x1xi8>"), "e2m1 in tensor<4x16xi16>"),
    (
        dot_scaled("tensor<4x16xi8>", "tensor<32x8", "tensor<4x1xi16>"),
        "scales of type tensor<4x1xi16> for 4 x 32 numbers",
    ),
    (dot_scaled("tensor<4x16xi8>", "tensor<32x8", "tensor<4x4xi8>"), "scales of type tensor<4x4xi8> for 4 x 32"),
    (dot_scaled("tensor<4x32xi8>", "tensor<32x8", "tensor<4x2xi8>"), "dot_scaled: shapes"),
    (dot_scaled("tensor<4x32xi8>", "tensor<32x8", "tensor<4x2xi8>", 9), "expected one of 0, 1, 4, 5, 6, got 9"),
    (half_with_scales_of_fp8("tensor<4x32xf16>", 6), "fp16 with scales of fp8"),
    (half_with_scales_of_fp8("tensor<4x32xbf16>", 5), "bf16 with scales of fp8"),
    (f'%r = "tt.bitcast"(%t) : ({T}) -> tensor<4xi16>', "widths differ"),
    (f'%r = "tt.bitcast"(%t) : ({T}) -> i32', "keeps the shape"),
    ('%r = "tt.int_to_ptr"(%n) : (i32) -> i64', "int_to_ptr gives i64"),
    ('%r = "tt.fp_to_fp"(%n) : (i32) -> f32', "fp_to_fp from i32 to f32"),
    ('"tt.assert"(%n) <{message = "no"}> : (i32) -> ()', "needs a condition of i1"),
    ('"tt.print"(%n) <{prefix = "", hex = false, isSigned = array<i32>}> : (i32) -> ()', "tt.print of 1 values needs"),
    ('"ttg.barrier"() <{addrSpace = 5 : i32}> : () -> ()', "is of all address spaces, 31, got 5"),
    (f'%r = "arith.cmpi"(%t, %t) <{{predicate = 0 : i64}}> : ({T}, {T}) -> {M}', "compares integers"),
    ('%r = "arith.cmpi"(%i, %i) <{predicate = 0 : i64}> : (tensor<4xi32>, tensor<4xi32>) -> i1', "gives a tile of i1"),
    ('%r = "arith.select"(%n, %n, %n) : (i32, i32, i32) -> i32', "needs a condition of i1"),
    (f'%r = "arith.select"(%k, %t, %t) : (tensor<8xi1>, {T}, {T}) -> {T}', "a condition of another shape"),
    ('%r = "arith.extsi"(%n) : (i32) -> i8', "arith.extsi from i32 to i8"),
    ('%r = "arith.trunci"(%i) : (tensor<4xi32>) -> i8', "arith.trunci from"),
    ('%r = "arith.sitofp"(%f) : (f32) -> f64', "arith.sitofp from f32"),
]


@pytest.mark.parametrize(("body", "message"), ERRORS, ids=[message for _, message in ERRORS])
def test_ops(parse_body, body, message):
    with pytest.raises(IRError, match=message):
        parse_body(PARAMETERS, body)


@pytest.mark.parametrize(
    ("extents", "message"), [("3", "powers of two"), ("2097152", "at most 1048576 elements"), ("2048x1024", "at most")]
)
def test_tile_shapes(parse_body, extents, message):
    module = parse_body("%n: i32", f'%r = "tt.splat"(%n) : (i32) -> tensor<{extents}xi32> loc("k.py":1:1)')
    for op in module.walk():
        op.location = module.body.block.first_op.body.block.first_op.location
    with pytest.raises(InternalError, match=f"after some-pass.*{message}"):
        verify_ttir(module, "some-pass")


def test_an_op_without_a_location(parse_body):
    module = parse_body("", "")
    module.body.block.first_op.location = UNKNOWN_LOC
    with pytest.raises(InternalError, match="has no location"):
        verify_ttir(module, "some-pass")


def test_a_value_is_computed_before_it_is_used(parse_body):
    text = """%a = "arith.addi"(%b, %n) : (i32, i32) -> i32
    %b = "arith.addi"(%n, %n) : (i32, i32) -> i32"""
    module = parse_body("%n: i32", text)
    with pytest.raises(InternalError, match=r"arith\.addi uses a value before it is computed"):
        verify_ttir(module, "some-pass")


def test_a_function_uses_nothing_of_another(parse_body):
    text = '%a = "arith.addi"(%n, %n) : (i32, i32) -> i32'
    module, other = parse_body("%n: i32", text), parse_body("%n: i32", text)
    (func,) = other.body.block.ops
    func.detach()
    func.properties["sym_name"] = StringAttr("another")
    module.body.block.add_op(func)
    verify_ttir(module, "some-pass")
    func.body.block.first_op.operands[0] = module.body.block.first_op.body.block.first_op.result
    with pytest.raises(InternalError, match=r"arith\.addi uses a value before it is computed"):
        verify_ttir(module, "some-pass")


def test_a_syntax_error_has_its_place():
    with pytest.raises(IRError) as caught:
        parse_module('"builtin.module"() ({\n  "tt.func"() <{oops', "k.ttir")
    assert caught.value.location == Location("k.ttir", 2, 21)


def test_a_string_that_does_not_end_is_found_soon():
    """xDSL's expression for strings tries all ways to divide this one."""
    with pytest.raises(IRError, match="before closing string literal"):
        parse_module(
            'module {\n  %a = "arith.constant %b, %c : tensor<64x64xf32, #linear> tensor<64x64xf32>\n}', "k.ttir"
        )


def test_a_value_of_another_region():
    text = """module {
  tt.func public @k(%n: i32) {
    %a = scf.for %i = %n to %n step %n iter_args(%c = %b) -> (i32) : i32 {
      %b = arith.addi %c, %n : i32
      scf.yield %b : i32
    }
    tt.return
  }
}
"""
    with pytest.raises(IRError, match="scf.for uses a value that is not defined") as caught:
        parse_module(text, "k.ttir")
    assert caught.value.location.line == 3


def test_a_literal_of_very_many_elements():
    """xDSL makes a list of them."""
    with pytest.raises(IRError, match="a tile has at most 1048576 elements"):
        parse_module("module {\n  %a = arith.constant dense<1> : tensor<1099511627776xi32>\n}")


def test_an_element_out_of_the_range_of_its_type():
    with pytest.raises(IRError, match="out of range for type i8"):
        parse_module("module {\n  %a = arith.constant dense<300> : tensor<4xi8>\n}")


@pytest.mark.parametrize("bases", ["[[0, -1]]", "[[1], [0, 2]]", "[[0, 1], [2]]"])
def test_a_layout_that_is_none(bases: str):
    with pytest.raises(IRError, match="basis vector") as caught:
        parse_module(
            f"#l = #ttg.linear<{{register = {bases}, lane = [], warp = [], block = []}}>\nmodule {{\n}}\n", "k"
        )
    assert caught.value.location.line == 1


@pytest.mark.parametrize("alignment", [0, -16, 12])
def test_an_alignment_that_is_none(alignment: int):
    with pytest.raises(IRError, match="an alignment is a power of two"):
        parse_module(f"#s = #ttg.shared_linear<{{offset = [], block = []}}, alignment = {alignment}>\nmodule {{\n}}\n")


@pytest.mark.parametrize(
    "words",
    [
        *("#tt.pairs<[0]>", "#tt.pairs<[0, 1, 0]>", "#tt.pairs<[0, 1, 0, 9, 1]>", "#tt.pairs<[0, 7, 0, 0, 0]>"),
        *("#tt.pairs<[0, 1, 0, 0, 1, 9223372036854775807]>", "array<i64: 0, 1, 0, 0, 0>"),
    ],
)
def test_pairs_of_arguments_that_are_none(words: str):
    attributes = f"attributes {{tt.apart = {words}}}"
    text = f"module {{\n  tt.func public @k(%a: {P}, %b: {P}) {attributes} {{\n tt.return\n }}\n}}"
    with pytest.raises(IRError, match="not describe pairs of arguments") as caught:
        pairs_apart(parse_module(text, "k.ttir").body.block.first_op)
    assert caught.value.location.line == 2


def test_functions():
    text = '"builtin.module"() ({"tt.func"() <{sym_name = "k", function_type = (i32) -> ()}> ({^bb0(%x: i64):'
    with pytest.raises(IRError, match="block arguments differ"):
        parse_module(text + ' "tt.return"() : () -> () }) : () -> () }) : () -> ()')


DESCRIPTOR = "!tt.tensordesc<tensor<16xf32>>"
ARGUMENTS = f"^bb0(%a: {DESCRIPTOR}, %b: i32, %c: i64): "


def _module(properties: str, arguments: str = "") -> str:
    body = f'({{ {arguments}"tt.return"() : () -> () }})'
    return f'module {{ "tt.func"() <{{sym_name = "k"{properties}}}> {body} : () -> () }}'


def _kernel(line: str) -> str:
    return f"module {{\n tt.func public @k(%n: i32, %c: i1) {{\n {line}\n tt.return\n }}\n}}\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('"builtin.module"() : () -> ()', "Expected 1 region, but got 0"),
        (
            'module { "tt.func"() <{function_type = () -> (), sym_name = "k"}> : () -> () }',
            "Expected 1 region, but got",
        ),
        (_module(""), "has a property 'function_type'"),
        (_module(", function_type = i32"), "i32 should be of base attribute"),
        (
            _module(f", function_type = ({DESCRIPTOR}, i32, i64) -> (), arg_attrs = [{{}}]", ARGUMENTS),
            "one entry for each",
        ),
        (_kernel('"scf.while"(%n) : (i32) -> i32'), "Expected 2 regions, but got 0"),
        (_kernel('"scf.if"(%c) ({ "scf.yield"() : () -> () }) : (i1) -> ()'), "Expected 2 regions, but got 1"),
        (_kernel('"cf.cond_br"(%c) [^end] : (i1) -> ()\n ^end:'), "operandSegmentSizes"),
    ],
)
def test_ops_without_their_parts(text: str, message: str):
    """They are looked into before they are verified."""
    with pytest.raises(IRError, match=message) as caught:
        parse_module(text, "k.ttir")
    assert caught.value.location is not None


@pytest.mark.parametrize(
    "attribute",
    [
        *("ttg.num-warps = 3 : i32", "ttg.num-warps = 0 : i32", "ttg.num-ctas = -2 : i32", "ttg.num-ctas"),
        *('ttg.threads-per-warp = "x"', "ttg.target = 90 : i32"),
    ],
)
def test_what_a_module_is_for(attribute: str):
    name, equals, value = attribute.partition(" = ")
    with pytest.raises(IRError, match=f"{name} of a module is a") as caught:
        parse_module(f'module attributes {{"{name}"{equals}{value}}} {{\n}}\n', "k.ttgir")
    assert caught.value.location.line == 1


ONE_BUFFER = "!ttg.memdesc<8xf32, #ttg.shared_linear<{offset = [[1], [2], [4]]}, alignment = 16>, #ttg.shared_memory>"
TWO_BUFFERS = f"{ONE_BUFFER}, {ONE_BUFFER}"
CHOICES = {
    "scf.for": f"""%r = scf.for %i = %n to %n step %n iter_args(%m = %a) -> ({ONE_BUFFER}) : i32 {{
      "scf.yield"(%b) : ({ONE_BUFFER}) -> ()
    }}""",
    "scf.while": f"""%r, %s = scf.while (%x = %a, %y = %b) : ({TWO_BUFFERS}) -> ({TWO_BUFFERS}) {{
      scf.condition(%c) %y, %x : {TWO_BUFFERS}
    }} do {{
    ^bb0(%v: {ONE_BUFFER}, %w: {ONE_BUFFER}):
      scf.yield %v, %w : {TWO_BUFFERS}
    }}""",
    "arith.select": f"%r = arith.select %c, %a, %b : {ONE_BUFFER}",
}


@pytest.mark.parametrize("chooses", CHOICES)
def test_a_buffer_that_may_be_one_of_several(chooses):
    """Barriers are placed, and memory is shared, by what is known of each buffer."""
    text = f"""
    module attributes {{"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, "ttg.threads-per-warp" = 32 : i32}} {{
      tt.func public @k(%n: i32, %c: i1) {{
        %a = "ttg.local_alloc"() : () -> {ONE_BUFFER}
        %b = "ttg.local_alloc"() : () -> {ONE_BUFFER}
        {CHOICES[chooses]}
        tt.return
      }}
    }}"""
    with pytest.raises(IRError, match=f"{chooses} gives !ttg.memdesc<.*one of several buffers"):
        check_input(parse_module(text), "here.ttgir")
