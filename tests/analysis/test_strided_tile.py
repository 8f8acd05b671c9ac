"""Which array a tile of pointers walks, and what a mask says of its bounds."""

import pytest
from ir_text import parse_kernel, value_named

from deuteron.analysis.addresses.polynomial import Atom, Polynomial, coordinate
from deuteron.analysis.addresses.strided_tile import Dimension, StridedTile, masked, positive, strided_tile
from deuteron.analysis.addresses.tile_polynomials import TilePolynomials
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.types import PointerType, f32, i32

FUNC = FuncOp("k", [PointerType(f32), PointerType(f32), i32, i32, i32])
A, B, S, H, M = (Polynomial.of(Atom(number, value)) for number, value in enumerate(FUNC.args))
I0, I1 = (Polynomial.of(coordinate(axis)) for axis in range(2))
PROGRAM = parse_kernel(
    "%m: i32",
    """
    %pid = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    use %pid : i32""",
)
PID = Polynomial.of(Atom(9, value_named(PROGRAM, "pid")))
ZERO, ONE, TWO = map(Polynomial.constant, range(3))


def test_rows_and_columns():
    found = strided_tile(A + I0 * S + I1, 2)
    assert found == StridedTile(FUNC.args[0], (Dimension(S, ZERO, 0), Dimension(ONE, ZERO, 1)))


def test_an_offset_moves_along_the_longest_stride_that_divides_it():
    found = strided_tile(A + I0 * S + I1 + PID * S + TWO * PID, 2)
    assert [dimension.offset for dimension in found.dimensions] == [PID, TWO * PID]


def test_an_argument_that_no_stride_has_is_a_dimension():
    found = strided_tile(A + I0 * S + I1 - PID * H, 2)
    assert found.dimensions[2] == Dimension(H, -PID, None)


@pytest.mark.parametrize(
    "pointer",
    [
        I0 * S + I1,  # no base
        A + B + I0,  # two
        A + A + I0 * S + I1,  # twice the same
        A + I0 * I0 + I1,  # a stride that is a coordinate
        A + I0 * I1 + I1,
        A + I0 * (S + ONE) + I1,  # a stride that is a sum
        A + I0 * PID + I1,  # one that is another in each program
        A + I0 * S,  # no second dimension
        A + I0 * S + I1 + B * S,  # a pointer as an offset
    ],
)
def test_what_is_no_array(pointer):
    assert strided_tile(pointer, 2) is None


TILE = "tensor<64xi32>"


def condition(predicate: int, lhs: str, rhs: str, name: str) -> str:
    compare = f'"arith.cmpi"({lhs}, {rhs}) <{{predicate = {predicate} : i64}}>'
    return f"%{name} = {compare} : ({TILE}, {TILE}) -> tensor<64xi1>\n"


MASKS = parse_kernel(
    f"%m: i32, %p: tensor<64xi1>, %x: {TILE}",
    f"""
    %i = "tt.make_range"() <{{start = 0 : i32, end = 64 : i32}}> : () -> {TILE}
    %size = "tt.splat"(%m) : (i32) -> {TILE}
    %nothing = "arith.constant"() <{{value = 0 : i32}}> : () -> i32
    %most = "arith.maxsi"(%m, %nothing) : (i32, i32) -> i32
    %natural = "tt.splat"(%most) : (i32) -> {TILE}
    %zero = "arith.constant"() <{{value = dense<0> : {TILE}}}> : () -> {TILE}
    %all = "arith.constant"() <{{value = dense<true> : tensor<64xi1>}}> : () -> tensor<64xi1>
    %none = "arith.constant"() <{{value = dense<false> : tensor<64xi1>}}> : () -> tensor<64xi1>
    """
    + condition(2, "%i", "%size", "below")  # slt
    + condition(3, "%i", "%size", "up_to")  # sle
    + condition(4, "%size", "%i", "turned")  # sgt
    + condition(5, "%i", "%zero", "from_zero")  # sge
    + condition(5, "%i", "%size", "above")
    + condition(6, "%i", "%size", "unsigned")  # ult
    + condition(6, "%i", "%natural", "within")
    + condition(1, "%i", "%size", "other")  # ne
    + condition(2, "%x", "%size", "unknown")
    + "".join(
        f'%{name} = "arith.{op}"(%{a}, %{b}) : (tensor<64xi1>, tensor<64xi1>) -> tensor<64xi1>\n'
        for name, op, a, b in [
            ("both", "andi", "below", "from_zero"),
            ("either", "ori", "below", "from_zero"),
            ("two_ends", "andi", "below", "up_to"),
            ("half_known", "andi", "below", "p"),
        ]
    )
    + "".join(
        f"use %{name} : tensor<64xi1>\n" for name in ("within", "both", "either", "two_ends", "half_known", "turned")
    ),
)


def bounds(name: str) -> tuple | None:
    """Size, less the argument %m, and whether it starts at 0; None where the mask says more."""
    known = TilePolynomials()
    tile = StridedTile(FUNC.args[0], (Dimension(ONE, ZERO, 0),))
    found = masked(tile, known, value_named(MASKS, name))
    if found is None:
        return None
    (dimension,) = found.dimensions
    size = dimension.size and (dimension.size - Polynomial.of(known.atom(value_named(MASKS, "m")))).number
    return size, dimension.starts_at_zero


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        ("below", (0, False)),
        ("up_to", (1, False)),
        ("turned", (0, False)),
        ("from_zero", (None, True)),
        ("both", (0, True)),
        ("within", (0, True)),
        ("all", (None, False)),
    ],
)
def test_bounds_of_a_mask(mask, expected):
    assert bounds(mask) == expected


def moved(offset: Polynomial, mask: str = "both") -> tuple[Dimension, ...] | None:
    """The dimensions of a column of stride 512 that a block walks from an offset, with a mask on its own rows."""
    known = TilePolynomials()
    stride = Polynomial.constant(512)
    found = masked(StridedTile(FUNC.args[0], (Dimension(stride, offset, 0),)), known, value_named(MASKS, mask))
    return found and found.dimensions


@pytest.mark.parametrize("mask", ["below", "from_zero", "both"])
def test_what_a_mask_does_not_count_moves_along_a_dimension_of_its_own(mask):
    rows, other = moved(PID + TWO * PID, mask)
    assert rows.offset == ZERO and rows.stride == Polynomial.constant(512)
    assert other == Dimension(Polynomial.constant(3 * 512), PID, None)


def test_what_an_earlier_bound_counts_stays():
    known = TilePolynomials()
    dimension = Dimension(Polynomial.constant(512), PID, 0, size=M)
    assert masked(StridedTile(FUNC.args[0], (dimension,)), known, value_named(MASKS, "below")) is None


@pytest.mark.parametrize(
    "mask", ["none", "above", "unsigned", "other", "unknown", "either", "two_ends", "half_known", "p"]
)
def test_what_else_a_mask_says_is_not_left_out(mask):
    assert bounds(mask) is None


def test_a_condition_on_another_axis():
    module = parse_kernel(
        "%m: i32",
        f"""
        %i = "tt.make_range"() <{{start = 0 : i32, end = 64 : i32}}> : () -> {TILE}
        %size = "tt.splat"(%m) : (i32) -> {TILE}
        {condition(2, "%i", "%size", "row")}
        %column = "tt.expand_dims"(%row) <{{axis = 0 : i32}}> : (tensor<64xi1>) -> tensor<1x64xi1>
        %mask = "tt.broadcast"(%column) : (tensor<1x64xi1>) -> tensor<8x64xi1>
        use %mask : tensor<8x64xi1>""",
    )
    known = TilePolynomials()
    size = Polynomial.of(known.atom(value_named(module, "m")))
    assert positive(known, value_named(module, "mask")) == [size - I1]
