"""Remarks are data that stays with its op: kinds and values for programs, reasons for people."""

import pytest
from ir_text import parse_kernel, value_named

from deuteron.ir.remarks import Kind, Remark, remark, remark_of, remarks_in, remarks_of
from deuteron.ir.text import parse_module, print_module

BODY = """
    %a = "arith.addi"(%n, %n) : (i32, i32) -> i32
    use %a : i32"""


@pytest.fixture
def op():
    return value_named(parse_kernel("%n: i32", BODY), "a").owner


def test_one_of_each_kind(op):
    remark(op, Kind.NOT_AHEAD, "first")
    remark(op, Kind.NO_MMA, 'it takes "more"', rows=16)
    remark(op, Kind.NOT_AHEAD, "second", bytes=4)
    assert list(remarks_of(op)) == [
        Remark(Kind.NOT_AHEAD, "second", {"bytes": 4}),
        Remark(Kind.NO_MMA, 'it takes "more"', {"rows": 16}),
    ]
    assert remark_of(op, Kind.NO_WGMMA) is None


def test_the_last_of_two_that_contradict_each_other(op):
    """As where a load was to go into registers, before its loop turned out to stay as it is."""
    remark(op, Kind.INTO_REGISTERS, "as planned")
    remark(op, Kind.NOT_AHEAD, "there is no room")
    assert [found.kind for found in remarks_of(op)] == [Kind.NOT_AHEAD]
    remark(op, Kind.INTO_REGISTERS, "there is")
    assert [found.kind for found in remarks_of(op)] == [Kind.INTO_REGISTERS]


def test_texts_keep_them(op):
    remark(op, Kind.INTO_REGISTERS, 'why; \\ "quoted"\n µ', bytes_per_thread=128)
    module = op.parent_op().parent_op()
    again = parse_module(print_module(module))
    ((found, said),) = remarks_in(again)
    assert (found.name, said) == ("arith.addi", remark_of(op, Kind.INTO_REGISTERS))
    assert said.values == {"bytes_per_thread": 128}


@pytest.mark.parametrize(
    ("attribute", "expected"),
    [
        ('"not-ahead"', []),
        ('{unknown = {reason = "x"}}', []),
        ('{"no-mma" = "x"}', []),
        ('{"no-mma" = {rows = "many", columns = 8 : i64}}', [Remark(Kind.NO_MMA, "", {"columns": 8})]),
    ],
)
def test_what_others_wrote_does_no_harm(attribute, expected):
    text = BODY.replace("(%n, %n)", f"(%n, %n) {{remarks = {attribute}}}")
    module = parse_kernel("%n: i32", text)
    assert [said for _, said in remarks_in(module)] == expected
