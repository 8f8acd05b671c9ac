"""How a kernel is pickled: by its name, as Python does with functions, where that leads back to it.

    pickle.dumps(add)                   add.__module__ and "add"
    kernel.fn = None; pickle.dumps(kernel)      the source, parameters and name, without the Python function

The second is for kernels that are generated in one process and launched in another, such as those of torch's compile
workers: there they can be looked at and launched as compiled, and are compiled anew only where `fn` is set again.
"""

from __future__ import annotations

import importlib
from operator import attrgetter
from typing import Any

from deuteron.language.functions.names import ByName, leads_back


class Pickled(ByName):
    """A base of kernels. `_start_empty()` makes what belongs to the process, named in `_OF_PROCESS`."""

    _OF_PROCESS: frozenset[str] = frozenset()
    fn: Any

    def _start_empty(self) -> None:
        raise NotImplementedError

    def __getstate__(self) -> dict[str, Any]:
        kept = {name: value for name, value in vars(self).items() if name not in self._OF_PROCESS}
        return {**kept, "__wrapped__": self.fn}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._start_empty()


class PickledByName:
    """A base of what decorates kernels and has their name: it is what the name means in the kernel's module."""

    fn: Any

    def __reduce_ex__(self, protocol: Any) -> Any:
        kernel = self.fn
        while isinstance(kernel, PickledByName):
            kernel = kernel.fn
        if not leads_back(kernel, to=self):
            return super().__reduce_ex__(protocol)
        return _named, (kernel.__module__, kernel.__qualname__)


def _named(module: str, name: str) -> Any:
    return attrgetter(name)(importlib.import_module(module))
