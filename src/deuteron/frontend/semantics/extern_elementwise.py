"""tl.core.extern_elementwise: the table of types and symbols becomes a function as those of libdevice are.

{(fp32,): ("__nv_tanhf", fp32)}     Extern with Overload((fp32,), fp32, "__nv_tanhf"), which `libdevice.call` calls
{(fp32,): ("my_function", fp32)}    refused: code of other libraries is not linked
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from deuteron.errors import counted
from deuteron.frontend.context import Context
from deuteron.frontend.semantics import libdevice
from deuteron.frontend.semantics.types import ir_type
from deuteron.frontend.values import Tensor, Value, describe
from deuteron.ir.tt.extern import is_libdevice
from deuteron.language.extern import Extern, Overload
from deuteron.language.extern_elementwise import extern_elementwise as stub
from deuteron.language.extra.libdevice import SYMBOLS
from deuteron.language.types import dtype

NAME = "tl.core.extern_elementwise"
_ENTRY = 'an entry is such as (core.dtype("fp32"),): ("__nv_tanhf", core.dtype("fp32"))'


def extern_elementwise(
    ctx: Context, lib_name: str, lib_path: str, args: Value, arg_type_symbol_dict: Value, is_pure: bool
) -> Tensor:
    table = arg_type_symbol_dict
    if not isinstance(table, Mapping) or not table:
        raise ctx.error(f"arg_type_symbol_dict of {NAME} is a dictionary, got {describe(table)}: {_ENTRY}.")
    overloads = tuple(_overload(ctx, types, found) for types, found in table.items())
    if not is_libdevice(str(lib_path or "")):
        symbol = overloads[0].symbol
        raise ctx.error(f"'{symbol}' of {lib_path}: only libdevice's is known, nothing is linked. Give no path for it.")
    function = Extern("", overloads)
    function.__name__ = SYMBOLS[overloads[0].symbol][0]
    given = tuple(args) if isinstance(args, tuple | list) else (args,)
    for overload in overloads:
        if len(overload.parameters) != len(given):
            raise ctx.error(
                f"'{overload.symbol}' takes {counted(len(overload.parameters), 'argument')}, {NAME} got {len(given)}."
            )
    return libdevice.call(ctx, function, *given)


def _overload(ctx: Context, types: object, found: object) -> Overload:
    """An entry of the table; its types have the bits of those that the symbol has."""
    if not (_are_dtypes(types) and isinstance(found, tuple | list) and len(found) == 2 and _are_dtypes(found[1:])):
        raise ctx.error(f"arg_type_symbol_dict of {NAME} has {types!r}: {found!r}; {_ENTRY}.")
    symbol, result = found
    if symbol not in SYMBOLS:
        raise ctx.error(
            f"'{symbol}' is no function of libdevice, and others are not linked. Write it in the language, or in "
            "PTX with tl.inline_asm_elementwise."
        )
    known = SYMBOLS[symbol][1]
    if [*map(ir_type, (*types, result))] != [*map(ir_type, (*known.parameters, known.result))]:
        raise ctx.error(f"'{symbol}' is {known}, not {Overload(tuple(types), result, symbol)}. Correct the entry.")
    return Overload(tuple(types), result, symbol)


def _are_dtypes(types: object) -> bool:
    return isinstance(types, Sequence) and all(isinstance(one, dtype) for one in types)


RULES = {stub: extern_elementwise}
