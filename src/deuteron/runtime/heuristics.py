"""`@heuristics`: computes constexpr parameters, and options such as `num_warps`, from the other arguments.

    @deuteron.heuristics({"EVEN_N": lambda args: args["n"] % args["BLOCK"] == 0})
    @deuteron.jit
    def kernel(x_ptr, n, BLOCK: tl.constexpr, EVEN_N: tl.constexpr): ...

It does so at every launch, before what it decorates sees the arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from deuteron.errors import UsageError, suggest
from deuteron.options import is_option
from deuteron.runtime.grid import Grid, call_with_arguments
from deuteron.runtime.interface import KernelInterface, check_kernel, launch
from deuteron.runtime.pickling import PickledByName
from deuteron.tracebacks import api_boundary


class Heuristics(PickledByName, KernelInterface):
    """A kernel of which some arguments are computed; a later one may use what an earlier one gave."""

    def __init__(self, fn: Any, arg_names: Sequence[str], values: Mapping[str, Callable[[dict[str, Any]], Any]]):
        """The parameters are Triton's, whose users make classes of this one."""
        self.fn = fn
        self.arg_names = list(arg_names)
        self.values = dict(values)
        for name in self.values:
            if name not in self.arg_names and not is_option(name):
                known = ", ".join(self.arg_names)
                near = suggest(name, self.arg_names)
                raise UsageError(f"heuristics of '{fn.__name__}': no parameter '{name}': there are {known}.{near}")
            if not callable(self.values[name]):
                raise UsageError(
                    f"heuristics of '{fn.__name__}': '{name}' is {self.values[name]!r}, expected a function of the "
                    "arguments by name, as in `lambda args: ...`"
                )

    def __getattr__(self, name: str) -> Any:
        """What the kernel is asked for (`__name__`, `src`, `params` ...) comes from it."""
        if name == "fn":
            raise AttributeError(name)
        return getattr(self.fn, name)

    def run(self, *args: Any, grid: Grid, warmup: bool = False, **kwargs: Any) -> Any:
        with api_boundary:
            keywords = self._computed(args, kwargs)
            if warmup:
                return self.fn.run(*args, grid=grid, warmup=True, **keywords)
            return launch(self.fn, grid, args, keywords)

    def plan(self, *args: Any, **kwargs: Any) -> Any:
        """What a launch with these arguments would compile; None where that is not known."""
        plan = getattr(self.fn, "plan", None)
        return plan and plan(*args, **self._computed(args, kwargs))

    def _computed(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The keywords with those that are computed."""
        named, keywords = dict(zip(self.arg_names, args, strict=False)), dict(kwargs)
        for name, compute in self.values.items():
            what = f"the heuristic '{name}' of kernel '{self.fn.__name__}'"
            keywords[name] = call_with_arguments(compute, {**named, **keywords}, what)
        return keywords


@api_boundary
def heuristics(values: Mapping[str, Callable[[dict[str, Any]], Any]]) -> Callable[[Any], Heuristics]:
    """Decorator: `values` maps parameters and options to functions of the arguments by name, called at every launch."""
    try:
        values = dict(values)
    except (TypeError, ValueError):
        got = f"kernel '{values.__name__}'" if hasattr(values, "arg_names") else repr(values)
        raise UsageError(f"@heuristics({{'BLOCK': lambda args: ...}}) takes a dictionary, got {got}") from None

    @api_boundary
    def decorator(fn: Any) -> Heuristics:
        return Heuristics(fn, check_kernel(fn, "heuristics").arg_names, values)

    return decorator
