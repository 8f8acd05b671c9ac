"""Masks: of loads and stores, and what masked lanes have.

tl.load(p, mask=m, other=0.0)       tl.load(p), tl.load(p, mask=m), tl.load(p, mask=~m, other=-1.0),
                                    tl.where(m, tl.load(p), 0.0)
columns < n                         columns <= n, n < columns
"""

from __future__ import annotations

import ast

from tests.fuzz.mutator.mutant import Mutant, Unfit, edit_of, expression, is_call_of, keyword, text

COMPARISONS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
FILLS = ("0", "0.0", "1.0", "-1", "1", "float('-inf')", "float('nan')", "7")


def _is_masked(node: ast.expr) -> bool:
    return is_call_of(node, "load", "store", "atomic_add") and keyword(node, "mask") is not None


def _is_filled(node: ast.expr) -> bool:
    return is_call_of(node, "load") and keyword(node, "other") is not None


@edit_of("masks")
def another_comparison(mutant: Mutant) -> None:
    _, node = mutant.expression(lambda e: isinstance(e, ast.Compare))
    node.ops = [mutant.choose(COMPARISONS)()]


@edit_of("masks")
def turned_comparison(mutant: Mutant) -> None:
    _, node = mutant.expression(lambda e: isinstance(e, ast.Compare))
    node.left, node.comparators = node.comparators[0], [node.left]


@edit_of("masks")
def without_mask(mutant: Mutant) -> None:
    _, node = mutant.expression(_is_masked)
    node.keywords = [k for k in node.keywords if k.arg not in ("mask", "other")]


@edit_of("masks")
def without_other(mutant: Mutant) -> None:
    _, node = mutant.expression(_is_filled)
    node.keywords.remove(keyword(node, "other"))


@edit_of("masks")
def another_other(mutant: Mutant) -> None:
    _, node = mutant.expression(_is_masked)
    if is_call_of(node, "load"):
        node.keywords = [k for k in node.keywords if k.arg != "other"]
        node.keywords.append(ast.keyword("other", expression(mutant.choose(FILLS))))


@edit_of("masks")
def other_in_scope(mutant: Mutant) -> None:
    """What masked lanes have is a value, maybe a tile."""
    place, node = mutant.expression(_is_masked)
    if is_call_of(node, "load"):
        node.keywords = [k for k in node.keywords if k.arg != "other"]
        node.keywords.append(ast.keyword("other", expression(mutant.choose(place.scope))))


@edit_of("masks")
def another_mask(mutant: Mutant) -> None:
    _, node = mutant.expression(_is_masked)
    others = [text(keyword(e, "mask").value) for p in mutant.places() for e in ast.walk(p.statement) if _is_masked(e)]
    mask = text(keyword(node, "mask").value)
    other = mutant.choose(others)
    joined = (other, f"({mask}) & ({other})", f"({mask}) | ({other})", f"~({mask})", f"({mask}) ^ ({other})")
    keyword(node, "mask").value = expression(mutant.choose(joined))


@edit_of("masks")
def masked_by_value(mutant: Mutant) -> None:
    """Depends on what was computed."""
    place, node = mutant.expression(lambda e: is_call_of(e, "load", "store"))
    value, limit = mutant.choose(place.scope), mutant.choose(("0", "1", "-1"))
    before = keyword(node, "mask")
    condition = f"{value} {mutant.choose(('>', '<', '!=', '=='))} {limit}"
    if before is None:
        node.keywords.append(ast.keyword("mask", expression(condition)))
    else:
        before.value = expression(f"({text(before.value)}) & ({condition})")


@edit_of("masks")
def choice_for_mask(mutant: Mutant) -> None:
    """All is loaded; what would be masked is replaced after."""
    _, node = mutant.expression(lambda e: _is_masked(e) and is_call_of(e, "load"))
    mask, other = keyword(node, "mask"), keyword(node, "other")
    address = text(node.args[0])
    fill = text(other.value) if other else "0"
    mutant.replace(node, f"tl.where({text(mask.value)}, tl.load({address}), {fill})")


@edit_of("masks")
def choice(mutant: Mutant) -> None:
    """A value where a condition holds, another one elsewhere."""
    place, node = mutant.expression(lambda e: isinstance(e, ast.Name | ast.BinOp))
    condition = f"{mutant.choose(place.scope)} {mutant.choose(('<', '>=', '=='))} {mutant.choose(place.scope)}"
    mutant.replace(node, f"tl.where({condition}, {text(node)}, {mutant.choose([*place.scope, '0', '1'])})")


@edit_of("masks")
def place_around(mutant: Mutant) -> None:
    """Places past the end begin again: `columns % n`."""
    place, node = mutant.expression(lambda e: isinstance(e, ast.Compare) and isinstance(e.left, ast.Name))
    name, limit = node.left.id, text(node.comparators[0])
    if name in place.scope:
        place.insert(f"{name} = {name} % {limit}")


@edit_of("masks")
def from_the_end(mutant: Mutant) -> None:
    """The last place is the first: `n - 1 - columns`, what is below 0 is masked."""
    place, node = mutant.expression(lambda e: isinstance(e, ast.Compare) and isinstance(e.left, ast.Name))
    name, limit = node.left.id, text(node.comparators[0])
    if name not in place.scope:
        raise Unfit
    mutant.replace(node, f"({name} >= 0) & ({text(node)})")
    place.insert(f"{name} = {limit} - 1 - {name}")
