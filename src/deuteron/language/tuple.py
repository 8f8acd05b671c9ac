"""`tl.tuple`: tuples of values of a kernel, and `tl.slice`.

    pair = tl.tuple([x, 2])        the same as (x, 2)
    isinstance(pair, tl.tuple)     True of every tuple

In a kernel a list is a tuple too. Named tuples keep the names of their fields.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable
from typing import Any

slice = builtins.slice
"""The class of what is between brackets, `start:stop:step`."""


class _OfEveryTuple(type):
    """Python's own tuples, and named ones, count as instances."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, builtins.tuple)


class tuple(builtins.tuple, metaclass=_OfEveryTuple):
    """A tuple of values; `type` is accepted as Triton has it, and is that of the values."""

    def __new__(cls, args: Iterable[Any] = (), type: Any = None) -> tuple:
        return super().__new__(cls, args)

    @property
    def values(self) -> builtins.tuple:
        """The items."""
        return builtins.tuple(self)
