"""Names of a package that are imported when they are first asked for (PEP 562).

    __getattr__, __dir__ = lazy_names(globals(), {"deuteron.testing.bench": "do_bench do_bench_cudagraph"}, "bench")

`from package import do_bench`, `package.do_bench` and `dir(package)` are as ever. For type checkers the same names are
imported under `if TYPE_CHECKING:`; a test compares the two.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any


def lazy_names(
    namespace: dict[str, Any], names: Mapping[str, str], submodules: str = ""
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The package's `__getattr__` and `__dir__`, for names by the module that defines them, and for submodules."""
    package, modules = namespace["__name__"], submodules.split()
    defined_in = {name: module for module, its in names.items() for name in its.split()}

    def get(name: str) -> Any:
        if name in defined_in:
            found = getattr(importlib.import_module(defined_in[name]), name)
        elif name in modules:
            found = importlib.import_module(f"{package}.{name}")
        else:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        namespace[name] = found
        return found

    return get, lambda: sorted({*namespace, *defined_in, *modules})
