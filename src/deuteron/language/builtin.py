"""What the language's own functions are in Python: a signature and a docstring, without logic.

    @builtin
    def load(pointer, mask=None, other=None, ...):
        \"\"\"Loads ...\"\"\"

The semantic function of the same name in `frontend/semantics` says what a call inside a kernel means; it is found by
the object that `@builtin` makes. Called from Python that object says what is missing.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from deuteron.errors import UsageError


class KernelCalls:
    """What a function of Python is given as `_semantic` while a kernel is compiled: with it, it can call these."""

    def __init__(self, call: Callable[..., Any]):
        self.call = call


class Builtin:
    """A function of the language that the frontend knows."""

    def __init__(self, function: Callable[..., Any]):
        functools.update_wrapper(self, function)

    @functools.cached_property
    def signature(self) -> inspect.Signature:
        return inspect.signature(self.__wrapped__)

    def __call__(self, *args: Any, _semantic: Any = None, **kwargs: Any) -> Any:
        if isinstance(_semantic, KernelCalls):
            return _semantic.call(self, args, kwargs)
        raise UsageError(
            f"tl.{self.__name__} can only be called inside a kernel. Did you forget @jit on the function that calls it?"
        )

    def __repr__(self) -> str:
        return f"<builtin tl.{self.__name__}>"


def builtin(function: Callable[..., Any]) -> Builtin:
    """Make a function of the language out of a signature and a docstring."""
    return Builtin(function)
