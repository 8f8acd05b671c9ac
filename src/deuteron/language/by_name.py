"""What is pickled by its name, as Python does with functions, and copied as itself: kernels, functions of the language.

pickle.dumps(tl.sum)          its module and "sum"
copy.deepcopy(tl.sum)         tl.sum
"""

from __future__ import annotations

import sys
from operator import attrgetter
from typing import Any


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
