"""Values computed by more ops, one of another, than Python's stack is deep, and by more paths than anyone counts."""

import pytest
from ir_text import parse_kernel, value_named

from deuteron.analysis.addresses.tile_polynomials import TilePolynomials
from deuteron.analysis.axis.ranges import most_programs

COUNT = 700
TILE = "tensor<16xi32>"


def last_of(parameters: str, begin: str, step: str, count: int = COUNT):
    """What is left of a chain: `step` makes %x<next> of %x<now>."""
    steps = "\n".join(step.replace("<next>", str(n + 1)).replace("<now>", str(n)) for n in range(count))
    module = parse_kernel(parameters, f"{begin}\n{steps}")
    return module, value_named(module, f"x{count}")


def test_pointers():
    step = '%x<next> = "tt.addptr"(%x<now>, %n) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>'
    module, last = last_of("%x0: !tt.ptr<f32>, %n: i32", "", step)
    known = TilePolynomials()
    pointer, number = (known.of(value_named(module, name)) for name in ("x0", "n"))
    assert known.of(last) - pointer == sum([number] * (COUNT - 1), number)


@pytest.mark.parametrize(("op", "expected"), [("addi", True), ("minsi", True), ("subi", False)])
def test_what_is_not_negative(op, expected):
    flags = "" if op == "minsi" else " <{overflowFlags = #arith.overflow<none>}>"
    scalars = f'%x<next> = "arith.{op}"(%x<now>, %x0){flags} : (i32, i32) -> i32'
    begin = '%x0 = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32'
    assert (most_programs(last_of("", begin, scalars)[1]) is not None) == expected
    begin = f'%x0 = "tt.make_range"() <{{start = 0 : i32, end = 16 : i32}}> : () -> {TILE}'
    assert (most_programs(last_of("", begin, scalars.replace("i32", TILE))[1]) is not None) == expected


def test_squares_of_squares():
    """A polynomial of it would have 2 ** 60 factors."""
    step = '%x<next> = "arith.muli"(%x<now>, %x<now>) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32'
    _, last = last_of("%x0: i32", "", step, 60)
    assert TilePolynomials().of(last) is not None
    assert most_programs(last) is None
