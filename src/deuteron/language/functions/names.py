"""What modules and functions are called wherever they are loaded: the program that is run, too, is a module.

    name_of("__main__")       "attention" of `python attention.py`, "ops.attention" of `python -m ops.attention`
    module_of("attention")    the module `__main__` in that process, in others the one that is imported
    pickle.dumps(tl.sum)      its module and "sum", as Python does with functions; copy.deepcopy(tl.sum) is tl.sum

So a kernel has one key in the cache, whether its file is run or imported.
"""

from __future__ import annotations

import importlib
import sys
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any

# A process that multiprocessing starts has the program under the second name.
_MAIN = ("__main__", "__mp_main__")


def name_of(module: str | None) -> str:
    """The name of a module as others import it."""
    found = sys.modules.get(module or "") if module in _MAIN else None
    if found is None:
        return str(module)
    spec, file = getattr(found, "__spec__", None), getattr(found, "__file__", None)
    if spec is not None and spec.name not in _MAIN:
        return spec.name
    return Path(file).stem if file else str(module)


def is_main(module: str) -> bool:
    """Whether it is the program that is run."""
    return module in _MAIN


def module_of(name: str) -> ModuleType:
    """The module that has this name for others; raises ImportError."""
    for main in _MAIN:
        if main in sys.modules and name_of(main) == name:
            return sys.modules[main]
    return importlib.import_module(name)


def leads_back(function: Any, to: Any = None) -> bool:
    """Whether the name of a function means itself in its module, or `to`, which has its name."""
    try:
        return attrgetter(function.__qualname__)(sys.modules[function.__module__]) is (function if to is None else to)
    except (AttributeError, KeyError):
        return False


class ByName:
    """A base of functions: one that its name does not lead back to is pickled as any other object."""

    __qualname__: str

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.__qualname__ if leads_back(self) else super().__reduce_ex__(protocol)
