"""What is called by the runtime at events, and what it is told.

chain = HookChain()
chain.add(before_launch)          chain(metadata) calls all that were added, in order; empty, it is false
LazyDict({"name": "add"})         .get() is the dictionary, with what was given to be computed when it is asked for
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple


class HookChain(list):
    """Functions that are called one after the other; with `reversed`, the one added last is the first."""

    def __init__(self, reversed: bool = False):
        super().__init__()
        self.reversed = reversed

    @property
    def calls(self) -> list[Callable[..., Any]]:
        return self

    def add(self, function: Callable[..., Any]) -> None:
        """Call it as well; a function that is there already is called once."""
        if function not in self:
            self.append(function)

    def remove(self, function: Callable[..., Any]) -> None:
        """Call it no longer, if it was."""
        if function in self:
            super().remove(function)

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        for function in self[::-1] if self.reversed else list(self):
            function(*args, **kwargs)


class LazyDict:
    """A dictionary of which some entries are computed when it is asked for, if ever."""

    def __init__(self, data: dict[str, Any]):
        self.data = data
        self.extras: list[tuple[Callable[..., dict[str, Any]], Sequence[Any]]] = []

    def add(self, function: Callable[..., dict[str, Any]], args: Sequence[Any]) -> None:
        """`function(*args)` returns entries."""
        self.extras.append((function, args))

    def get(self) -> dict[str, Any]:
        for function, args in self.extras:
            self.data = self.data | function(*args)
        self.extras.clear()
        return self.data


class CompileTimes(NamedTuple):
    """How long the parts of a compile took, in microseconds; `lowering_stages` has those after the first.

    Of a kernel out of the cache only the look-up took time, which is `ir_initialization`.
    """

    ir_initialization: int
    lowering_stages: list[tuple[str, int]]
    store_results: int

    @property
    def total_lowering(self) -> int:
        return sum(time for _, time in self.lowering_stages)

    @property
    def total(self) -> int:
        return self.ir_initialization + self.total_lowering + self.store_results
