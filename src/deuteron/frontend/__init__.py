"""From Python to tile IR, in two steps that run together: syntax here, meaning in `semantics/`.

    lower.py        lower_function: a kernel's parameters and body
    function source -> statements.py, assignments.py, branches.py, loops.py (ranges.py, loop_body.py, carried.py)
                    -> expressions.py, operators.py, calls.py, inline.py: everything becomes "call f on these values"
    semantics/      one file per op family: what a call means for the types at hand, and the ops it inserts
    context.py      where the compilation is; scope.py: variables; values.py: what they hold
    unsupported.py  Python that the language does not have, and what to write instead

A function is looked up by the object that its name refers to, so that any import path of a stub will do.
"""

import deuteron.ir.dialects  # noqa: F401  first: what follows imports xDSL's dialects
from deuteron.frontend.context import Asked
from deuteron.frontend.lower import lower_function

__all__ = ["Asked", "lower_function"]
