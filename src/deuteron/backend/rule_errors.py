"""Errors of lowering rules: each has the op and its location.

raise unsupported(op, "CPU")                  no rule knows the op
guarded(op, rule, ctx, op, x)                 what the rule raises, at the op
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Operation

from deuteron.errors import CompilationError, DeuteronError, InternalError
from deuteron.ir.location import from_attribute


def unsupported(op: Operation, backend: str) -> CompilationError:
    """An error at the op, which says the way out."""
    message = (
        f"the {backend} backend cannot compile '{op.name}' yet. Express it with other operations, "
        "or run the kernel with DEUTERON_INTERPRET=1, which knows every operation."
    )
    return CompilationError(message, *from_attribute(op.location))


def guarded(op: Operation, rule: Callable, *args):
    """Call a rule; what goes wrong in it is reported with the op and its location."""
    try:
        return rule(*args)
    except DeuteronError as error:
        if error.location is None:
            error.location, error.call_chain = from_attribute(op.location)
        raise
    except Exception as error:
        location, chain = from_attribute(op.location)
        raise InternalError(f"lowering {op.name} failed: {error!r}", location, chain) from error
