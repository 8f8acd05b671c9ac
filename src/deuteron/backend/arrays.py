"""Arrays of any library as arguments of a kernel: element type, address, device.

    array_specialiser(type(x))(x)     ("*fp32:16", 140213...)         a float32 array at an address divisible by 16
                                      ("*fp32@cuda:1:16", 139...)     the same on GPU 1
    split_token("*fp32@cuda:1:16")    ("*fp32", "16", Device("cuda", 1))
    split_token("!*fp32:16")          ("*fp32", "16", CPU)            of an array that may not be written

NumPy and torch are met without being imported; others come through `__cuda_array_interface__`, `__array_interface__`,
`data_ptr()` or `__dlpack__`. A kernel gets the address of the first element and nothing else: strides are the kernel's
matter. What says of itself that it is read-only is for kernels that do not write to it.
"""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Callable
from typing import Any

from deuteron.backend.devices import CPU, Device
from deuteron.backend.dlpack import dlpack_tensor
from deuteron.dtypes import FLOATS, INTEGERS
from deuteron.errors import LaunchError

# By the names in NumPy (with ml_dtypes), torch (after its `torch.`) and of the language's dtypes.
ELEMENT_TYPES = {name: type.signature for type in (*INTEGERS, *FLOATS) for name in (type.array_name, type.dtype_name)}
_KNOWN = ", ".join(
    ["bool", "int8 to int64", "uint8 to uint64"]
    + [type.array_name for type in sorted(FLOATS, key=lambda type: type.bits == 8)]
)
Specialised = tuple[str, int]

_ANY_LENGTH = ctypes.c_char * 0
_tokens_of_dtype: dict[Any, tuple[str, str]] = {}
_tokens_of_tensor: dict[Any, tuple[str, str]] = {}


_READ_ONLY = "!"


class ForeignDevice(LaunchError):
    """An array is not in the memory of the device that the kernel runs on."""


def device_mismatch(found: Device, backend: str) -> ForeignDevice | None:
    """The error about an array on a device that a backend's kernels cannot reach; None where they can."""
    if found.backend == backend:
        return None
    return ForeignDevice("it is on the CPU" if found == CPU else f"it is on device '{found}'")


def array_specialiser(type: type) -> Callable[[Any], Specialised] | None:
    """The function that specialises arrays of this Python type; None where it is not an array type."""
    if is_subclass_of(type, "numpy.ma.core", "MaskedArray") or is_subclass_of(type, "numpy.ma", "MaskedArray"):
        return _refuse_masked
    if is_subclass_of(type, "numpy", "ndarray"):
        return _specialise_numpy
    for attribute, specialise in _PROTOCOLS:
        if hasattr(type, attribute):
            return specialise
    return None


def is_subclass_of(type: type, module: str, name: str) -> bool:
    """Whether a type is derived from a class of a module that may not be imported."""
    return any(base.__module__ == module and base.__name__ == name for base in type.__mro__)


def element_type(dtype: Any) -> str:
    """The signature type of a dtype object of any library: `fp32`, `bf16`, `i1` ...; raises LaunchError."""
    name = getattr(dtype, "name", None) or str(dtype).rpartition(".")[2]
    if name not in ELEMENT_TYPES or getattr(dtype, "isnative", True) is False:
        raise LaunchError(
            f"arrays of {dtype} cannot be given to a kernel: the types are {_KNOWN}, in native byte order"
        )
    return ELEMENT_TYPES[name]


def read_only_token(token: str) -> str:
    """The token of the same array, if it may not be written."""
    return token if token.startswith(_READ_ONLY) else _READ_ONLY + token


def is_read_only(token: str) -> bool:
    return token.startswith(_READ_ONLY)


def check_writable(token: str, may_write: bool) -> None:
    """Raise LaunchError where a kernel may write to an array that may not be written."""
    if may_write and is_read_only(token):
        raise LaunchError("it is read-only, and the kernel writes to it: pass a copy, or an array that may be written")


def split_token(token: str) -> tuple[str, str, Device | None]:
    """The type, the hint (`16`, `1` or empty) and, of an array or a descriptor of one, the device."""
    text, _, device = token.removeprefix(_READ_ONLY).partition("@")
    if device:
        backend, index, hint = device.split(":")
        return text, hint, Device(backend, int(index) if index else None)
    type, _, hint = text.partition(":")
    return type, hint, CPU if type.startswith(("*", "tensordesc<")) else None


def is_array_token(token: Any) -> bool:
    """Whether it is the token of an array, not of a descriptor of one."""
    return isinstance(token, str) and token.removeprefix(_READ_ONLY).startswith("*")


def tokens_of_one_array(token: str) -> list[str]:
    """The tokens that an array could have at other addresses: unaligned, aligned, and both if it is read-only."""
    head, mark, rest = token.removeprefix(_READ_ONLY).partition("@")
    if mark:
        unaligned = f"{head}@{rest.rpartition(':')[0]}:"
        found = [unaligned, f"{unaligned}16"]
    else:
        type = head.partition(":")[0]
        found = [type, f"{type}:16"]
    return [*found, *map(read_only_token, found)]


def _tokens(dtype: Any, device: Device = CPU) -> tuple[str, str]:
    """The tokens of a pointer to that dtype: unaligned and aligned to 16 bytes."""
    type = f"*{element_type(dtype)}"
    if device == CPU:
        return type, f"{type}:16"
    head = f"{type}@{device.backend}:{'' if device.index is None else device.index}:"
    return head, f"{head}16"


def _aligned(tokens: tuple[str, str], address: int) -> str:
    return tokens[address & 15 == 0]


def _tokens_of_numpy(dtype: Any) -> tuple[str, str]:
    found = _tokens_of_dtype[dtype] = _tokens(dtype)
    return found


def _specialise_numpy(array: Any) -> Specialised:
    try:
        # A third of the time that `array.ctypes.data` takes, for the arrays that export a writable buffer.
        address = ctypes.addressof(_ANY_LENGTH.from_buffer(array))
    except (TypeError, ValueError, BufferError):
        address = array.ctypes.data
        if not array.flags.writeable:
            return read_only_token(_aligned(_tokens(array.dtype), address)), address
    return (_tokens_of_dtype.get(array.dtype) or _tokens_of_numpy(array.dtype))[address & 15 == 0], address


def _refuse_masked(array: Any) -> Specialised:
    raise LaunchError("a kernel sees no mask of a masked array: pass x.filled(value), or x.data and x.mask")


def _specialise_torch(tensor: Any) -> Specialised:
    try:
        key = (tensor.dtype, getattr(tensor, "device", None))
    except AttributeError as error:
        raise LaunchError(f"no element type is known of this {type(tensor).__name__}: pass a tensor of it") from error
    tokens = _tokens_of_tensor.get(key)
    if tokens is None:
        tokens = _tokens_of_tensor[key] = _tokens(key[0], _torch_device(key[1]))
    address = address_of_tensor(tensor)
    return _aligned(tokens, address), address


def address_of_tensor(tensor: Any) -> int:
    """What has a `data_ptr()`, if its elements are at it as they are; raises LaunchError."""
    try:
        address = tensor.data_ptr()
    except RuntimeError as error:
        raise _no_address(tensor, error) from error
    if getattr(type(tensor), "is_neg", None) is not None and tensor.is_neg():
        raise LaunchError("its elements are in memory with the other sign (x.is_neg()): pass x.resolve_neg()")
    if not address and getattr(type(tensor), "numel", None) is not None and tensor.numel():
        raise LaunchError(
            f"the {tensor.numel()} elements of this {type(tensor).__name__} have no memory, as those of fake tensors, "
            "of nested ones, and of a storage that was resized to nothing"
        )
    return address


def _no_address(tensor: Any, error: Exception) -> LaunchError:
    layout = str(getattr(tensor, "layout", type(tensor).__name__))
    if layout == "torch.strided":
        return LaunchError(
            f"it has no address ({error}): within vmap, grad, torch.export and other transforms of torch launch "
            "kernels in an operator, torch.library.triton_op with wrap_triton, or custom_op; or export with strict=True"
        )
    return LaunchError(
        f"a tensor of {layout} has no elements at one address ({error}): pass x.to_dense(), or its parts, such as "
        "x.values()"
    )


def _torch_device(device: Any) -> Device:
    """The device of a tensor, or of what wraps an array of another library, where it may be None or a string."""
    name = getattr(device, "type", None)
    if name in (None, "cpu"):
        return CPU
    return _device(name, getattr(device, "index", None))


def _device(name: str, index: int | None) -> Device:
    if name not in ("cpu", "cuda"):
        raise ForeignDevice(f"it is on device '{name}'")
    return CPU if name == "cpu" else Device(name, index)


def _specialise_cuda_interface(array: Any) -> Specialised:
    """JAX's class has the attribute for every device, its arrays only on a GPU, and not for every dtype there."""
    interface = getattr(array, "__cuda_array_interface__", None)
    if interface is not None:
        index = array.__dlpack_device__()[1] if hasattr(array, "__dlpack_device__") else None
        return _from_interface(array, interface, Device("cuda", index))
    if hasattr(array, "__dlpack__"):
        return _specialise_dlpack(array)
    return _specialise_interface(array)


def _specialise_interface(array: Any) -> Specialised:
    return _from_interface(array, array.__array_interface__, CPU)


def _from_interface(array: Any, interface: dict[str, Any], device: Device) -> Specialised:
    import numpy  # deferred: start-up time; whoever has such an array mostly has NumPy

    try:
        address, is_read_only = interface["data"]
        dtype = getattr(array, "dtype", None) or numpy.dtype(interface["typestr"])
        address = operator.index(address)
    except (KeyError, TypeError, ValueError) as error:
        raise LaunchError(
            f"its array interface has no address and type that can be read ({type(error).__name__}: {error}): pass an "
            "array of NumPy, or of a library that tells them"
        ) from error
    token = _aligned(_tokens(dtype, device), address)
    return read_only_token(token) if is_read_only else token, address


def _specialise_dlpack(array: Any) -> Specialised:
    tensor = dlpack_tensor(array)
    device = _device(tensor.device, tensor.device_index)
    token = _aligned(_tokens(tensor.dtype, device), tensor.address)
    return read_only_token(token) if tensor.is_read_only else token, tensor.address


_PROTOCOLS = (
    ("data_ptr", _specialise_torch),
    ("__cuda_array_interface__", _specialise_cuda_interface),
    ("__array_interface__", _specialise_interface),
    ("__dlpack__", _specialise_dlpack),
)
