"""Launching a compiled kernel as the launchers that torch generates do it: with numbers and all arguments, in order.

    kernel.run(gx, gy, gz, stream, kernel.function, kernel.packed_metadata, None, enter, exit, x, out, 1000, 128)

`x` and `out` are addresses or have a `data_ptr()`; constexprs are passed too and not looked at. What the compile was
promised of an argument is not checked. The hooks are called before and after, with the launch's metadata.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from deuteron.backend.spans import bounded
from deuteron.backend.tensor_descriptor import flatten
from deuteron.compiler.source import ASTSource
from deuteron.errors import LaunchError
from deuteron.language.signature import DESCRIPTOR
from deuteron.once import once

if TYPE_CHECKING:
    from deuteron.backend.launcher.plain_loaded import PlainLauncher
    from deuteron.compiler.kernel import CompiledKernel


def make_runner(kernel: CompiledKernel) -> Callable[..., None]:
    """The function `kernel.run`, machine code where that is possible; loads the kernel's code."""
    run = _run_in_python(kernel)
    native = kernel.launch.native_launch()
    plain = _plain_launcher() if native and _is_flat(kernel) else None
    return (plain and plain.function(kernel.metadata.params, native, run)) or run


@once
def _plain_launcher() -> PlainLauncher | None:
    from deuteron.backend.launcher.plain_loaded import load_plain_launcher  # deferred: brings LLVM

    return load_plain_launcher()


def _is_flat(kernel: CompiledKernel) -> bool:
    """Whether each argument is one of the kernel's parameters: no tuple and no descriptor of a tensor."""
    types = kernel.src.signature.values() if isinstance(kernel.src, ASTSource) else ()
    return not any(isinstance(type, tuple) or type.startswith(DESCRIPTOR) for type in types)


def _run_in_python(kernel: CompiledKernel) -> Callable[..., None]:
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
    is_flat, is_checked = _is_flat(kernel), kernel.metadata.is_checked

    def address(arg: Any) -> Any:
        return bounded(_address(arg), arg) if is_checked else _address(arg)

    def values(args: Sequence[Any]) -> list[Any]:
        if not is_flat:
            args = flatten(args, is_deep=True)
        if len(args) != len(params):
            names = ", ".join(param.name for param in params)
            raise LaunchError(f"kernel '{kernel.name}' takes {names}, got {len(args)} arguments")
        return [address(args[index]) if index in pointers else args[index] for index in passed]

    return values


def _address(arg: Any) -> Any:
    return arg.data_ptr() if hasattr(arg, "data_ptr") else 0 if arg is None else arg
