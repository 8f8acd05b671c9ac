"""`triton.experimental.gluon`: enough for a program to import a module that has kernels in Gluon beside others.

    @gluon.jit
    def kernel(x_ptr, layout: gl.constexpr): ...        is defined
    kernel[grid](x)                                     UsageError: 'kernel' is written in Gluon ...

vLLM imports Gluon wherever there is Triton, for kernels of some GPUs. What is below `gluon.language` (`nvidia.hopper`,
`amd`) is absent: programs that have other kernels ask for it first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from deuteron.errors import UsageError
from deuteron.language import types
from deuteron.language.aggregate import aggregate
from deuteron.language.constant import constexpr
from deuteron.language.functions.function import must_use_result
from deuteron.language.functions.source_functions import constexpr_function
from deuteron.language.tensor import tensor
from deuteron.runtime.jit import JITFunction


class GluonJITFunction(JITFunction):
    """A kernel or function in Gluon: it has a name and parameters, and is not launched."""

    def run(self, *args: Any, **kwargs: Any) -> Any:
        raise UsageError(
            f"kernel '{self.__name__}' is written in Gluon, a language of its own, which Deuteron does not have. "
            "Launch one in triton.language."
        )


def jit(fn: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Decorator: a GluonJITFunction, with the options of `triton.jit`."""
    if fn is None:
        return lambda function: jit(function, **options)
    return GluonJITFunction(fn, **options)


GLUON_NAMES = {
    "GluonJITFunction": GluonJITFunction,
    "aggregate": aggregate,
    "constexpr_function": constexpr_function,
    "jit": jit,
    "must_use_result": must_use_result,
}

_DTYPES = {name: value for name, value in vars(types).items() if isinstance(value, types.dtype)}
GLUON_LANGUAGE_NAMES = {"constexpr": constexpr, "dtype": types.dtype, "tensor": tensor, **_DTYPES}
