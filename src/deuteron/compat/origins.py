"""`__module__` of the language's functions and types, under Triton's paths.

    tl.load.__module__                  "triton.language.core", once `import triton` is Deuteron
    from triton.language.core import load

Programs that generate code write such an import for a name that a kernel uses without a module. A class is pickled by
it, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# A name that several have is of the first.
_MODULES = (
    "triton.language.core",
    "triton.language.standard",
    "triton.language.random",
    "triton.language.math",
    "triton.language.target_info",
    "triton.language.extra.libdevice",
    "triton.language.extra.cuda",
)


def set_origins(modules: Mapping[str, Mapping[str, Any]]) -> None:
    """Give what is in the language's modules, and has a name of its own there, that module as `__module__`."""
    for module in _MODULES:
        for name, value in modules[module].items():
            if getattr(value, "__name__", None) == name and str(value.__module__).startswith("deuteron."):
                value.__module__ = module
