"""`cached_property` without a lock: what an object computes once.

    class Kernel:
        @cached_property
        def references(self): ...       computed for each kernel when it is first asked for

Python's own, in Python 3.11, holds a lock for all instances while it computes. A process that is forked while another
thread compiles had that lock taken for ever: its first launch did not end. Threads that ask at the same time may all
compute here; what the first of them has made is what all get.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any


class _CachedProperty:
    def __init__(self, compute: Callable[[Any], object]):
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type | None = None) -> object:
        if instance is None:
            return self
        values = instance.__dict__
        return values[self._name] if self._name in values else values.setdefault(self._name, self._compute(instance))


if TYPE_CHECKING:
    from functools import cached_property
else:
    cached_property = _CachedProperty

__all__ = ["cached_property"]
