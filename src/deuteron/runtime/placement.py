"""Where a launch runs: on the device of its arrays, which a kernel for the target must reach, and may write to.

target_of(add, bound)               (Target("cuda", 90), Device("cuda", 0)) for tensors on that GPU
check_devices(add, bound, target)   LaunchError: kernel 'add', argument 'y': it is on device 'cpu', and ...
with on_device_of([x, y]): ...      GPU 1 is current, where x is on it
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from deuteron.backend.arrays import array_specialiser, check_writable, device_mismatch, split_token
from deuteron.backend.cuda.launch.streams import on_device
from deuteron.backend.devices import CPU, Device, device_target
from deuteron.compiler import CompiledKernel, resolve_target
from deuteron.errors import DeuteronError, LaunchError
from deuteron.options import Target
from deuteron.runtime.binding import Binding
from deuteron.runtime.specialise import name_argument
from deuteron.settings import settings

if TYPE_CHECKING:
    from deuteron.runtime.jit import JITFunction


def named_target() -> Target | None:
    """DEUTERON_TARGET, which goes before where the arguments are."""
    return resolve_target(None) if settings.target else None


def target_of(fn: JITFunction, bound: Binding) -> tuple[Target, Device | None]:
    """Where the arrays are: the device of the first one on a GPU, else of the first one; None without arrays."""
    arrays = list(bound.devices(fn.params))
    name, device = next((found for found in arrays if found[1] != CPU), arrays[0] if arrays else ("", None))
    if device is None or settings.target:
        return resolve_target(None), device
    try:
        return device_target(device), device
    except DeuteronError as error:
        foreign = LaunchError(f"it is on device '{device}': {error.message}")
        raise name_argument(foreign, fn.__name__, name, None) from error


def check_devices(fn: JITFunction, bound: Binding, target: Target) -> None:
    """Raise LaunchError unless a kernel for this target reaches every array."""
    first: tuple[str, Device] | None = None
    for name, device in bound.devices(fn.params):
        error = device_mismatch(device, target.backend)
        first = first or (name, device)
        if error is None and device != first[1]:
            error = LaunchError(f"it is on device '{device}', and '{first[0]}' on device '{first[1]}'")
        if error is not None:
            raise name_argument(error, fn.__name__, name, target)


@contextmanager
def on_device_of(arrays: Iterable[Any]) -> Iterator[None]:
    """Within it the GPU of the first array that is on one is current: events and memory are made there."""
    found = (_device_of(array) for array in arrays)
    index = next((device.index for device in found if device is not None and device != CPU), None)
    if index is None:
        yield
        return
    with on_device(index):
        yield


def _device_of(array: Any) -> Device | None:
    """None where a launch would not take the array."""
    specialise = array_specialiser(type(array))
    try:
        return split_token(specialise(array)[0])[2] if specialise else None
    except LaunchError:
        return None


def check_arrays_writable(fn: JITFunction, bound: Binding, compiled: CompiledKernel) -> None:
    """Raise LaunchError for a read-only array that the kernel may write. Whether it is one is in its token."""
    for name, token in bound.named_tokens(fn.params):
        try:
            check_writable(token, compiled.metadata.may_write(name))
        except LaunchError as error:
            raise name_argument(error, fn.__name__, name, None) from None
