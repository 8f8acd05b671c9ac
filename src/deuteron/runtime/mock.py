"""Stand-ins for arrays: `MockTensor` where there are only types, `reinterpret` for an array taken as another type.

    kernel.warmup(torch.float32, 1024, BLOCK=128, grid=(8,))        a dtype becomes MockTensor(dtype)
    kernel[grid](reinterpret(x_int8, tl.float8e5), ...)             the bytes of x as another type

Both have `dtype` and `data_ptr()`, which is all that a launch asks of an array.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

from deuteron.backend.arrays import array_specialiser, element_type, is_subclass_of
from deuteron.compiler import resolve_target
from deuteron.errors import UsageError
from deuteron.language.types import dtype as LanguageType


class MockDevice(NamedTuple):
    """A device as torch describes it; without an index it is the current one."""

    type: str
    index: int | None = None


class MockTensor:
    """An array that has a dtype and an aligned address, but no memory."""

    def __init__(self, dtype: Any, shape: Any = None):
        self.dtype = dtype
        self.shape = [1] if shape is None else shape

    @property
    def device(self) -> MockDevice:
        """That of the target which a launch has by default."""
        return MockDevice(resolve_target(None).backend)

    @staticmethod
    def wrap_dtype(arg: Any) -> Any:
        """A MockTensor of a dtype (of torch, NumPy or the language, or a NumPy scalar type); anything else as it is."""
        if type(arg).__module__ == "torch" and type(arg).__name__ == "dtype":
            return MockTensor(arg)
        if isinstance(arg, type) and is_subclass_of(arg, "numpy", "generic"):
            return MockTensor(sys.modules["numpy"].dtype(arg))
        if isinstance(arg, LanguageType) or is_subclass_of(type(arg), "numpy", "dtype"):
            return MockTensor(arg)
        return arg

    def stride(self) -> tuple[int, ...]:
        strides = [1]
        for extent in self.shape[:0:-1]:
            strides.append(strides[-1] * extent)
        return tuple(reversed(strides))

    @staticmethod
    def data_ptr() -> int:
        return 0


class TensorWrapper:
    """An array whose elements a kernel takes for `dtype`; `base` is the array. To set `data`, as of one of torch's
    tensors, is to take another array of its type, such as a view of it.
    """

    def __init__(self, base: Any, dtype: Any):
        self.base = base
        self.dtype = dtype
        self.device = getattr(base, "device", None)

    @property
    def shape(self) -> Any:
        return self.base.shape

    @property
    def data(self) -> Any:
        return self.base.data if hasattr(self.base, "data_ptr") else self.base

    @data.setter
    def data(self, value: Any) -> None:
        if array_specialiser(type(value)) is None or value.dtype != self.base.dtype:
            raise UsageError(f"the data is an array of {self.base.dtype}, taken for {self.dtype}, got {value!r:.60}")
        self.base = value

    def data_ptr(self) -> int:
        return array_specialiser(type(self.base))(self.base)[1]

    def stride(self, *args: Any) -> Any:
        if hasattr(self.base, "stride"):
            return self.base.stride(*args)
        strides = tuple(step // self.base.itemsize for step in self.base.strides)
        return strides[args[0]] if args else strides

    def element_size(self) -> int:
        return self.base.element_size() if hasattr(self.base, "element_size") else self.base.itemsize

    def cpu(self) -> TensorWrapper:
        return TensorWrapper(self.base.cpu(), self.dtype)

    def copy_(self, other: TensorWrapper) -> None:
        self.base.copy_(other.base)

    def clone(self) -> TensorWrapper:
        return TensorWrapper(self.base.clone() if hasattr(self.base, "clone") else self.base.copy(), self.dtype)

    def to(self, device: Any) -> TensorWrapper:
        return TensorWrapper(self.base.to(device), self.dtype)

    def new_empty(self, sizes: Any) -> TensorWrapper:
        return TensorWrapper(self.base.new_empty(sizes), self.dtype)

    def __repr__(self) -> str:
        return f"TensorWrapper[{self.dtype}]({self.base})"


def reinterpret(tensor: Any, dtype: Any) -> Any:
    """The array with its elements taken for `dtype`, which has as many bits; itself where that is its type."""
    base = tensor.base if isinstance(tensor, TensorWrapper) else tensor
    if array_specialiser(type(base)) is None:
        raise UsageError(f"reinterpret takes an array, got {type(tensor).__name__}")
    if element_type(base.dtype) == element_type(dtype):
        return base
    return TensorWrapper(base, dtype)
