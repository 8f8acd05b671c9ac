"""Launching a compiled kernel as the launchers that torch generates do it: with numbers and all arguments, in order.

    kernel.run(gx, gy, gz, stream, kernel.function, kernel.packed_metadata, None, enter, exit, x, out, 1000, 128)

`x` and `out` are addresses or have a `data_ptr()`; constexprs are passed too and not looked at. What the compile was
promised of an argument is not checked. The hooks are called before and after, with the launch's metadata.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from deuteron.backend.arrays import address_of_tensor
from deuteron.backend.spans import bounded
from deuteron.backend.tensor_descriptor import flatten
from deuteron.compiler.source import ASTSource
from deuteron.errors import LaunchError, counted
from deuteron.language.signature import DESCRIPTOR
from deuteron.once import once
from deuteron.tracebacks import api_boundary

if TYPE_CHECKING:
    from deuteron.backend.launcher.plain_loaded import PlainLauncher
    from deuteron.compiler.kernel import CompiledKernel


def make_runner(kernel: CompiledKernel) -> Callable[..., None]:
    """The function `kernel.run`, machine code where that is possible; loads the kernel's code."""
    overlapping = ctypes.py_object()
    run = _run_in_python(kernel, overlapping)
    native = kernel.launch.native_launch()
    plain = _plain_launcher() if native and _is_flat(kernel) else None
    return (plain and plain.function(kernel.metadata, native, run, overlapping)) or run


@once
def _plain_launcher() -> PlainLauncher | None:
    from deuteron.backend.launcher.plain_loaded import load_plain_launcher  # deferred: brings LLVM

    return load_plain_launcher()


def _is_flat(kernel: CompiledKernel) -> bool:
    """Whether each argument is one of the kernel's parameters: no tuple and no descriptor of a tensor."""
    types = kernel.src.signature.values() if isinstance(kernel.src, ASTSource) else ()
    return not any(isinstance(type, tuple) or type.startswith(DESCRIPTOR) for type in types)


def _run_in_python(kernel: CompiledKernel, overlapping: ctypes.py_object) -> Callable[..., None]:
    """`overlapping` is told what launches the kernel for arrays that overlap."""
    given_of, values_of = _given_of(kernel), _values_of(kernel)
    kernel.launch  # noqa: B018 - loads the code

    @api_boundary
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
        given = given_of(args)
        values = values_of(given)
        launched = kernel.for_launch(values, given)
        if launched is not kernel:
            overlapping.value = launched.run
        if enter:
            enter(launch_metadata)
        launched.launch((grid_x, grid_y, grid_z), values, stream=stream)
        if exit:
            exit(launch_metadata)

    return run


def _given_of(kernel: CompiledKernel) -> Callable[[Sequence[Any]], list[Any]]:
    """What is given for the runtime parameters, of all arguments."""
    params, is_flat = kernel.metadata.params, _is_flat(kernel)
    passed = [index for index, param in enumerate(params) if param.kind != "constexpr"]

    def given(args: Sequence[Any]) -> list[Any]:
        if not is_flat:
            args = flatten(args, is_deep=True)
        if len(args) != len(params):
            names = ", ".join(param.name for param in params)
            raise LaunchError(f"kernel '{kernel.name}' takes {names}, got {counted(len(args), 'argument')}")
        return [args[index] for index in passed]

    return given


def _values_of(kernel: CompiledKernel) -> Callable[[Sequence[Any]], list[Any]]:
    """What the kernel's code is passed for them."""
    are_pointers = [param.kind == "pointer" for param in kernel.metadata.runtime_params]
    is_checked = kernel.metadata.is_checked

    def address(arg: Any) -> Any:
        return bounded(_address(arg), arg) if is_checked else _address(arg)

    def values(given: Sequence[Any]) -> list[Any]:
        return [address(arg) if is_pointer else arg for arg, is_pointer in zip(given, are_pointers, strict=True)]

    return values


def _address(arg: Any) -> Any:
    return address_of_tensor(arg) if hasattr(arg, "data_ptr") else 0 if arg is None else arg
