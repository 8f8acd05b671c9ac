"""Types: of arrays, of numbers, of what is computed, of offsets.

x.to(tl.float32)        x.to(tl.float16)
rows * n                rows.to(tl.int64) * n
"""

from __future__ import annotations

import ast

from tests.fuzz.mutator.mutant import Mutant, edit_of, text

FLOATS = ("float16", "bfloat16", "float32", "float64")
FP8 = ("float8e4nv", "float8e5")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
OFFSETS = ("int16", "int32", "int64", "uint32", "uint16", "uint8")


@edit_of("types")
def array_of_another_type(mutant: Mutant) -> None:
    argument = mutant.choose(mutant.arrays())
    is_float = argument.dtype in FLOATS or argument.dtype.startswith("float8")
    others = (*FLOATS, *FLOATS, *FP8) if is_float else INTEGERS
    mutant.argue(argument, dtype=mutant.choose(set(others) - {argument.dtype}))


@edit_of("types")
def arrays_of_another_type(mutant: Mutant) -> None:
    """All that have one type: operands of a dot go together."""
    dtype = mutant.choose({a.dtype for a in mutant.arrays() if a.dtype in FLOATS})
    other = mutant.choose((*FLOATS, FP8[0]))
    for argument in mutant.arrays():
        if argument.dtype == dtype:
            mutant.argue(argument, dtype=other)


@edit_of("types")
def number_of_another_type(mutant: Mutant) -> None:
    argument = mutant.choose(mutant.numbers())
    if isinstance(argument.fill, float):
        mutant.argue(argument, dtype=mutant.choose(FLOATS))
    else:
        mutant.argue(argument, dtype=mutant.choose(("int64", "int16", "int32")), fill=int(argument.fill))


@edit_of("types")
def another_cast(mutant: Mutant) -> None:
    """`tl.float32` becomes another type, wherever it stands."""
    types = (*FLOATS, *INTEGERS)
    _, node = mutant.expression(lambda e: isinstance(e, ast.Attribute) and e.attr in types)
    among = FLOATS if node.attr in FLOATS else INTEGERS
    node.attr = mutant.choose(set(among) - {node.attr})


@edit_of("types")
def cast(mutant: Mutant) -> None:
    _, node = mutant.expression(_is_computed)
    mutant.replace(node, f"({text(node)}).to(tl.{mutant.choose((*FLOATS, *INTEGERS, 'int1'))})")


@edit_of("types")
def cast_there_and_back(mutant: Mutant) -> None:
    _, node = mutant.expression(lambda e: isinstance(e, ast.Name))
    mutant.replace(node, f"{node.id}.to(tl.{mutant.choose((*FLOATS, *FP8, *INTEGERS))}).to({node.id}.dtype)")


@edit_of("types")
def offset_of_another_width(mutant: Mutant) -> None:
    _, node = mutant.expression(_is_place)
    source = text(node)
    mutant.replace(node, f"({source}).to(tl.{mutant.choose(OFFSETS)})")


def _is_computed(node: ast.expr) -> bool:
    return isinstance(node, ast.BinOp | ast.Call | ast.Compare | ast.Subscript)


def _is_place(node: ast.expr) -> bool:
    source = text(node)
    return isinstance(node, ast.BinOp | ast.Call) and ("program_id" in source or "arange" in source)
