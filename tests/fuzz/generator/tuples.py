"""Tuples, named ones and aggregates: carried by loops and branches, spread, sliced, with methods."""

from __future__ import annotations

from tests.fuzz.generator.builder import FLOATS, INTEGERS, Builder, Value, statement_of
from tests.fuzz.generator.control import nested

NUMBERS = (*INTEGERS, *FLOATS)


def _operands(b: Builder) -> tuple[Value, Value]:
    """Two values of one type of numbers."""
    dtype, shape = b.dtype(NUMBERS), b.shape()
    return b.value(dtype, shape), b.value(dtype, shape)


@statement_of("tuple")
def carried_tuple(b: Builder) -> None:
    """Items that change places and grow, in a loop or a branch."""
    nested(b)
    x, y = _operands(b)
    pair = b.name("t")
    b.emit(f"{pair} = ({x}, ({y}, {x}))")
    header = b.rng.choice(
        (
            f"for {b.name('k')} in range({b.number('int32', b.rng.randint(0, 3))}):",
            f"for {b.name('k')} in tl.static_range({b.rng.randint(0, 2)}):",
            f"if {b.value('int1', ())}:",
        )
    )
    a, c, d = b.name("a"), b.name("a"), b.name("a")
    changes = (
        f"{pair} = ({pair}[1][1], ({pair}[0], {pair}[1][0] + {pair}[0]))",
        f"{a}, ({c}, {d}) = {pair}\n{{}}{pair} = ({d} - {a}, ({a}, {c}))",
        f"{pair} = (*{pair}[1:][0], {pair}[0])\n{{}}{pair} = ({pair}[0], ({pair}[2], {pair}[1]))",
    )
    with b.block(header):
        b.emit(b.rng.choice(changes).format("    " * b.depth))
    for item in (f"{pair}[0]", f"{pair}[1][0]"):
        b.define(f"{item}", x.dtype, x.shape)


@statement_of("tuple")
def spread_arguments(b: Builder) -> None:
    x, y = _operands(b)
    name = b.name("of_all")
    bodies = (
        "first, *rest = values\n    return sum(rest) + first",
        "return sum([v * k for v in values if k is not None])",
        "a = values[0]\n    for i, v in enumerate(reversed(values)):\n        a = a - i * v\n    return a",
    )
    b.function(f"def {name}(*values, k: tl.constexpr):\n    {b.rng.choice(bodies)}")
    call = b.rng.choice((f"*({x}, {y}), {x}, k=2", f"{y}, {x}, k=3", f"*[{x} for _ in range(3)], **named(k=1)"))
    if "named" in call:
        b.function(f"def {name}_named(*values, **named):\n    return {name}(*values, **named)")
        call, name = call.replace("**named(k=1)", "k=1"), f"{name}_named"
    b.define(f"({name}({call})).to(tl.{x.dtype})", x.dtype, x.shape)


@statement_of("tuple")
def aggregate(b: Builder) -> None:
    """A class with a constexpr field, a method and an operator, whose value a loop or a branch carries."""
    nested(b)
    x, y = _operands(b)
    name, value = b.name("Pair"), b.name("t")
    b.functions.append(
        f"@triton.aggregate\nclass {name}:\n    first: tl.tensor\n    second: tl.tensor\n    K: tl.constexpr = 2\n\n"
        "    @triton.jit\n    def total(self, x):\n        return (self.first + self.second * self.K - x)"
        f".to(tl.{x.dtype})\n\n    @triton.jit\n    def __add__(self, x):\n"
        f"        return {name}(self.second, (self.first + x).to(tl.{x.dtype}), self.K)\n"
    )
    b.emit(f"{value} = {name}({x}, {y}, {b.rng.choice((0, 1, 3))})")
    header = b.rng.choice(
        (f"for {b.name('k')} in range({b.number('int32', b.rng.randint(0, 3))}):", f"if {b.value('int1', ())}:")
    )
    with b.block(header):
        b.emit(f"{value} = {value} + {b.rng.choice((x.text, y.text))}")
    b.define(f"{value}.total({y})", x.dtype, x.shape)
    b.define(f"tl.aggregate_replace({value}, first={y}).second", x.dtype, x.shape)
