"""Assertions that hold and prints that do not come about, which only what is known at run time tells."""

from __future__ import annotations

from tests.fuzz.generator.builder import FLOATS, INTEGERS, Builder, Value, statement_of
from tests.fuzz.generator.control import nested


def _number(b: Builder) -> tuple[Value, int]:
    """A number, and what it is."""
    value = b.rng.randint(-3, 9)
    return b.kept_number("int32", value), value


@statement_of("watched")
def assertion(b: Builder) -> None:
    """That something is so of a value, or that a number is what it is; some before and after what it could stop."""
    n, value = _number(b)
    x = b.value(b.dtype((*INTEGERS, *FLOATS)), b.shape())
    condition = f"({x} < {b.literal(x.dtype)}) | ({n} == {value})"
    masked = f'tl.device_assert({x} > {b.literal(x.dtype)}, "masked", mask={n} != {value})'
    b.emit(b.rng.choice((f'tl.device_assert({condition}, "so")', f"assert {condition}", masked)))


@statement_of("watched")
def print_in_a_branch(b: Builder) -> None:
    """Of one value or two; at times the branch does something else as well."""
    nested(b)
    n, value = _number(b)
    x, y = b.value(b.dtype(), b.shape()), b.value(b.dtype(), b.shape())
    told = b.rng.choice((f"{x}", f"{x}, {y}", f"{x}, hex=True"))
    with b.block(f"if {n} {b.rng.choice(('!=', '>'))} {value}:"):
        b.emit(f'tl.device_print("value", {told})')
        if b.chance(0.3):
            b.statement()
