"""Rewrites: each changes a kernel's text and leaves what it stores.

v = a + b              v = flipped(a, two1, scratch1) + b
v = a + b              v = outlined1(a, b)
out stays              if two1 == 2: ... else: ..., the same twice
for k in range(n):     while ...
tl.dot(a, b, c)        tl.trans(tl.dot(tl.trans(b), tl.trans(a), tl.trans(c)))
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from math import prod

from tests.fuzz.case import Argument
from tests.fuzz.mutator.loops import unrolled, with_options
from tests.fuzz.mutator.mutant import (
    Mutant,
    Place,
    Unfit,
    is_call_of,
    keyword,
    names_in,
    statements,
    text,
)
from tests.fuzz.rewrites.accesses import ACCESSES
from tests.fuzz.rewrites.same_values import FUNCTIONS, HEAD, MAPPED, SCRATCH_BYTES

REWRITES: dict[str, tuple[float, Callable[[Mutant], None]]] = {
    "unrolled": (0.3, unrolled),
    "with_options": (0.7, with_options),
}


def rewrite_by(weight: float) -> Callable:
    """Registers a rewrite; `weight`: how often it is drawn."""

    def register(change: Callable[[Mutant], None]) -> Callable[[Mutant], None]:
        REWRITES[change.__name__] = (weight, change)
        return change

    return register


@rewrite_by(8)
def same_value(mutant: Mutant) -> None:
    """A long way round to a name, or to what is computed."""
    place, node = mutant.expression(_is_value)
    if not place.is_in_kernel:
        raise Unfit
    name = mutant.choose(FUNCTIONS)
    _declare(mutant, "own", HEAD)
    _declare(mutant, "first_of_two", MAPPED)
    _declare(mutant, name, FUNCTIONS[name])
    mutant.replace(node, f"{name}({text(node)}, {_two(mutant)}, {_scratch(mutant)})")


def _is_value(node: ast.expr) -> bool:
    is_read = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    return is_read or isinstance(node, ast.BinOp | ast.Call | ast.Compare | ast.Subscript)


@rewrite_by(1.5)
def access_otherwise(mutant: Mutant) -> None:
    """Loads and stores by halves, in loops, in branches."""
    place, node = mutant.expression(lambda e: is_call_of(e, "load", "store"))
    given = [k.arg for k in node.keywords]
    kind = (*(["store"] if is_call_of(node, "store") else ["load"]), *given)
    if not place.is_in_kernel or kind not in ACCESSES or len(node.args) != 1 + (kind[0] == "store"):
        raise Unfit
    name = mutant.choose(ACCESSES[kind])
    _declare(mutant, name, ACCESSES[kind][name])
    arguments = [*map(text, node.args), *(text(k.value) for k in node.keywords), _two(mutant)]
    mutant.replace(node, f"{name}({', '.join(arguments)})")


@rewrite_by(1)
def in_a_function(mutant: Mutant) -> None:
    place = _pure(mutant)
    target, value = place.statement.targets[0], place.statement.value
    names = sorted(names_in(value) - {"tl", "triton", "float", "range"} - {f.name for f in mutant.functions})
    name = mutant.name("outlined")
    decorator = mutant.choose(("triton.jit", "triton.jit(noinline=True)"))
    source = f"@{decorator}\ndef {name}({', '.join(names)}):\n    return {text(value)}"
    place.become(f"{text(target)} = {name}({', '.join(names)})")
    _declare(mutant, name, source)


@rewrite_by(1)
def again_and_again(mutant: Mutant) -> None:
    place = _pure(mutant)
    again = text(place.statement)
    place.become(f"{again}\nfor {mutant.name('again')} in range({_two(mutant)}):\n    {again}")


@rewrite_by(1.5)
def in_both_branches(mutant: Mutant) -> None:
    place = mutant.place(lambda place: place.is_in_kernel and not isinstance(place.statement, ast.AnnAssign))
    if any(isinstance(node, ast.Return | ast.Break | ast.Continue) for node in ast.walk(place.statement)):
        raise Unfit
    [branch] = statements(f"if {_two(mutant)} {mutant.choose(('==', '!='))} 2:\n    pass\nelse:\n    pass")
    branch.body, branch.orelse = [place.statement], statements(text(place.statement))
    place.body[place.index] = branch


@rewrite_by(1)
def body_in_a_loop(mutant: Mutant) -> None:
    """What an iteration does is done in a loop of one iteration."""
    place = mutant.place(lambda place: place.is_in_kernel and isinstance(place.statement, ast.For))
    loop = place.statement
    if any(isinstance(node, ast.Return | ast.Break | ast.Continue) for node in ast.walk(loop)):
        raise Unfit
    [inner] = statements(f"for {mutant.name('once')} in range({_two(mutant)} - 1):\n    pass")
    inner.body, loop.body = loop.body, [inner]


@rewrite_by(1.5)
def while_for_for(mutant: Mutant) -> None:
    """The iterations are counted first, so that no index passes an end."""
    place = mutant.place(lambda place: isinstance(place.statement, ast.For) and _is_range(place.statement.iter))
    loop = place.statement
    given = [text(argument) for argument in loop.iter.args]
    start, stop, step = {1: ["0", *given, "1"], 2: [*given, "1"], 3: given}[len(given)]
    if not place.is_in_kernel or loop.orelse or not isinstance(loop.target, ast.Name):
        raise Unfit
    count, number, at, by = (mutant.name(prefix) for prefix in ("count", "number", "at", "by"))
    new = statements(
        f"{at} = {start} + ({stop}) * 0 + ({step}) * 0\n{by} = {step}\n{count} = 0\n"
        f"for {number} in range({', '.join(given)}):\n    {count} += 1\n"
        f"while {count} > 0:\n    {count} -= 1\n    {loop.target.id} = {at}\n    {at} += {by}"
    )
    new[-1].body += loop.body
    place.body[place.index : place.index + 1] = new


def _is_range(node: ast.expr) -> bool:
    is_one = isinstance(node, ast.Call) and text(node.func) in ("range", "tl.range")
    return is_one and 1 <= len(node.args) <= 3


@rewrite_by(0.5)
def known_number(mutant: Mutant) -> None:
    whole = [a for a in mutant.numbers() if a.dtype.startswith(("int", "uint")) and a.dtype != "int1"]
    number = mutant.choose(a for a in whole if not a.name.startswith("two"))
    mutant.kernel.body[:0] = statements(f"{number.name} = tl.full((), {number.fill}, tl.{number.dtype})")


@rewrite_by(0.7)
def unknown_bound(mutant: Mutant) -> None:
    place = mutant.place(lambda place: isinstance(place.statement, ast.For) and _is_range(place.statement.iter))
    bounds = [n for n in place.statement.iter.args if isinstance(n, ast.Constant) and isinstance(n.value, int)]
    bound = mutant.choose(bounds)
    if not place.is_in_kernel:
        raise Unfit
    mutant.replace(bound, f"({_two(mutant)} + {bound.value - 2})")


@rewrite_by(0.7)
def other_options(mutant: Mutant) -> None:
    name = mutant.choose(("num_warps", "num_warps", "num_stages", "num_ctas"))
    mutant.options[name] = mutant.choose(
        {"num_warps": (1, 2, 4, 8), "num_stages": (1, 2, 3, 4), "num_ctas": (1, 2)}[name]
    )


@rewrite_by(1.5)
def turned_dot(mutant: Mutant) -> None:
    _, node = mutant.expression(lambda e: is_call_of(e, "dot"))
    a, b, *acc = [text(argument) for argument in node.args]
    named = keyword(node, "acc")
    acc = acc or ([text(named.value)] if named else [])
    others = [text(k) for k in node.keywords if k is not named]
    arguments = [f"tl.trans({b})", f"tl.trans({a})", *(f"tl.trans({c})" for c in acc), *others]
    mutant.replace(node, f"tl.trans(tl.dot({', '.join(arguments)}))")


def _pure(mutant: Mutant) -> Place:
    """A statement that assigns a name what is computed without changing memory, and without that name."""
    return mutant.place(lambda place: place.is_in_kernel and _is_pure(place.statement))


def _is_pure(statement: ast.stmt) -> bool:
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
        return False
    if statement.targets[0].id in names_in(statement.value):
        return False
    called = [text(node.func) for node in ast.walk(statement.value) if isinstance(node, ast.Call)]
    return all(name.startswith("tl.") and not name.startswith("tl.atomic") or name == "float" for name in called)


def _declare(mutant: Mutant, name: str, source: str) -> None:
    if all(function.name != name for function in mutant.functions):
        mutant.tree.body[:0] = statements(source)


def _two(mutant: Mutant) -> str:
    return _argument(mutant, "two", "int32", None, 2)


def _scratch(mutant: Mutant) -> str:
    return _argument(mutant, "scratch", "int64", max(1, prod(mutant.grid)) * SCRATCH_BYTES // 8, "zeros")


def _argument(mutant: Mutant, prefix: str, *given) -> str:
    there: list[Argument] = [a for a in mutant.arguments if a.name.startswith(prefix)]
    return there[0].name if there else mutant.argument(prefix, *given)
