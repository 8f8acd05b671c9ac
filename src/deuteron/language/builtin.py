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
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

from deuteron.cached_property import cached_property
from deuteron.errors import UsageError
from deuteron.language.functions.names import ByName
from deuteron.tracebacks import api_boundary

# What Triton calls the parameter with which such functions are called in functions of Python; before 3.4 the second.
CALLS = ("_semantic", "_builder")


class KernelCalls:
    """What a function of Python is given as `_semantic` while a kernel is compiled: with it, it can call these.

    `builder.options` has what such functions ask for: `num_warps`, `arch` ("sm90", "cpu") and `backend_name`;
    `named` what Triton's `_semantic` can be asked for by name.
    """

    def __init__(
        self,
        call: Callable[..., Any],
        attribute: Callable[..., Any],
        options: SimpleNamespace,
        named: Mapping[str, Callable[..., Any]],
    ):
        self.call, self.attribute, self._named = call, attribute, named
        self.builder = SimpleNamespace(options=options)
        self.options = options

    def __getattr__(self, name: str) -> Any:
        if name in self._named:
            return functools.partial(self._named[name], self)
        raise AttributeError(
            f"'{name}' is Triton's own, which Deuteron has not. Call functions of the language with it, as in "
            "tl.load(ptr, _semantic=_semantic)"
        )


class Builtin(ByName):
    """A function of the language that the frontend knows."""

    def __init__(self, function: Callable[..., Any]):
        functools.update_wrapper(self, function)

    @cached_property
    def signature(self) -> inspect.Signature:
        return inspect.signature(self.__wrapped__)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        given = [kwargs.pop(name) for name in CALLS if name in kwargs]
        if not given and args and isinstance(args[-1], KernelCalls):
            args, given = args[:-1], [args[-1]]  # by position
        if given and isinstance(given[0], KernelCalls):
            return given[0].call(self, args, kwargs)
        with api_boundary:
            raise UsageError(
                f"tl.{self.__name__} can only be called inside a kernel. "
                "Did you forget @jit on the function that calls it?"
            )

    def __repr__(self) -> str:
        return f"<builtin tl.{self.__name__}>"


def builtin(function: Callable[..., Any]) -> Builtin:
    """Make a function of the language out of a signature and a docstring."""
    return Builtin(function)
