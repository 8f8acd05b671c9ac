"""Loops: other bounds and steps, other kinds, loops around them and in them, ways out of them.

for k in range(0, K, BK):       for k in range(K - 1, -1, -BK), for k in tl.range(0, K, BK, num_stages=3),
                                k = 0; while k < K: ...; k += BK
"""

from __future__ import annotations

import ast

from tests.fuzz.mutator.mutant import Mutant, Place, Unfit, edit_of, is_call_of, statements, text

BOUNDS = ("0", "1", "2", "3", "5", "-1", "7")


def _loop(mutant: Mutant) -> tuple[Place, ast.For, list[str]]:
    """One over a range, with its start, stop and step."""
    place = mutant.place(lambda place: isinstance(place.statement, ast.For) and _is_range(place.statement.iter))
    given = [text(argument) for argument in place.statement.iter.args]
    start, stop, step = {1: ["0", *given, "1"], 2: [*given, "1"], 3: given}[len(given)]
    return place, place.statement, [start, stop, step]


def _is_range(node: ast.expr) -> bool:
    is_plain = isinstance(node, ast.Call) and text(node.func) == "range"
    return (is_plain or is_call_of(node, "range", "static_range")) and 1 <= len(node.args) <= 3


def _over(loop: ast.For, *bounds: str, kind: str = "", **options: object) -> None:
    kind = kind or text(loop.iter.func)
    if options and kind == "range":
        kind = "tl.range"
    more = "".join(f", {name}={value}" for name, value in options.items())
    loop.iter = statements(f"{kind}({', '.join(bounds)}{more})")[0].value


@edit_of("loops")
def other_bounds(mutant: Mutant) -> None:
    _, loop, bounds = _loop(mutant)
    which = mutant.rng.randrange(3)
    before = bounds[which]
    bounds[which] = mutant.choose(
        (*BOUNDS, f"({before}) + 1", f"({before}) - 1", f"({before}) * 2", f"({before}) // 2")
    )
    _over(loop, *bounds)


@edit_of("loops")
def no_rounds(mutant: Mutant) -> None:
    """Seen when it is compiled, or not."""
    place, loop, (start, stop, step) = _loop(mutant)
    if mutant.rng.random() < 0.5 or not place.is_in_kernel:
        _over(loop, start, start, step)
    else:
        _over(loop, start, f"({stop}) * {mutant.argument('n', 'int32', None, 0)}", step)


@edit_of("loops")
def backwards(mutant: Mutant) -> None:
    _, loop, (start, stop, step) = _loop(mutant)
    _over(loop, f"({stop}) - 1", f"({start}) - 1", f"-({step})")


@edit_of("loops")
def from_the_last_round(mutant: Mutant) -> None:
    """The same indices, the last first."""
    _, loop, (start, stop, step) = _loop(mutant)
    _over(loop, f"({start}) + (tl.cdiv(({stop}) - ({start}), {step}) - 1) * ({step})", f"({start}) - 1", f"-({step})")


@edit_of("loops")
def bounds_at_run_time(mutant: Mutant) -> None:
    place, loop, bounds = _loop(mutant)
    if not place.is_in_kernel:
        raise Unfit
    which = mutant.rng.randrange(3)
    zero = mutant.argument("n", mutant.choose(("int32", "int64")), None, mutant.choose((0, 0, 1)))
    bounds[which] = f"({bounds[which]}) + {zero}"
    _over(loop, *bounds, kind="range")


@edit_of("loops")
def with_options(mutant: Mutant) -> None:
    _, loop, bounds = _loop(mutant)
    options = {
        "num_stages": (1, 2, 3, 4),
        "loop_unroll_factor": (1, 2, 3, 4),
        "flatten": (True,),
        "warp_specialize": (True,),
        "disallow_acc_multi_buffer": (True,),
    }
    names = mutant.rng.sample(list(options), mutant.choose((1, 1, 2)))
    _over(loop, *bounds, kind="tl.range", **{name: mutant.choose(options[name]) for name in names})


@edit_of("loops")
def unrolled(mutant: Mutant) -> None:
    _, loop, bounds = _loop(mutant)
    _over(loop, *bounds, kind=mutant.choose(("tl.static_range", "tl.range", "range")))


@edit_of("loops")
def as_while(mutant: Mutant) -> None:
    place, loop, (start, stop, step) = _loop(mutant)
    if not isinstance(loop.target, ast.Name) or any(isinstance(n, ast.Continue) for n in ast.walk(loop)):
        raise Unfit
    name = loop.target.id if loop.target.id != "_" else mutant.name("i")
    condition = f"{name} < {stop}" if not step.startswith("-") else f"{name} > {stop}"
    head, loop_text = f"{name} = ({start}) + 0 * tl.program_id(0)", f"while {condition}:\n    {name} += {step}"
    new = statements(f"{head}\n{loop_text}")
    new[1].body[:0] = loop.body
    place.body[place.index : place.index + 1] = new


@edit_of("loops")
def in_another_loop(mutant: Mutant) -> None:
    """Rounds of a loop, or of statements, more than once."""
    place = mutant.place(lambda place: place.num_loops < 2 and not isinstance(place.statement, ast.AnnAssign))
    length = mutant.choose((1, 1, 2, 4))
    inside = place.body[place.index : place.index + length]
    if any(isinstance(s, ast.AnnAssign | ast.Return) for s in inside):
        raise Unfit
    rounds = "2" if not place.is_in_kernel else mutant.argument("n", "int32", None, mutant.choose((1, 2, 2, 3, 0)))
    options = mutant.choose(("", "", ", num_stages=3", ", num_stages=2", ", loop_unroll_factor=2"))
    iterations = f"tl.range({mutant.choose((rounds, '2', '1'))}{options})"
    [loop] = statements(f"for {mutant.name('r')} in {iterations}:\n    pass")
    loop.body = inside
    place.body[place.index : place.index + length] = [loop]


@edit_of("loops")
def summed_in_rounds(mutant: Mutant) -> None:
    """A value is computed again and again, and carried: what it loads may be loaded ahead."""
    place = mutant.place(lambda place: place.is_in_kernel and _is_of_one_name(place.statement))
    name, value = text(place.statement.targets[0]), text(place.statement.value)
    acc, rounds = mutant.name("acc"), mutant.argument("n", "int32", None, mutant.choose((0, 1, 2, 3, 5)))
    step = mutant.choose(("{0} + {1}", "{0} + {1}", "tl.maximum({0}, {1})", "{1}", "{1} - {0}")).format(acc, value)
    options = mutant.choose(("", ", num_stages=2", ", num_stages=3", ", num_stages=4"))
    loop = f"for {mutant.name('r')} in tl.range({rounds}{options}):\n    {acc} = {step}"
    place.become(f"{acc} = {value}\n{loop}\n{name} = {acc}")


@edit_of("loops")
def loaded_a_round_ahead(mutant: Mutant) -> None:
    """By hand: a value of the next round is computed at the end of each, the first one before the loop."""
    place, loop, (start, _, step) = _loop(mutant)
    first = mutant.choose(s for s in loop.body if _is_of_one_name(s))
    needed = [text(s) for s in loop.body[: loop.body.index(first)] if isinstance(s, ast.Assign)]
    ahead, index = mutant.name("ahead"), loop.target.id
    lines = "\n".join([*needed, f"{ahead} = {text(first.value)}"])
    place.insert(f"{index} = {start}\n{lines}")
    loop.body += statements(f"{index} += {step}\n{lines}")
    first.value = ast.Name(ahead)


def _is_of_one_name(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)


@edit_of("loops")
def way_out(mutant: Mutant) -> None:
    place = mutant.place(lambda place: place.num_loops > 0)
    _leave(mutant, place, mutant.choose(("break", "continue")))


@edit_of("loops")
def early_return(mutant: Mutant) -> None:
    place = mutant.place(lambda place: place.is_in_kernel and not is_first(place))
    _leave(mutant, place, "return")


def is_first(place: Place) -> bool:
    return isinstance(place.statement, ast.AnnAssign)


def _leave(mutant: Mutant, place: Place, how: str) -> None:
    place.insert(f"if {condition(mutant, place)}:\n    {how}")


def condition(mutant: Mutant, place: Place) -> str:
    """A scalar one: of the program, of a number, of something computed."""
    name = mutant.choose([*place.scope, "tl.program_id(0)"])
    relation, limit = mutant.choose(("==", "<", ">", ">=", "!=")), mutant.choose(("0", "1", "2", "16"))
    reduction = mutant.choose(("{}", "{}", "tl.max({})", "tl.sum({})", "tl.min({})"))
    return f"{reduction.format(name)} {relation} {limit}"


@edit_of("loops")
def first_round_apart(mutant: Mutant) -> None:
    """The rounds are shared out over two loops."""
    place, loop, (start, stop, step) = _loop(mutant)
    middle = f"tl.minimum(({start}) + ({step}), {stop})"
    second = statements(text(loop))[0]
    _over(loop, start, middle, step, kind="range")
    _over(second, middle, stop, step, kind="range")
    place.body.insert(place.index + 1, second)
