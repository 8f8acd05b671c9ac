"""Puts modules named `triton...` into `sys.modules`, and answers for every other name below `triton`.

    import triton.language.core      found in sys.modules
    import triton.nonsense           ModuleNotFoundError: Deuteron has no module 'triton.nonsense'
    from triton import nonsense      ImportError: Deuteron has no 'triton.nonsense'

All modules are made at once: they hold little besides references, and so the order of a program's imports does not
decide whether `triton.runtime.driver` is the module or, as in Triton, the object of that name. Each has the spec, file
and path that tools look for in modules; one that is taken out of `sys.modules` is the same when it is imported again.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Iterator, Mapping
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any

from deuteron.compat.absent import message, why
from deuteron.compat.modules import triton_modules
from deuteron.compat.origins import set_origins
from deuteron.errors import UsageError

if TYPE_CHECKING:
    from importlib.metadata import Distribution, DistributionFinder

CONTENTS = triton_modules.__code__.co_filename


class TritonFinder(MetaPathFinder, Loader):
    """First on `sys.meta_path`, so that no part of an installed Triton is found."""

    def __init__(self, modules: Mapping[str, ModuleType]):
        self._modules = modules

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name in self._modules:
            return self._modules[name].__spec__
        if name.startswith("triton.") and not _is_asked(sys._getframe(2)):
            raise ModuleNotFoundError(f"Deuteron has no module '{name}'{why(name)}", name=name)
        return None

    def find_distributions(self, context: DistributionFinder.Context) -> Iterator[Distribution]:
        """The version of the language, for programs that ask `importlib.metadata` for it."""
        if context.name == "triton":
            from deuteron.compat.release import Release  # deferred: who asks has imported what it needs, 15 ms

            yield Release()

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._modules[spec.name]

    def exec_module(self, module: ModuleType) -> None:
        """Modules are complete when they are made."""


def install() -> None:
    """Make `import triton` mean Deuteron; does nothing where it already does. Raises UsageError after Triton itself."""
    if any(isinstance(finder, TritonFinder) for finder in sys.meta_path):
        return
    _check_not_imported()
    modules = triton_modules()
    made = {
        name: content if isinstance(content, ModuleType) else ModuleType(name, f"Deuteron, under the name {name}.")
        for name, content in modules.items()
    }
    finder = TritonFinder(made)
    for name, module in made.items():
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(made[parent], child, module)
    for name, content in modules.items():
        if not isinstance(content, ModuleType):
            _describe(made[name], finder)
            vars(made[name]).update(content)
    set_origins(modules)
    sys.modules.update(made)
    sys.meta_path.insert(0, finder)


def _check_not_imported() -> None:
    """The package `triton` of Deuteron's own is on its way to being replaced; any other is Triton itself."""
    module = sys.modules.get("triton")
    if module is not None and not hasattr(module, "__deuteron__"):
        where = getattr(module, "__file__", "an unknown file")
        raise UsageError(f"Triton itself is already imported, from {where}: import deuteron.compat before it")


def _describe(module: ModuleType, finder: TritonFinder) -> None:
    """Give a module what Python's own have: it says where it comes from, and what it does not have.

    Each is a package, so that the finder is asked for what is below it, too.
    """
    name = module.__name__
    spec = ModuleSpec(name, finder, origin=CONTENTS, is_package=True)
    spec.has_location = True  # the file is named by the message of a failing `from ... import`
    module.__spec__, module.__loader__, module.__file__, module.__package__ = spec, finder, CONTENTS, spec.parent
    module.__deuteron__ = True  # to tell it from a user's (language/functions/references.py)
    module.__why__ = lambda attribute: why(f"{name}.{attribute}")  # for errors of kernels (frontend/advice.py)
    spec.submodule_search_locations.append(str(Path(CONTENTS).parent))
    module.__path__ = spec.submodule_search_locations

    def missing(attribute: str) -> Any:
        said = message(name, attribute)
        if _is_import(sys._getframe(1)):
            raise ImportError(said, name=name, path=CONTENTS)
        raise AttributeError(said, name=attribute, obj=None)

    vars(module)["__getattr__"] = missing


def _is_asked(frame: FrameType) -> bool:
    """Whether it is `importlib.util.find_spec`, which a program asks what there is: that is None, and no error."""
    return frame.f_globals["__name__"] == "importlib.util"


def _is_import(frame: FrameType) -> bool:
    """Whether it is at a `from ... import`, which would put words of its own in the place of an AttributeError's."""
    return frame.f_code.co_code[frame.f_lasti] == dis.opmap["IMPORT_FROM"]
