"""torch's compile workers: processes that are forked of one that has imported `triton` and asked for its key.

    python .../torch/_inductor/compile_worker/__main__.py
        import triton
        triton_key()            here that imports all that compiles: 0.6 s, once
        os.fork(), ...          and not in every worker, at its first kernel

Other processes ask for the key as well, and may find every kernel in a cache: they import nothing for it.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

from deuteron import language as tl
from deuteron.backend import parse_target
from deuteron.compiler import ASTSource
from deuteron.compiler.driver import rehearse
from deuteron.errors import DeuteronError
from deuteron.runtime.jit import jit

_PROGRAM = ("torch", "_inductor", "compile_worker", "__main__.py")
_TARGETS = ("cuda:90", "cpu")


@jit
def _rehearsed(x, n, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + index, mask=index < n)
    tl.store(x + index, value / tl.sum(value), mask=index < n)


def is_compile_worker() -> bool:
    """Whether this process is the one that torch forks its compile workers of."""
    return Path(getattr(sys.modules.get("__main__"), "__file__", None) or "").parts[-4:] == _PROGRAM


def load_compiler() -> None:
    """Import what compiles for every target, by compiling a kernel. What fails is told by the first one that counts."""
    source = ASTSource(_rehearsed, {"x": "*fp32", "n": "i32", "BLOCK": "constexpr"}, {"BLOCK": 128})
    for target in _TARGETS:
        with suppress(DeuteronError):
            rehearse(source, parse_target(target))
