"""`tl.target_info`: what a kernel is compiled for, known at compile time.

    if tl.target_info.cuda_capability_geq(9, 0): ...     one side is compiled

Python may ask as well, as in Triton: within a function that a kernel calls while it is compiled (`@constexpr_function`)
it is that kernel's target, elsewhere the target of a launch. In the interpreter there is no target, so that each of
these is False.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from typing import Any

from deuteron.language.builtin import CALLS, Builtin, KernelCalls

_compiled_for: ContextVar[Any] = ContextVar("compiled_for")


@contextmanager
def asked_for(target: Any) -> Iterator[None]:
    """While a function of Python runs for a kernel that is compiled for this target, or None."""
    token = _compiled_for.set(target)
    try:
        yield
    finally:
        _compiled_for.reset(token)


def _target_now() -> Any:
    try:
        return _compiled_for.get()
    except LookupError:
        # Deferred: the language knows no runtime, which a program that asks for its device has.
        return import_module("deuteron.runtime.driver").driver.active.get_current_target()


class TargetQuestion(Builtin):
    """A function of the language that Python may call, too: `answer(target, ...)` is what it says."""

    def __init__(self, function: Callable[..., Any], answer: Callable[..., Any]):
        super().__init__(function)
        self.answer = answer

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if any(name in kwargs for name in CALLS) or (args and isinstance(args[-1], KernelCalls)):
            return super().__call__(*args, **kwargs)
        return self.answer(_target_now(), *args, **kwargs)


def _question(answer: Callable[..., Any]) -> Callable[[Callable[..., Any]], TargetQuestion]:
    return lambda function: TargetQuestion(function, answer)


def _is(target: Any, backend: str) -> bool:
    return target is not None and target.backend == backend


def _reaches(target: Any, major: int, minor: int = 0) -> bool:
    return _is(target, "cuda") and divmod(int(target.arch), 10) >= (major, minor)


@_question(lambda target: target)
def current_target() -> Any:
    """The target: `backend` ("cpu", "cuda"), `arch`, `warp_size`; None in the interpreter."""


@_question(lambda target: _is(target, "cuda"))
def is_cuda() -> bool:
    """Whether the kernel is compiled for a GPU of NVIDIA."""


@_question(lambda target: _is(target, "hip"))
def is_hip() -> bool:
    """Whether the kernel is compiled for a GPU of AMD."""


@_question(_reaches)
def cuda_capability_geq(major: int, minor: int = 0) -> bool:
    """Whether the kernel is compiled for a GPU of NVIDIA of this compute capability or a later one."""
