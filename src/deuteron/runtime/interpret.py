"""Launching in the NumPy interpreter (DEUTERON_INTERPRET=1): one program at a time, every access checked.

The module is what the frontend makes, before any pass, so that a result that differs from the compiled kernel's points
at what comes after. Everything heavy is imported when a kernel is first interpreted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from deuteron.backend.arrays import array_specialiser
from deuteron.backend.spans import EVERYTHING, span_of
from deuteron.compiler import ASTSource
from deuteron.forking import undivided
from deuteron.runtime.mock import TensorWrapper

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp


@undivided()
def lower(source: ASTSource, options: Any) -> ModuleOp:
    from deuteron.frontend import Asked, lower_function

    types = (source.signature, source.constexprs, source.attrs)
    return lower_function(source.fn, *types, asked=Asked.of(options))


def interpret(module: ModuleOp, args: Sequence[Any], grid: tuple[int, int, int]) -> None:
    """Run a module with the arguments that are not constexpr, as the user passed them."""
    with undivided():
        from deuteron.interpreter import run_module

    run_module(module, [_argument(arg) for arg in args], grid)


def _argument(arg: Any) -> Any:
    """What the interpreter takes for it: NumPy arrays and numbers as they are, others with their address and extent."""
    from deuteron.interpreter import Buffer

    if isinstance(arg, TensorWrapper):
        return _argument(arg.base)
    if hasattr(arg, "__array_interface__") or array_specialiser(type(arg)) is None:
        return arg
    address, span = array_specialiser(type(arg))(arg)[1], span_of(arg)
    return address if span is EVERYTHING else Buffer(*span, owner=arg, pointer=address)
