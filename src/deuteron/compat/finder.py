"""Puts modules named `triton...` into `sys.modules`, and answers for every other name below `triton`.

    import triton.language.core      found in sys.modules
    import triton.nonsense           ModuleNotFoundError: Deuteron has no module 'triton.nonsense'

All modules are made at once: they hold little besides references, and so the order of a program's imports does not
decide whether `triton.runtime.driver` is the module or, as in Triton, the object of that name.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from deuteron.compat.modules import triton_modules
from deuteron.errors import UsageError

CONTENTS = triton_modules.__code__.co_filename


# What Triton itself has no longer, or what is another language.
_REMOVED = {
    "triton.ops": ": Triton took its ready-made kernels out in 3.0; they are in the package kernels of its repository",
    "triton.experimental.gluon": ": Gluon is a language of its own, which Deuteron does not compile",
    "triton.profiler": ": Proton is Triton's own profiler; knobs.runtime.launch_enter_hook is called for every launch",
    "triton._C": ": it is Triton's own compiler in C++",
}


class TritonFinder(MetaPathFinder):
    """First on `sys.meta_path`, so that no part of an installed Triton is found."""

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name == "triton" or name.startswith("triton."):
            why = next((why for removed, why in _REMOVED.items() if f"{name}.".startswith(f"{removed}.")), "")
            raise ModuleNotFoundError(f"Deuteron has no module '{name}'{why}", name=name)
        return None


def install() -> None:
    """Make `import triton` mean Deuteron; does nothing where it already does. Raises UsageError after Triton itself."""
    if any(isinstance(finder, TritonFinder) for finder in sys.meta_path):
        return
    if "triton" in sys.modules:
        where = getattr(sys.modules["triton"], "__file__", "an unknown file")
        raise UsageError(f"Triton itself is already imported, from {where}: import deuteron.compat before it")
    modules = triton_modules()
    made = {
        name: content if isinstance(content, ModuleType) else _make_module(name, _is_package(name, modules))
        for name, content in modules.items()
    }
    for name, module in made.items():
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(made[parent], child, module)
    for name, content in modules.items():
        if not isinstance(content, ModuleType):
            vars(made[name]).update(content)
    sys.modules.update(made)
    sys.meta_path.insert(0, TritonFinder())


def _is_package(name: str, modules: Mapping[str, Any]) -> bool:
    return any(other.startswith(f"{name}.") for other in modules)


def _make_module(name: str, is_package: bool) -> ModuleType:
    module = ModuleType(name, f"Deuteron, under the name {name}.")
    module.__deuteron__ = True  # to tell it from a user's (language/references.py)
    module.__spec__ = ModuleSpec(name, None, is_package=is_package)
    module.__file__ = CONTENTS  # which the message of a failing `from ... import` names
    module.__package__ = name if is_package else name.rpartition(".")[0]
    if is_package:
        module.__path__ = []

    def missing(attribute: str) -> Any:
        raise AttributeError(f"Deuteron has no '{name}.{attribute}'", name=attribute, obj=module)

    vars(module)["__getattr__"] = missing
    return module
