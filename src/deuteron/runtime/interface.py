"""What can be launched: `kernel[grid](...)`, for kernels, autotuned kernels and kernels with heuristics alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from deuteron.errors import UsageError
from deuteron.runtime.grid import Grid
from deuteron.tracebacks import api_boundary


class KernelInterface:
    """Has `run(*args, grid, warmup, **kwargs)`."""

    # Python would iterate over what has `__getitem__`, by grids 0, 1, ..., which never ends.
    __iter__ = None

    def run(self, *args: Any, grid: Grid, warmup: bool = False, **kwargs: Any) -> Any:
        raise NotImplementedError

    def __getitem__(self, grid: Grid) -> Callable[..., Any]:
        """The kernel with its grid, to be called with the arguments."""
        return partial(self.run, grid=grid, warmup=False)

    def warmup(self, *args: Any, grid: Grid, **kwargs: Any) -> Any:
        """Compile for these arguments without running; a dtype stands for an array of it."""
        with api_boundary:
            return self.run(*args, grid=grid, warmup=True, **kwargs)


def check_kernel(fn: Any, decorator: str) -> Any:
    """What a decorator is given, if that is a kernel; raises UsageError."""
    if not hasattr(fn, "arg_names"):
        name = getattr(fn, "__name__", repr(fn))
        raise UsageError(f"@{decorator} decorates kernels, got '{name}'. Put @jit below it, next to the function.")
    return fn


def launch(kernel: Any, grid: Grid | None, args: Sequence[Any], keywords: dict[str, Any]) -> Any:
    """`kernel[grid](...)`, which may be machine code; of what has only a `run`, that, with the grid if there is one."""
    if isinstance(kernel, KernelInterface):
        return kernel[grid](*args, **keywords)
    where = {} if grid is None else {"grid": grid, "warmup": False}
    return kernel.run(*args, **where, **keywords)
