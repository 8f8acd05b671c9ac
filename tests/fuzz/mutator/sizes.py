"""Sizes: what is known when a kernel is compiled, numbers that it is given, its grid and its options.

BLOCK: tl.constexpr = 64       BLOCK: tl.constexpr = 128
n = 70                         n = 71, 1, 0, -70
"""

from __future__ import annotations

import ast
from typing import Any

from tests.fuzz.case import Argument
from tests.fuzz.mutator.mutant import Mutant, Unfit, edit_of, is_constant

GRIDS = (1, 2, 3, 5)


@edit_of("sizes")
def another_constant(mutant: Mutant) -> None:
    """Blocks of powers of two, tiny and huge; others odd."""
    place = mutant.place(lambda place: is_constant(place.statement))
    value = _literal(place.statement.value)
    place.statement.value = ast.Constant(mutant.choose(_others(value)))


@edit_of("sizes")
def twice_the_block(mutant: Mutant) -> None:
    place = mutant.place(lambda place: is_constant(place.statement) and type(_literal(place.statement.value)) is int)
    value = _literal(place.statement.value)
    place.statement.value = ast.Constant(mutant.choose((value * 2, max(value // 2, 1), value * 4)))


def _literal(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        raise Unfit from None


def _others(value: Any) -> list[Any]:
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value - 1, 0, 1, 2, 16, 64, 128, -value]
    if isinstance(value, float):
        return [0.0, 1.0, -value, value * 2]
    raise Unfit


@edit_of("sizes")
def another_number(mutant: Mutant) -> None:
    argument = mutant.choose(mutant.numbers())
    value = argument.fill
    if isinstance(value, float):
        others = [0.0, 1.0, -1.5, 2.0, 0.25, -value]
    elif isinstance(value, bool):
        others = [not value]
    else:
        others = [value + 1, value - 1, value // 2, value * 2, 0, 1, 2, 3, 16, 48, -1, -value]
    mutant.argue(argument, fill=mutant.choose(others))


@edit_of("sizes")
def exchanged_numbers(mutant: Mutant) -> None:
    """Of strides: the array is turned."""
    one = mutant.choose(mutant.numbers())
    other = mutant.choose(a for a in mutant.numbers() if a.dtype == one.dtype and a.fill != one.fill)
    mutant.argue(one, fill=other.fill)
    mutant.argue(other, fill=one.fill)


@edit_of("sizes")
def known_number(mutant: Mutant) -> None:
    """An argument becomes known when it is compiled."""
    argument = mutant.choose(a for a in mutant.numbers() if a.dtype in ("int32", "int64", "int16"))
    mutant.arguments.remove(argument)
    parameters = mutant.kernel.args.args
    parameters[:] = [parameter for parameter in parameters if parameter.arg != argument.name]
    mutant.kernel.body[:0] = ast.parse(f"{argument.name}: tl.constexpr = {argument.fill}").body


@edit_of("sizes")
def number_at_run_time(mutant: Mutant) -> None:
    """What is known when it is compiled becomes an argument."""
    place = mutant.place(
        lambda place: (
            place.is_in_kernel
            and is_constant(place.statement)
            and type(_literal(place.statement.value)) in (int, float)
        )
    )
    name, value = place.statement.target.id, _literal(place.statement.value)
    del place.body[place.index]
    mutant.kernel.args.args.append(ast.arg(name))
    mutant.arguments.append(Argument(name, "int32" if type(value) is int else "float32", None, value))


@edit_of("sizes")
def literal_at_run_time(mutant: Mutant) -> None:
    """A number in the text becomes an argument."""
    place, node = mutant.expression(lambda e: isinstance(e, ast.Constant) and type(e.value) in (int, float))
    if not place.is_in_kernel:
        raise Unfit
    dtype = "float32" if type(node.value) is float else mutant.choose(("int32", "int32", "int64", "int16"))
    mutant.replace(node, mutant.argument("n", dtype, None, node.value))


@edit_of("sizes")
def another_literal(mutant: Mutant) -> None:
    _, node = mutant.expression(lambda e: isinstance(e, ast.Constant) and type(e.value) in (int, float))
    value = node.value
    others = (value + 1, value - 1, value * 2, 0, 1, 2, 7, 16, -value, -1)
    node.value = type(value)(mutant.choose(others))


@edit_of("sizes")
def another_grid(mutant: Mutant) -> None:
    axis = mutant.rng.randrange(len(mutant.grid))
    mutant.grid = tuple(mutant.choose(GRIDS) if i == axis else extent for i, extent in enumerate(mutant.grid))


@edit_of("sizes")
def other_options(mutant: Mutant) -> None:
    mutant.options |= {
        "num_warps": mutant.choose((1, 2, 4, 8, 16)),
        "num_stages": mutant.choose((1, 2, 3, 4, 5)),
    }
    if mutant.rng.random() < 0.3:
        mutant.options["enable_fp_fusion"] = False
    if mutant.rng.random() < 0.1:
        mutant.options["num_ctas"] = 2


@edit_of("sizes")
def other_contents(mutant: Mutant) -> None:
    argument = mutant.choose(a for a in mutant.arrays() if not isinstance(a.fill, tuple) and a.fill != "index")
    mutant.argue(argument, fill=mutant.choose(("small", "normal", "special", "zeros", "ones", "arange")))
