"""Launching a compiled kernel as the launchers that torch generates do it: with numbers and all arguments, in order.

    kernel.run(gx, gy, gz, stream, kernel.function, kernel.packed_metadata, None, enter, exit, x, out, 1000, 128)

`x` and `out` are addresses or have a `data_ptr()`; constexprs are passed too and not looked at. What the compile was
promised of an argument is not checked. The hooks are called before and after, with the launch's metadata.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from deuteron.backend.tensor_descriptor import flatten

if TYPE_CHECKING:
    from deuteron.compiler.kernel import CompiledKernel


def make_runner(kernel: CompiledKernel) -> Callable[..., None]:
    """The function `kernel.run`; loads the kernel's code."""
    launch, values_of = kernel.launch, _values_of(kernel)

    def run(
        grid_x: int,
        grid_y: int,
        grid_z: int,
        stream: int,
        function: Any,
        packed_metadata: Any,
        launch_metadata: Any,
        enter: Callable[[Any], None] | None,
        exit: Callable[[Any], None] | None,
        *args: Any,
    ) -> None:
        if enter:
            enter(launch_metadata)
        launch((grid_x, grid_y, grid_z), values_of(args), stream=stream)
        if exit:
            exit(launch_metadata)

    return run


def _values_of(kernel: CompiledKernel) -> Callable[[Sequence[Any]], list[Any]]:
    """What the kernel's code is passed, of all arguments."""
    params = kernel.metadata.params
    passed = [index for index, param in enumerate(params) if param.kind != "constexpr"]
    pointers = {index for index, param in enumerate(params) if param.kind == "pointer"}

    def values(args: Sequence[Any]) -> list[Any]:
        if len(args) != len(params):
            args = flatten(args, is_deep=True)
        return [_address(args[index]) if index in pointers else args[index] for index in passed]

    return values


def _address(arg: Any) -> Any:
    return arg.data_ptr() if hasattr(arg, "data_ptr") else 0 if arg is None else arg
