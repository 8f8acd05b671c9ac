"""Remarks are data that stays with its op, or with the module: kinds and values for programs, reasons for people."""

import pytest
from ir_text import parse_kernel, value_named

from deuteron.errors import Location
from deuteron.ir.location import to_attribute
from deuteron.ir.remarks import Kind, Remark, remark, remark_of, remark_place, remarks_in, remarks_of
from deuteron.ir.text import parse_module, print_module
from deuteron.passes.rewrite import replace

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
    ((_, said),) = remarks_in(again)
    assert said == remark_of(op, Kind.INTO_REGISTERS)
    assert said.values == {"bytes_per_thread": 128}


def test_what_is_said_of_a_place_is_said_once_and_outlives_its_op(op):
    module, place = op.parent_op().parent_op(), Location("k.py", 7, 9)
    located = to_attribute(place, "x", (Location("k.py", 20, 5),))
    for _ in range(2):
        remark_place(module, located, Kind.NO_TMA, "it is a gather", rows=16)
    remark_place(module, located, Kind.NO_TMA, "it is large")
    replace(op, [op.operands[0]])
    said = [(place, Remark(Kind.NO_TMA, "it is a gather", {"rows": 16})), (place, Remark(Kind.NO_TMA, "it is large"))]
    assert remarks_in(module) == remarks_in(parse_module(print_module(module))) == said


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
    module = parse_module(f"module attributes {{tt.remarks = [{attribute}]}} {{}}")
    assert [said for _, said in remarks_in(module)] == expected


@pytest.mark.parametrize(
    "attribute", ["[3 : i32]", '"x"', '[{"no-mma" = {}, at = 3 : i32, line = 2 : i64, column = "x"}]']
)
def test_what_others_wrote_of_places_does_no_harm(attribute):
    module = parse_module(f"module attributes {{tt.remarks = {attribute}}} {{}}")
    assert all(place is None for place, _ in remarks_in(module))
