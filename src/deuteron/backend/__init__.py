"""Backends: a target, its options, its stages and its driver.

    backend = get_backend(parse_target("cpu"))
    backend.make_options({"num_warps": 8})         CPUOptions(num_warps=8, ...)
    [stage.name for stage in backend.stages]       ["ttir", "llir", "asm", "obj"]

    stage.py metadata.py    what a stage and a compiled kernel are, for every backend; ttir.py: the first stage of all
    report.py               the compile report, of which each backend has its kind
    devices.py              the machine's devices and their targets
    arrays.py dlpack.py     arrays of any library as arguments; arguments.py: how a launch passes them
    llvm/                   LLVM IR: text builder, optimise, emit, load
    cpu/                    loop nests on the processor at hand or a named one

Nothing outside of this folder tests which target it is.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from deuteron.errors import UsageError
from deuteron.once import undisturbed
from deuteron.options import Target

if TYPE_CHECKING:
    from xdsl.passes import ModulePass

    from deuteron.backend.metadata import KernelMetadata
    from deuteron.backend.report import Report
    from deuteron.backend.stage import Stage


class Backend(Protocol):
    """What a target needs to have so that kernels are compiled for it and launched on it."""

    name: str
    target_forms: Sequence[str]  # how its targets are written, for messages
    options_class: type
    stages: Sequence[Stage]

    def parse_target(self, arch: str) -> Target | None:
        """The target of what follows `name:` in a text, which may be empty; None where that is none."""

    def make_options(self, given: Mapping[str, Any]) -> Any:
        """The target's options object; raises UsageError for an option that it does not have."""

    def check(self, target: Target, options: Any) -> None:
        """Raise UsageError unless code can be made for the target with these options."""

    def pipelines(self, target: Target, options: Any) -> Mapping[str, Sequence[ModulePass]]:
        """The passes that its stages run, in order, by the name of the pipeline."""

    def pass_objects(self, target: Target, options: Any) -> Sequence[object]:
        """What passes take besides numbers, such as a GPUConfig."""

    def fingerprint(self, target: Target) -> str:
        """What code for this target depends on besides the target's name, such as the features of the processor."""

    def report(self, texts: Mapping[str, str | bytes], metadata: KernelMetadata) -> Report:
        """What became of a kernel, from the texts of its stages."""

    def load(self, texts: Mapping[str, str | bytes], metadata: KernelMetadata) -> Callable[..., None]:
        """Load a kernel's code; returns `launch(grid, values)`, which takes `device=` where there can be several.

        What is returned has `prepare()`, which does all that a first launch would have to do, `run_packed(grid, packed,
        stream)`, and `native_launch()` (`native_launch.py`); they take the same `device=`.
        """


class Backends(MutableMapping[str, "Backend"]):
    """The backends by name, each imported when it is first looked up: `module:class` until then."""

    def __init__(self, classes: Mapping[str, str]):
        self._found: dict[str, Any] = dict(classes)

    def __getitem__(self, name: str) -> Backend:
        found = self._found[name]
        if isinstance(found, str):
            module, _, kind = found.partition(":")
            undisturbed(partial(importlib.import_module, module))
            found = self._found[name] = getattr(importlib.import_module(module), kind)()
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._found

    def __setitem__(self, name: str, backend: Backend) -> None:
        self._found[name] = backend

    def __delitem__(self, name: str) -> None:
        del self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


BACKENDS = Backends(
    {"cpu": "deuteron.backend.cpu.backend:CPUBackend", "cuda": "deuteron.backend.cuda.backend:CUDABackend"}
)


def parse_target(text: str) -> Target:
    """A target from `cpu`, `cpu:x86-64-v3`, `cuda:90` or Triton's `cuda:90:32`; raises UsageError."""
    name, colon, arch = text.strip().partition(":")
    is_named = name in BACKENDS and bool(arch or not colon)
    target = BACKENDS[name].parse_target(arch) if is_named else None
    if target is None:
        *forms, last = (f"'{form}'" for backend in BACKENDS.values() for form in backend.target_forms)
        raise UsageError(f"unknown target '{text}': expected {', '.join(forms)} or {last}.{_meant(text)}")
    return target


def _meant(text: str) -> str:
    """The target of the number in a text such as `sm_90`, `cuda90` or `cuda:90a`."""
    for backend in BACKENDS.values():
        target = backend.parse_target("".join(filter(str.isdigit, text)))
        if target is not None and any(char.isdigit() for char in text):
            with suppress(UsageError):
                backend.check(target, backend.make_options({}))
                return f" Did you mean '{target}'?"
    return ""


def get_backend(target: Target) -> Backend:
    """The backend of a target; raises UsageError where there is none."""
    if target.backend not in BACKENDS:
        raise UsageError(
            f"target '{target}': Deuteron does not compile for '{target.backend}' yet; "
            f"it does for {', '.join(sorted(BACKENDS))}"
        )
    return BACKENDS[target.backend]
