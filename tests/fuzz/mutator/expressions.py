"""Expressions: another name, operator, function or axis; the same value written otherwise.

x - mean        mean - x, x + mean, x - scale, tl.trans(tl.trans(x)) - mean
tl.sum(x, 1)    tl.max(x, 1), tl.sum(x, 0), tl.cumsum(x, 1)
"""

from __future__ import annotations

import ast

from tests.fuzz.mutator.mutant import Mutant, Unfit, edit_of, is_call_of, statements, text

OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.BitAnd, ast.BitOr, ast.BitXor)
SHIFTS = (ast.LShift, ast.RShift)
UNARY = ("exp", "exp2", "log", "log2", "sqrt", "rsqrt", "sin", "cos", "abs", "floor", "ceil", "sigmoid", "erf")
BINARY = ("maximum", "minimum", "cdiv")
REDUCTIONS = ("sum", "max", "min", "xor_sum", "argmax", "argmin", "reduce_or")
SCANS = ("cumsum", "cumprod", "softmax", "sort", "flip")
ALIKE = (UNARY, BINARY, (*REDUCTIONS, *SCANS))


def _function_of(node: ast.expr) -> str | None:
    is_of_language = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    return node.func.attr if is_of_language else None


@edit_of("expressions")
def another_name(mutant: Mutant) -> None:
    place, node = mutant.expression(lambda e: isinstance(e, ast.Name))
    mutant.replace(node, mutant.choose(set(place.scope) - {node.id}))


@edit_of("expressions")
def another_operator(mutant: Mutant) -> None:
    _, node = mutant.expression(lambda e: isinstance(e, ast.BinOp))
    node.op = mutant.choose(SHIFTS if isinstance(node.op, SHIFTS) else OPERATORS)()


@edit_of("expressions")
def another_function(mutant: Mutant) -> None:
    _, node = mutant.expression(lambda e: any(_function_of(e) in alike for alike in ALIKE))
    [alike] = [alike for alike in ALIKE if node.func.attr in alike]
    node.func.attr = mutant.choose(set(alike) - {node.func.attr})


@edit_of("expressions")
def another_axis(mutant: Mutant) -> None:
    """Or all of them, or one that stays; a scan the other way."""
    _, node = mutant.expression(lambda e: _function_of(e) in (*REDUCTIONS, *SCANS, "associative_scan", "reduce"))
    name = node.func.attr
    if name in ("cumsum", "cumprod", "associative_scan") and mutant.rng.random() < 0.5:
        node.keywords = [*(k for k in node.keywords if k.arg != "reverse"), ast.keyword("reverse", ast.Constant(True))]
        return
    if name in REDUCTIONS and mutant.rng.random() < 0.3:
        node.keywords = [
            *(k for k in node.keywords if k.arg != "keep_dims"),
            ast.keyword("keep_dims", ast.Constant(True)),
        ]
        return
    axis = ast.Constant(mutant.choose((0, 1, -1, None)))
    node.keywords = [k for k in node.keywords if k.arg not in ("axis", "dim")]
    if len(node.args) > 1:
        node.args[1] = axis
    else:
        node.keywords.append(ast.keyword("dim" if name in ("softmax", "sort", "flip") else "axis", axis))


@edit_of("expressions")
def other_order(mutant: Mutant) -> None:
    _, node = mutant.expression(lambda e: isinstance(e, ast.BinOp))
    node.left, node.right = node.right, node.left


@edit_of("expressions")
def other_brackets(mutant: Mutant) -> None:
    """`(a * b) * c` becomes `a * (b * c)`; of other operators too."""
    _, node = mutant.expression(lambda e: isinstance(e, ast.BinOp) and isinstance(e.left, ast.BinOp))
    a, first, b = node.left.left, node.left.op, node.left.right
    node.left, node.op, node.right = a, first, ast.BinOp(b, node.op, node.right)


@edit_of("expressions")
def operand(mutant: Mutant) -> None:
    _, node = mutant.expression(lambda e: isinstance(e, ast.BinOp | ast.UnaryOp))
    operands = [node.operand] if isinstance(node, ast.UnaryOp) else [node.left, node.right]
    mutant.replace(node, text(mutant.choose(operands)))


@edit_of("expressions")
def another_expression(mutant: Mutant) -> None:
    """One that stands elsewhere, of names that are in scope."""
    place, node = mutant.expression(lambda e: not isinstance(e, ast.Constant))
    _, other = mutant.expression(lambda e: isinstance(e, ast.BinOp | ast.Call | ast.Name | ast.Subscript))
    if other is node:
        raise Unfit
    mutant.replace(node, text(other))


@edit_of("expressions")
def combined(mutant: Mutant) -> None:
    place, node = mutant.expression(lambda e: isinstance(e, ast.Name | ast.BinOp | ast.Call))
    operator = mutant.choose(("+", "-", "*", "&", "|", "^", "//", "%"))
    mutant.replace(node, f"({text(node)}) {operator} {mutant.choose([*place.scope, '1', '2', '3'])}")


SAME = (
    "tl.trans(tl.trans({0}))",
    "tl.reshape(tl.ravel({0}), {0}.shape)",
    "tl.reshape({0}, (1, {0}.numel)).reshape({0}.shape)",
    "tl.expand_dims({0}, 0).reshape({0}.shape)",
    "tl.where({0} == {0}, {0}, {0})",
    "tl.where(True, {0}, {0})",
    "tl.where(tl.program_id(0) >= 0, {0}, 0)",
    "tl.broadcast_to({0}, {0}.shape)",
    "tl.join(*tl.split(tl.reshape({0}, ({0}.numel // 2, 2)))).reshape({0}.shape)",
    "({0} + 0)",
    "tl.sum({0}[:, None, :], 1)",
    "tl.sum({0}[None, :], 0)",
    "tl.max({0}[:, None], 1)",
    "tl.flip(tl.flip({0}, 0), 0)",
    "tl.join({0}, {0}).split()[1]",
    "tl.cat({0}, {0}, can_reorder=False).reshape((2, {0}.numel)).sum(0)",
    "tl.gather({0}, tl.arange(0, {0}.shape[0]), 0)",
    "tl.permute({0}, (1, 0)).T",
    "tl.interleave({0}, {0}).reshape(({0}.numel, 2)).max(1).reshape({0}.shape)",
    "(({0}).to(tl.int64) - 1 + 1).to({0}.dtype)",
    "-(-{0})",
    "~(~{0})",
    "({0} ^ 5 ^ 5)",
    "tl.minimum({0}, {0})",
)


@edit_of("expressions")
def written_otherwise(mutant: Mutant) -> None:
    """The same value, or nearly."""
    _, node = mutant.expression(lambda e: isinstance(e, ast.Name))
    mutant.replace(node, mutant.choose(SAME).format(node.id))


@edit_of("expressions")
def another_shape(mutant: Mutant) -> None:
    """A tile turned, flipped, shared out; a row where a column was."""
    _, node = mutant.expression(_is_likely_a_tile)
    forms = (
        "tl.trans({})",
        "tl.flip({}, 0)",
        "tl.flip({}, 1)",
        "tl.sort({})",
        "tl.cumsum({}, 0)",
        "tl.cumsum({}, 1, reverse=True)",
        "tl.max({}, 0)",
        "tl.sum({}, 1)[:, None]",
        "tl.sum({}, 0)[None, :]",
        "tl.max({}, 1, keep_dims=True)",
        "tl.reshape({0}, {0}.shape[::-1])",
    )
    mutant.replace(node, mutant.choose(forms).format(text(node)))


def _is_likely_a_tile(node: ast.expr) -> bool:
    return is_call_of(node, "load", "dot", "where", "zeros", "full", *UNARY) or isinstance(node, ast.Subscript)


@edit_of("expressions")
def row_for_column(mutant: Mutant) -> None:
    _, node = mutant.expression(lambda e: isinstance(e, ast.Subscript) and isinstance(e.slice, ast.Tuple))
    node.slice.elts = node.slice.elts[::-1]


@edit_of("expressions")
def dot_otherwise(mutant: Mutant) -> None:
    """With or without what is added to, by another precision, turned, into another type."""
    _, node = mutant.expression(lambda e: is_call_of(e, "dot"))
    a, b, *rest = [text(argument) for argument in node.args]
    acc = rest[0] if rest else next((text(k.value) for k in node.keywords if k.arg == "acc"), None)
    plus = f", {acc}" if acc else ""
    forms = [
        f"tl.trans(tl.dot(tl.trans({b}), tl.trans({a}){f', tl.trans({acc})' if acc else ''}))",
        f"tl.dot({a}, {b}{plus}, input_precision='ieee')",
        f"tl.dot({a}, {b}{plus}, input_precision='tf32x3')",
        f"tl.dot({a}, {b}, out_dtype=tl.float16)",
        f"tl.sum(({a})[:, :, None] * ({b})[None, :, :], 1)",
        f"tl.dot({b}, {a}{plus})",
        f"tl.dot({a}, {a}.T)",
        f"tl.dot({a}, {b}{plus}) + tl.dot({a}, {b})",
        f"(({acc}) + tl.dot({a}, {b}))" if acc else f"tl.dot({a}, {b})",
        f"tl.dot({a}, {b}{plus}, max_num_imprecise_acc=32)",
    ]
    mutant.replace(node, mutant.choose(forms))


@edit_of("expressions")
def named_first(mutant: Mutant) -> None:
    """A part of an expression gets a name."""
    place, node = mutant.expression(lambda e: isinstance(e, ast.BinOp | ast.Call))
    if isinstance(place.statement, ast.For | ast.While):
        raise Unfit
    name = mutant.name("v")
    first = statements(f"{name} = {text(node)}")
    mutant.replace(node, name)
    place.body[place.index : place.index] = first
