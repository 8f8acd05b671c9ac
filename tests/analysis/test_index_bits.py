"""Tiles that are functions of the place: what the analysis says of each element is what the interpreter computes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ir_text import parse_kernel

from deuteron.analysis.addresses.index_bits import IndexBitsAnalysis, exchange_mask
from deuteron.analysis.addresses.known_elements import known_elements
from deuteron.interpreter import run_module
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.debug import PrintOp
from deuteron.ir.tt.indexing import GatherOp

T = "tensor<16xi32>"
NUMBERS = st.sampled_from([0, 1, 2, 3, 4, 8, 15, 16, 24, -1, 2**31 - 1, -(2**31)])
OPS = (
    *("addi", "subi", "muli", "andi", "ori", "xori", "shli", "shrui", "shrsi"),
    *("divsi", "divui", "remsi", "remui", "maxsi", "minsi", "maxui", "minui"),
)


def numbers_from(name: str, start: int) -> str:
    return f'{name} = "tt.make_range"() <{{start = {start} : i32, end = {start + 16} : i32}}> : () -> {T}'


def number(name: str, value: int) -> str:
    return f'{name} = "arith.constant"() <{{value = dense<{value}> : {T}}}> : () -> {T}'


@st.composite
def programs(draw):
    """Lines that define %v0, %v1, ... of 16 numbers each."""
    lines = [numbers_from("%v0", 0), numbers_from("%v1", draw(st.sampled_from([0, 16, 32, -16, -32])))]
    for count in range(2, draw(st.integers(3, 7))):
        a = f"%v{draw(st.integers(0, count - 1))}"
        op = draw(st.sampled_from(OPS))
        if op.startswith(("sh", "div", "rem")) or draw(st.booleans()):
            positive = st.sampled_from([1, 2, 3, 4]) if op.startswith(("sh", "div", "rem")) else NUMBERS
            lines.append(number(f"%c{count}", draw(positive)))
            b = f"%c{count}"
        else:
            b = f"%v{draw(st.integers(0, count - 1))}"
        lines.append(f'%v{count} = "arith.{op}"({a}, {b}) : ({T}, {T}) -> {T}')
    return lines


def stored(lines: list[str], value: str, type: str = T) -> str:
    p = type.replace("i32", "!tt.ptr<i32>")
    attributes = "boundaryCheck = array<i32>, cache = 1 : i32, evict = 1 : i32"
    return "\n".join(
        [
            *lines,
            f'%p = "tt.splat"(%out) : (!tt.ptr<i32>) -> {p}',
            f'%q = "tt.addptr"(%p, %v0) : ({p}, {type}) -> {p}',
            f'"tt.store"(%q, {value}) <{{{attributes}}}> : ({p}, {type}) -> ()',
        ]
    )


@settings(max_examples=60, deadline=None)
@given(programs())
def test_every_element_is_what_it_is_said_to_be(lines):
    last = f"%v{sum(line.startswith('%v') for line in lines) - 1}"
    module = parse_kernel("%out: !tt.ptr<i32>", stored(lines, last))
    value = next(op for op in nested_ops(module) if op.name == "tt.store").value
    bits, elements = IndexBitsAnalysis().of(value), known_elements(value)
    out = np.zeros(16, np.int32)
    run_module(module, [out], (1, 1, 1))
    found = tuple(out.astype(np.uint32).tolist())
    assert bits is None or tuple(bits.at(position) for position in range(16)) == found
    assert elements in (None, found)


def bits_of(body: str):
    module = parse_kernel("%n: i32", body)
    (shown,) = [op for op in nested_ops(module) if isinstance(op, PrintOp)]
    return IndexBitsAnalysis().of(shown.operands[0])


RANGE = f'%i = "tt.make_range"() <{{start = 0 : i32, end = 16 : i32}}> : () -> {T}\n'


def test_shapes_leave_the_position_as_it_is():
    bits = bits_of(
        RANGE
        + """
        %r = "tt.reshape"(%i) : (tensor<16xi32>) -> tensor<2x8xi32>
        %t = "tt.trans"(%r) <{order = array<i32: 1, 0>}> : (tensor<2x8xi32>) -> tensor<8x2xi32>
        %e = "tt.expand_dims"(%t) <{axis = 1 : i32}> : (tensor<8x2xi32>) -> tensor<8x1x2xi32>
        %b = "tt.broadcast"(%e) : (tensor<8x1x2xi32>) -> tensor<8x4x2xi32>
        use %b : tensor<8x4x2xi32>"""
    )
    assert (bits.columns, bits.constant) == ((8, 0, 0, 1, 2, 4), 0)


@pytest.mark.parametrize(
    "predicate, compare",
    [(0, np.equal), (1, np.not_equal), (2, np.less), (5, np.greater_equal), (9, np.greater_equal)],
)
def test_a_comparison_of_one_bit(predicate, compare):
    bits = bits_of(
        RANGE
        + number("%c", 8)
        + f"""
        %m = "arith.andi"(%i, %c) : ({T}, {T}) -> {T}
        %b = "arith.cmpi"(%m, %c) <{{predicate = {predicate} : i64}}> : ({T}, {T}) -> tensor<16xi1>
        use %b : tensor<16xi1>"""
    )
    assert bits.columns == (0, 0, 0, 1) and bits.width == 1
    assert [bits.at(i) for i in range(16)] == compare(np.arange(16) & 8, 8).astype(int).tolist()


@pytest.mark.parametrize(
    "index",
    ['"arith.addi"(%i, %c)', '"arith.muli"(%i, %c)', '"arith.remsi"(%i, %c)', '"arith.shrsi"(%c, %i)'],
)
def test_what_is_no_function_of_the_bits_is_not_known(index):
    assert bits_of(RANGE + number("%c", 3) + f"\n%r = {index} : ({T}, {T}) -> {T}\nuse %r : {T}") is None


def mask_of(index: str, source: str = "16") -> int | None:
    module = parse_kernel(
        f"%x: tensor<{source}xf32>, %n: {T}",
        RANGE
        + number("%c", 6)
        + f"""
        %k = {index} : ({T}, {T}) -> {T}
        %g = "tt.gather"(%x, %k) <{{axis = 0 : i32}}> : (tensor<{source}xf32>, {T}) -> tensor<16xf32>
        use %g : tensor<16xf32>""",
    )
    (op,) = [op for op in nested_ops(module) if isinstance(op, GatherOp)]
    return exchange_mask(op)


def test_what_a_gather_exchanges():
    assert mask_of('"arith.xori"(%i, %c)') == 6
    assert mask_of('"arith.subi"(%c, %i)') is None
    assert mask_of('"arith.andi"(%i, %c)') is None
    assert mask_of('"arith.xori"(%n, %c)') is None
    assert mask_of('"arith.xori"(%i, %c)', source="32") is None
