"""The kernels that a JITFunction has in memory, in the shape in which Triton's programs look at them and clear them.

add.device_caches[0][0]             {key: CompiledKernel}, of device 0
add.device_caches.clear()           the next launch compiles again, or reads the cache on disk
add.cache[0]                        the same, as it was called before Triton 3.3
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

from deuteron.backend.metadata import Apart
from deuteron.backend.overlaps import overlap_of
from deuteron.backend.spans import bounded
from deuteron.compiler import CompiledKernel
from deuteron.runtime.async_compile import FutureKernel
from deuteron.runtime.binding import Binding, flat


@dataclass(eq=False, slots=True)
class Launcher:
    """A compiled kernel, the arguments that it takes, and what else a launch is told: the device, if it is a GPU.
    Within an AsyncCompileMode the kernel may still be compiled; `_launcher` waits for it.

    `has_parts`: what is passed for some arguments, tuples and descriptors, are tuples. `num_noted` is how often it was
    written down for launches without Python.
    """

    kernel: CompiledKernel | FutureKernel | None
    indices: tuple[int, ...]
    where: dict[str, int]
    has_parts: bool
    num_noted: int = 0

    def wait(self) -> None:
        """Until the kernel is compiled; raises what its compile raises."""
        if isinstance(self.kernel, FutureKernel):
            self.kernel = self.kernel.result()

    def values(self, bound: Binding) -> list[Any]:
        """What the compiled kernel is passed."""
        passed = bound.passed
        values = [passed[index] for index in self.indices]
        values = flat(values) if self.has_parts else values
        if self.kernel.metadata.is_checked:
            return [bounded(value, given) for value, given in zip(values, bound.runtime_values(), strict=True)]
        return values

    def overlap_of(self, bound: Binding) -> Apart | None:
        """Two arguments that overlap where the kernel takes them to be apart."""
        if not self.kernel.metadata.apart:
            return None
        return overlap_of(self.kernel.metadata, self.values(bound), bound.runtime_values())

    def run(self, bound: Binding, extents: tuple[int, int, int]) -> None:
        """Launch, if there are programs."""
        if extents[0] and extents[1] and extents[2]:
            self.kernel.launch(extents, self.values(bound), **self.where)


class Launchers(dict[Any, Any]):
    """What a function has compiled, by key; `on_removal()` is called when something is taken out."""

    def __init__(self, on_removal: Callable[[], None]):
        super().__init__()
        self._on_removal = on_removal

    def clear(self) -> None:
        super().clear()
        self._on_removal()

    def __delitem__(self, key: Any) -> None:
        super().__delitem__(key)
        self._on_removal()

    def pop(self, *args: Any) -> Any:
        found = super().pop(*args)
        self._on_removal()
        return found

    def popitem(self) -> tuple[Any, Any]:
        found = super().popitem()
        self._on_removal()
        return found


class Choices(Launchers):
    """What an autotuner chose, by key; the same is called when a choice becomes another one, or may have."""

    def __setitem__(self, key: Any, value: Any) -> None:
        is_other = key in self
        super().__setitem__(key, value)
        if is_other:
            self._on_removal()

    def update(self, *args: Any, **keywords: Any) -> None:
        super().update(*args, **keywords)
        self._on_removal()

    def __ior__(self, other: Any) -> Any:
        self.update(other)
        return self


class KernelCache(MutableMapping[Any, CompiledKernel]):
    """The kernels for one device; of an unknown device those for all."""

    def __init__(self, launchers: MutableMapping[Any, Any], device: Any):
        self._launchers = launchers
        self._index = device if isinstance(device, int) else getattr(device, "index", None)

    def __iter__(self) -> Iterator[Any]:
        return iter([key for key, launcher in self._launchers.items() if self._is_for(launcher)])

    def _is_for(self, launcher: Any) -> bool:
        return self._index is None or launcher.where.get("device", self._index) == self._index

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __getitem__(self, key: Any) -> CompiledKernel:
        return self._launchers[key].kernel

    def __setitem__(self, key: Any, kernel: CompiledKernel) -> None:
        raise TypeError("kernels get in here by being compiled")

    def __delitem__(self, key: Any) -> None:
        del self._launchers[key]


class DeviceCaches(Mapping[Any, Any]):
    """By device: a KernelCache, or, with `is_tuple`, a tuple that begins with one."""

    def __init__(self, launchers: MutableMapping[Any, Any], is_tuple: bool):
        self._launchers, self._is_tuple = launchers, is_tuple

    def __getitem__(self, device: Any) -> Any:
        kernels = KernelCache(self._launchers, device)
        return (kernels,) if self._is_tuple else kernels

    def __iter__(self) -> Iterator[int]:
        return iter(sorted({launcher.where.get("device", 0) for launcher in self._launchers.values()}))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def clear(self) -> None:
        self._launchers.clear()
