"""The error for an op that is not compiled for a CPU."""

from __future__ import annotations

from xdsl.ir import Operation

from deuteron.errors import CompilationError
from deuteron.ir.location import from_attribute


def unsupported(op: Operation) -> CompilationError:
    """An error at the op, which says the way out."""
    location, chain = from_attribute(op.location)
    message = (
        f"the CPU backend cannot compile '{op.name}' yet. Express it with other operations, "
        "or run the kernel with DEUTERON_INTERPRET=1, which knows every operation."
    )
    return CompilationError(message, location, chain)
