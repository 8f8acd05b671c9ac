"""Asynchronous copies and buffers that take turns: their text, and what their verifiers object to."""

import pytest
from ir_text import generic_text

from deuteron.errors import IRError
from deuteron.ir.text import parse_module

LAYOUT = "#ttg.linear<{register = [[0, 1]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [], block = []}>"
SHARED = (
    "#ttg.shared_linear<{offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], block = []}, alignment = 16>, "
    "#ttg.shared_memory, mutable"
)
PS, MS = f"tensor<8x8x!tt.ptr<f32>, {LAYOUT}>", f"tensor<8x8xi1, {LAYOUT}>"
BUFFER, BUFFERS, TOKEN = f"!ttg.memdesc<8x8xf32, {SHARED}>", f"!ttg.memdesc<3x8x8xf32, {SHARED}>", "!ttg.async.token"
PROPERTIES = "cache = 1 : i32, evict = 1 : i32, isVolatile = false, contiguity = 1 : i32"


def copy(operands: str, segments: str, types: str) -> str:
    properties = f"{PROPERTIES}, operandSegmentSizes = array<i32: {segments}>"
    return f'%t = "ttg.async_copy_global_to_local"({operands}) <{{{properties}}}> : ({types}) -> {TOKEN}'


def module(body: str) -> str:
    return f"""
    "builtin.module"() ({{
      "tt.func"() <{{sym_name = "k", function_type = ({PS}, {MS}, i32) -> (), sym_visibility = "public"}}> ({{
      ^bb0(%p: {PS}, %m: {MS}, %i: i32):
        %b = "ttg.local_alloc"() : () -> {BUFFERS}
        %x = "ttg.memdesc_index"(%b, %i) : ({BUFFERS}, i32) -> {BUFFER}
        {body}
        "tt.return"() : () -> ()
      }}) : () -> ()
    }}) : () -> ()"""


COPY = copy("%p, %x, %m", "1, 1, 1, 0", f"{PS}, {BUFFER}, {MS}")


def test_text():
    text = generic_text(
        parse_module(
            module(f"""{COPY}
        %g = "ttg.async_commit_group"(%t) : ({TOKEN}) -> {TOKEN}
        %w = "ttg.async_wait"(%g) <{{num = 2 : i32}}> : ({TOKEN}) -> {TOKEN}""")
        )
    )
    assert "(!ttg.memdesc<3x8x8xf32, #shared, #smem, mutable>, i32) -> !ttg.memdesc<8x8xf32, #shared" in text
    assert '"ttg.async_wait"(%g) <{num = 2 : i32}> : (!ttg.async.token) -> !ttg.async.token' in text
    assert generic_text(parse_module(text)) == text


ERRORS = [
    (copy("%p, %b", "1, 1, 0, 0", f"{PS}, {BUFFERS}"), "does not fit into"),
    (copy("%m, %x", "1, 1, 0, 0", f"{MS}, {BUFFER}"), "needs a pointer"),
    (copy("%p, %x, %p", "1, 1, 1, 0", f"{PS}, {BUFFER}, {PS}"), "the mask is"),
    (copy("%p, %x, %m, %m", "1, 1, 1, 1", f"{PS}, {BUFFER}, {MS}, {MS}"), "takes no `other`"),
    (f'%w = "ttg.async_wait"() <{{num = -1 : i32}}> : () -> {TOKEN}', "all but 0 or more"),
    (f'%y = "ttg.memdesc_index"(%b, %i) : ({BUFFERS}, i32) -> {BUFFERS}', "does not give"),
]


@pytest.mark.parametrize(("body", "message"), ERRORS)
def test_errors(body, message):
    with pytest.raises(IRError, match=message):
        parse_module(module(body))
