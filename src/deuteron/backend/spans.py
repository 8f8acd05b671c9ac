"""Where the elements of an array lie that is given to a kernel, and the memory that it spans.

    view_of(numpy.zeros((4, 8), "f4")[::2, ::-1])       View(140213..., 4, ((2, 64), (8, -4))): extents and steps
    span_of(...)                                        Span(140185..., 96): from its lowest to its highest byte
    span_of(torch.zeros(4, 8)[1])                       Span(140221..., 128): the storage
    bounded(140213..., array)                           the address, which knows the array's span

An object that only tells an address has no span that is known: nothing is checked of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from deuteron.backend.arrays import array_specialiser
from deuteron.backend.dlpack import dlpack_tensor


class Span(NamedTuple):
    """`num_bytes` bytes from `address` on."""

    address: int
    num_bytes: int


EVERYTHING = Span(0, (1 << 64) - 1)


class View(NamedTuple):
    """Elements of `item` bytes, the first one at `address`; an axis is how many there are along it, and the bytes
    from one to the next, which may be negative or none.
    """

    address: int
    item: int
    axes: tuple[tuple[int, int], ...]

    @property
    def span(self) -> Span:
        if any(extent == 0 for extent, _ in self.axes):
            return Span(self.address, 0)
        reaches = [(extent - 1) * step for extent, step in self.axes]
        below, above = sum(reach for reach in reaches if reach < 0), sum(reach for reach in reaches if reach > 0)
        return Span(self.address + below, above - below + self.item)


class BoundedAddress(int):
    """The address of an array's first element, with the memory that the array spans."""

    span: Span


def bounded(address: int, array: Any) -> int:
    """The address with the span of the array that it is of; as it is where that is no array."""
    span = _contiguous_span(address, array) or span_of(array)
    if span is None:
        return address
    made = BoundedAddress(address)
    made.span = span
    return made


def _contiguous_span(address: int, array: Any) -> Span | None:
    """Of an array of NumPy without gaps: what most arguments are, in a tenth of the time."""
    flags = getattr(array, "flags", None)
    return Span(address, array.nbytes) if getattr(flags, "c_contiguous", False) else None


def span_of(array: Any) -> Span | None:
    """What a kernel may access through an array: from its lowest to its highest byte; None for what is no array.

    A tensor of torch is as much as its storage: kernels of torch and of vLLM are given `crow_indices[:-1]` and read one
    further, or `weights[0]` and the distance to the others.
    """
    if array_specialiser(type(array)) is None:
        return None
    view = view_of(array)
    return EVERYTHING if view is None else _storage_of(array) or view.span


def _storage_of(array: Any) -> Span | None:
    if not hasattr(array, "untyped_storage"):
        return None
    storage = array.untyped_storage()
    return Span(storage.data_ptr(), storage.nbytes()) if storage.nbytes() else None


def view_of(array: Any) -> View | None:
    """Where the elements of an array of any library are; None for what does not tell."""
    if array_specialiser(type(array)) is None:
        return None
    if hasattr(array, "__array_interface__"):
        return _view_of_interface(array.__array_interface__)
    if hasattr(array, "data_ptr"):
        return _view_of_tensor(array)
    if hasattr(array, "__cuda_array_interface__"):
        return _view_of_interface(array.__cuda_array_interface__)
    if hasattr(array, "__dlpack__"):
        found = dlpack_tensor(array)
        return _view(found.address, found.element_size, found.shape, found.strides, found.element_size)
    return None


def _view_of_interface(interface: dict[str, Any]) -> View:
    address, shape, size = interface["data"][0], interface["shape"], int(interface["typestr"][2:])
    return _view(address, size, shape, interface.get("strides") or _row_major(shape, size))


def _view_of_tensor(tensor: Any) -> View | None:
    try:
        size, shape, steps = tensor.element_size(), tensor.shape, tensor.stride()
    except (AttributeError, RuntimeError):  # the latter of nested tensors, which have rows of several lengths
        return None
    return _view(tensor.data_ptr(), size, shape, steps, size)


def _view(address: int, item: int, shape: Sequence[int], steps: Sequence[int], unit: int = 1) -> View:
    """`unit`: the bytes that steps count."""
    return View(address, item, tuple((extent, step * unit) for extent, step in zip(shape, steps, strict=True)))


def _row_major(shape: Sequence[int], size: int) -> list[int]:
    steps: list[int] = []
    for extent in reversed(shape):
        steps.insert(0, size)
        size *= extent
    return steps
