"""A launch that is prepared: what is left to be done each time is to pass the arguments.

    prepared = add.prepare(x, y, out, 1000, BLOCK=128, grid=(8,), num_warps=4)       compiled and loaded
    prepared.launch(x, y, out, 1000)            on that grid; no constexprs, no options, no keywords
    prepared.with_grid((16,)).launch(...)

The arguments have to be of the types that it was prepared for, hints included (divisible by 16, equal to 1): others are
a LaunchError, and so are arrays that overlap where the kernel takes them to be apart. Nothing else is looked at: not
the environment, nor hooks, nor whether globals of the kernel have changed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from deuteron.compiler import CompiledKernel
from deuteron.errors import LaunchError, counted
from deuteron.runtime.binding import Binding
from deuteron.runtime.grid import check_extents
from deuteron.runtime.specialise import Token
from deuteron.tracebacks import api_boundary

if TYPE_CHECKING:
    from deuteron.runtime.jit import JITFunction


class PreparedLaunch:
    """A compiled kernel with a grid. `launch(*args)` raises LaunchError; it returns nothing."""

    launch: Callable[..., None]

    def __init__(self, fn: JITFunction, bound: Binding, found: Any, grid: tuple[int, int, int]):
        self._fn, self._bound, self._found = fn, bound, found
        self.kernel: CompiledKernel = found.kernel
        self.grid = grid
        self.launch = fn.fast.prepared(bound, found, grid, self._run) or self._launch

    @api_boundary
    def with_grid(self, grid: int | Sequence[int]) -> PreparedLaunch:
        """The same with another grid."""
        return PreparedLaunch(self._fn, self._bound, self._found, check_extents(grid, self._fn.__name__))

    @api_boundary
    def _launch(self, *args: Any, **keywords: Any) -> None:
        self._run(self.grid, args, keywords)

    @api_boundary
    def _run(self, grid: tuple[int, int, int], args: Sequence[Any], keywords: dict[str, Any]) -> None:
        """The definition of a launch."""
        names = [param.name for param in self._fn.params if not param.is_constexpr]
        if keywords or len(args) != len(names):
            given = [counted(len(args), "argument"), *(f"'{name}' by its name" for name in keywords)]
            raise LaunchError(
                f"a prepared launch of kernel '{self._fn.__name__}' takes {', '.join(names)}, in order, "
                f"got {', '.join(given)}"
            )
        left = iter(args)
        values = [
            prepared if param.is_constexpr else next(left)
            for param, prepared in zip(self._fn.params, self._bound.values, strict=True)
        ]
        bound = self._fn.bind_values(values)
        for param, token, expected in zip(self._fn.params, bound.tokens, self._bound.tokens, strict=True):
            if token != expected:
                raise LaunchError(self._other_type(param.name, token, expected))
        overlap = self._found.overlap_of(bound)
        if overlap is not None:
            raise LaunchError(
                f"{overlap.in_words(self._fn.__name__)}, and the launch was prepared for such as do not: "
                f"prepare another one with these, or with may_alias=True"
            )
        self._found.run(bound, grid)

    def _other_type(self, name: str, token: Token, expected: Token) -> str:
        return (
            f"argument '{name}' of kernel '{self._fn.__name__}' is {token}, and the launch was prepared for "
            f"{expected}: prepare another one, or launch with {self._fn.__name__}[grid](...)"
        )
