"""Statements: left out, twice, before others, in branches, out of loops and into them, in functions of their own.

for k in ...:                   a = tl.load(p)
    a = tl.load(p)              for k in ...:
"""

from __future__ import annotations

import ast

from tests.fuzz.mutator.loops import condition
from tests.fuzz.mutator.mutant import (
    Mutant,
    Place,
    Unfit,
    assigned_by,
    assigned_by_target,
    edit_of,
    names_in,
    statements,
    text,
)


def _is_plain(place: Place) -> bool:
    return isinstance(place.statement, ast.Assign | ast.AugAssign | ast.Expr | ast.For | ast.While | ast.If)


@edit_of("statements")
def left_out(mutant: Mutant) -> None:
    place = mutant.place(_is_plain)
    if len(place.body) == 1:
        raise Unfit
    del place.body[place.index]


@edit_of("statements")
def twice(mutant: Mutant) -> None:
    place = mutant.place(_is_plain)
    where = mutant.rng.randint(place.index, len(place.body))
    place.body.insert(where, statements(text(place.statement))[0])


@edit_of("statements")
def turned(mutant: Mutant) -> None:
    place = mutant.place(lambda place: _is_plain(place) and place.index + 1 < len(place.body))
    place.body.insert(place.index + 1, place.body.pop(place.index))


@edit_of("statements")
def moved(mutant: Mutant) -> None:
    place = mutant.place(_is_plain)
    statement = place.body.pop(place.index)
    place.body.insert(mutant.rng.randint(0, len(place.body)), statement)
    if len(place.body) == 0:
        raise Unfit


@edit_of("statements")
def out_of_the_loop(mutant: Mutant) -> None:
    place = mutant.place(lambda place: isinstance(place.statement, ast.For | ast.While | ast.If))
    inner = place.statement.body
    if len(inner) == 1:
        raise Unfit
    index = mutant.rng.randrange(len(inner))
    place.body.insert(place.index + mutant.choose((0, 0, 1)), inner.pop(index))


@edit_of("statements")
def into_the_loop(mutant: Mutant) -> None:
    place = mutant.place(lambda place: isinstance(place.statement, ast.For | ast.While | ast.If) and place.index > 0)
    before = place.body[place.index - 1]
    if not isinstance(before, ast.Assign | ast.AugAssign | ast.Expr):
        raise Unfit
    place.statement.body.insert(mutant.choose((0, 0, len(place.statement.body))), before)
    del place.body[place.index - 1]


@edit_of("statements")
def in_a_branch(mutant: Mutant) -> None:
    """What it assigns keeps what it had otherwise, or is computed another way."""
    place = mutant.place(lambda place: _is_plain(place) and set(assigned_by(place.statement)) <= set(place.scope))
    [branch] = statements(f"if {condition(mutant, place)}:\n    pass")
    branch.body = [place.statement]
    if mutant.rng.random() < 0.3:
        branch.orelse = statements(text(place.statement))
    place.body[place.index] = branch


@edit_of("statements")
def in_both_branches(mutant: Mutant) -> None:
    """The rest of a body too, so that what is loaded before is used in branches."""
    place = mutant.place(lambda place: _is_plain(place) and place.index > 0)
    rest = place.body[place.index :]
    if any(isinstance(s, ast.Return | ast.AnnAssign) for s in rest) or len(rest) > 8:
        raise Unfit
    [branch] = statements(f"if {condition(mutant, place)}:\n    pass\nelse:\n    pass")
    branch.body, branch.orelse = rest, [statements(text(s))[0] for s in rest]
    place.body[place.index :] = [branch]


@edit_of("statements")
def value_of_the_round_before(mutant: Mutant) -> None:
    """A name gets what another one has, so that loops carry more."""
    place = mutant.place(_is_plain)
    target, value = mutant.choose(place.scope), mutant.choose(place.scope)
    place.insert(f"{target} = {value}", after=mutant.rng.random() < 0.5)


@edit_of("statements")
def exchanged(mutant: Mutant) -> None:
    place = mutant.place(_is_plain)
    if len(place.scope) < 2:
        raise Unfit
    a, b = mutant.rng.sample(place.scope, 2)
    place.insert(f"{a}, {b} = ({b}, {a})")


@edit_of("statements")
def in_a_function(mutant: Mutant) -> None:
    """An expression is what a function gives, inlined or called."""
    place = mutant.place(lambda place: isinstance(place.statement, ast.Assign))
    value = place.statement.value
    parameters = sorted(names_in(value) & set(place.scope))
    if any(name in text(value) for name in ("tl.constexpr",)) or not parameters:
        raise Unfit
    name = mutant.name("f")
    decorator = mutant.choose(("triton.jit", "triton.jit", "triton.jit(noinline=True)"))
    source = f"@{decorator}\ndef {name}({', '.join(parameters)}):\n    return {text(value)}"
    mutant.tree.body[:0] = statements(source)
    place.statement.value = statements(f"{name}({', '.join(parameters)})")[0].value


@edit_of("statements")
def run_in_a_function(mutant: Mutant) -> None:
    """Some statements become a function, which gives all that they assign."""
    place = mutant.place(lambda place: _is_plain(place) and place.is_in_kernel)
    run = place.body[place.index : place.index + mutant.choose((1, 2, 3, 5))]
    kept = (ast.AnnAssign, ast.Return, ast.Break, ast.Continue)
    if any(isinstance(node, kept) for statement in run for node in ast.walk(statement)):
        raise Unfit
    indices = {name for statement in run for node in ast.walk(statement) for name in assigned_by_target(node)}
    outputs = sorted({name for statement in run for name in assigned_by(statement)} - indices)
    inputs = sorted(set().union(*map(names_in, run)) & set(place.scope))
    name, given = mutant.name("f"), ", ".join(outputs)
    [function] = statements(f"@triton.jit\ndef {name}({', '.join(inputs)}):\n    return ({given})")
    [call] = statements(f"{given} = {name}({', '.join(inputs)})" if given else f"{name}({', '.join(inputs)})")
    function.body = [*run, *(function.body if given else [])]
    place.body[place.index : place.index + len(run)] = [call]
    mutant.tree.body[:0] = [function]


@edit_of("statements")
def barrier(mutant: Mutant) -> None:
    mutant.place(lambda place: _is_plain(place) and place.is_in_kernel).insert("tl.debug_barrier()")
