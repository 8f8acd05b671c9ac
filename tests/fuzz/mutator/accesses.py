"""Accesses: by block pointers, descriptors and atomics; other strides, views of one array, what is stored beside.

    tl.load(p + rows[:, None] * n + columns[None, :], mask=m)
    tl.make_tensor_descriptor(p, [64, 64], [n, 1], [BM, BN]).load([tl.min(rows), tl.min(columns)])

What another way of access loads need not be the same: it has only to be in bounds.
"""

from __future__ import annotations

import ast

from tests.fuzz.mutator.mutant import (
    Mutant,
    Unfit,
    edit_of,
    expression,
    expressions_of,
    is_call_of,
    keyword,
    names_in,
    statements,
    text,
)

STORED = 1 << 13
STORED_TYPES = ("float32", "float32", "int32", "float16", "int64", "float64", "int8")
DESCRIBED_STORES = ("store", "store", "store", "atomic_add", "atomic_max")
ATOMICS = ("add", "add", "add", "max", "min", "xchg", "xchg", "and", "or", "xor")


def _is_access(node: ast.expr) -> bool:
    return is_call_of(node, "load", "store")


@edit_of("accesses")
def another_stride(mutant: Mutant) -> None:
    """Turned, none, double."""
    _, node = mutant.expression(lambda e: isinstance(e, ast.BinOp) and isinstance(e.op, ast.Mult))
    side = mutant.choose(("left", "right"))
    before = text(getattr(node, side))
    setattr(node, side, expression(mutant.choose((f"-({before})", "0", f"2 * ({before})", "1", f"({before} + 1)"))))


@edit_of("accesses")
def moved_on(mutant: Mutant) -> None:
    _, node = mutant.expression(_is_access)
    node.args[0] = expression(f"({text(node.args[0])}) + {mutant.choose((1, 2, 3, 8, 16, 32, -1))}")


@edit_of("accesses")
def view_of_another(mutant: Mutant) -> None:
    """Two parameters are one array."""
    arrays = mutant.arrays()
    one = mutant.choose(arrays)
    other = mutant.choose(a for a in arrays if a.dtype == one.dtype and a is not one)
    place = mutant.place(lambda place: place.is_in_kernel and not isinstance(place.statement, ast.AnnAssign))
    shift = mutant.choose(("", "", " + 1", " + 16", " + 4"))
    if place.num_loops:
        raise Unfit
    place.insert(f"{one.name} = {other.name}{shift}")


@edit_of("accesses")
def turned_axes(mutant: Mutant) -> None:
    """`[:, None]` for `[None, :]` and the other way, throughout an address."""
    _, node = mutant.expression(_is_access)
    for part in ast.walk(node.args[0]):
        if isinstance(part, ast.Subscript) and isinstance(part.slice, ast.Tuple):
            part.slice.elts = part.slice.elts[::-1]


@edit_of("accesses")
def other_hints(mutant: Mutant) -> None:
    _, node = mutant.expression(_is_access)
    hints = {
        "cache_modifier": ("'.cg'", "'.ca'", "'.cs'", "'.wb'"),
        "eviction_policy": ("'evict_first'", "'evict_last'"),
    }
    if is_call_of(node, "load"):
        hints["volatile"] = ("True",)
    name = mutant.choose(hints)
    node.keywords.append(ast.keyword(name, expression(mutant.choose(hints[name]))))


def _access_of_two_axes(mutant: Mutant) -> tuple[ast.Call, str, tuple[str, str]]:
    """One of `p + rows[:, None] * n + columns[None, :]`, the array, and the places on its axes."""
    accesses = [e for p in mutant.places() for e in expressions_of(p.statement) if _is_access(e)]
    found = [
        (access, *named) for access in accesses for node in _addresses(mutant, access) for named in _axes(mutant, node)
    ]
    return mutant.choose(found)


def _addresses(mutant: Mutant, access: ast.Call) -> list[ast.expr]:
    """The expression, or what its name was given."""
    if not isinstance(access.args[0], ast.Name):
        return [access.args[0]]
    assigned = [p.statement for p in mutant.places() if isinstance(p.statement, ast.Assign)]
    return [s.value for s in assigned if text(s.targets[0]) == access.args[0].id]


def _axes(mutant: Mutant, node: ast.expr) -> list[tuple[str, tuple[str, str]]]:
    arrays = {a.name for a in mutant.arrays()} & names_in(node)
    parts = [part for part in ast.walk(node) if isinstance(part, ast.Subscript)]
    rows, columns = (
        [f"({text(part.value)})" for part in parts if text(part).endswith(end)] for end in ("[:, None]", "[None, :]")
    )
    return [(array, (rows[0], columns[0])) for array in sorted(arrays) if rows and columns]


@edit_of("accesses")
def by_block_pointer(mutant: Mutant) -> None:
    node, array, (rows, columns) = _access_of_two_axes(mutant)
    shape = mutant.choose(("(64, 64)", "(40, 32)", "(21, 17)", "(16, 16)"))
    strides, order = mutant.choose(
        (("(32, 1)", "(1, 0)"), ("(1, 32)", "(0, 1)"), ("(40, 1)", "(1, 0)"), ("(17, 1)", "(1, 0)"))
    )
    start = mutant.choose(
        (f"(tl.min({rows}).to(tl.int32), tl.min({columns}).to(tl.int32))", "(0, 0)", "(3, 5)", "(-2, 0)")
    )
    block = f"({rows}.shape[0], {columns}.shape[0])"
    check = mutant.choose(("(0, 1)", "(0, 1)", "(0,)", "(1,)"))
    padding = mutant.choose(("", ", padding_option='zero'", ", padding_option='nan'"))
    pointer = f"tl.make_block_ptr({array}, {shape}, {strides}, {start}, {block}, {order})"
    if mutant.rng.random() < 0.3:
        pointer = f"tl.advance({pointer}, (1, 2))"
    if is_call_of(node, "load"):
        mutant.replace(node, f"tl.load({pointer}, boundary_check={check}{padding})")
    else:
        mutant.replace(node, f"tl.store({pointer}, {text(node.args[1])}, boundary_check={check})")


@edit_of("accesses")
def by_descriptor(mutant: Mutant) -> None:
    node, array, (rows, columns) = _access_of_two_axes(mutant)
    shape, strides = mutant.choose(
        (("[64, 64]", "[64, 1]"), ("[40, 32]", "[32, 1]"), ("[21, 16]", "[16, 1]"), ("[16, 20]", "[32, 1]"))
    )
    start = mutant.choose(
        (f"[tl.min({rows}).to(tl.int32), tl.min({columns}).to(tl.int32)]", "[0, 0]", "[3, 8]", "[-2, -8]")
    )
    made = f"tl.make_tensor_descriptor({array}, {shape}, {strides}, [{rows}.shape[0], {columns}.shape[0]])"
    if is_call_of(node, "load"):
        mutant.replace(node, f"{made}.load({start})")
    else:
        mutant.replace(node, f"{made}.{mutant.choose(DESCRIBED_STORES)}({start}, {text(node.args[1])})")


@edit_of("accesses")
def store_as_atomic(mutant: Mutant) -> None:
    _, node = mutant.expression(lambda e: is_call_of(e, "store"))
    node.func.attr = f"atomic_{mutant.choose(ATOMICS)}"
    node.keywords = [k for k in node.keywords if k.arg == "mask"]


@edit_of("accesses")
def loaded_by_atomic(mutant: Mutant) -> None:
    _, node = mutant.expression(lambda e: is_call_of(e, "load"))
    mask = keyword(node, "mask")
    more = f", mask={text(mask.value)}" if mask else ""
    value = mutant.choose(("0", "1"))
    mutant.replace(node, f"tl.atomic_{mutant.choose(ATOMICS)}({text(node.args[0])}, {value}{more})")


@edit_of("accesses")
def stored_too(mutant: Mutant) -> None:
    """A value in scope gets an array of its own: a tile, or a number."""
    place = mutant.place(lambda place: place.is_in_kernel and not isinstance(place.statement, ast.AnnAssign))
    value = mutant.choose(place.scope)
    out = mutant.argument("out", mutant.choose(STORED_TYPES), STORED, "poison")
    program = mutant.choose(("tl.program_id(0)", "tl.program_id(0)", "(tl.program_id(0) + 3 * tl.program_id(1))"))
    tile = f"tl.store({out} + {program} * {value}.numel + tl.arange(0, {value}.numel), tl.ravel({value}))"
    place.insert(mutant.choose((tile, tile, f"tl.store({out} + {program}, {value})")), after=mutant.rng.random() < 0.5)


@edit_of("accesses")
def counted_too(mutant: Mutant) -> None:
    """An atomic on an array of its own."""
    place = mutant.place(lambda place: place.is_in_kernel and not isinstance(place.statement, ast.AnnAssign))
    value = mutant.choose(place.scope)
    out = mutant.argument("io", mutant.choose(("int32", "float32", "int64", "int32")), STORED, "zeros")
    where = mutant.choose((f"tl.arange(0, {value}.numel)", f"tl.ravel({value}).to(tl.int32) % 64", "0"))
    operand = f"tl.ravel({value})" if where != "0" else value
    operand = mutant.choose((operand, operand, "1"))
    source = f"tl.atomic_{mutant.choose(ATOMICS)}({out} + {where}, {operand})"
    place.insert(source if mutant.rng.random() < 0.6 else f"{mutant.name('old')} = {source}")


@edit_of("accesses")
def loaded_again(mutant: Mutant) -> None:
    """What was stored is loaded, and stored elsewhere."""
    place, node = mutant.expression(lambda e: is_call_of(e, "store") and e is not None)
    if not place.is_in_kernel:
        raise Unfit
    mask = keyword(node, "mask")
    more = f", mask={text(mask.value)}, other=0" if mask else ""
    name = mutant.name("again")
    out = mutant.argument("out", mutant.choose(STORED_TYPES), STORED, "poison")
    lines = [
        f"{name} = tl.load({text(node.args[0])}{more})",
        f"tl.store({out} + tl.program_id(0) * {name}.numel + tl.arange(0, {name}.numel), tl.ravel({name}))",
    ]
    place.body[place.index + 1 : place.index + 1] = statements("\n".join(lines))
