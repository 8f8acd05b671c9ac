"""The targets that kernels are emitted for as C: a table, from name to what is needed of each.

select_target(None)              the machine's GPU: Target("cuda", 90); without one Target("cpu", "x86-64-v3")
select_target("cpu:native")      Target("cpu", "native")
select_target("cuda:80+ptx")     Target("cuda", 80)         asks_for_ptx("cuda:80+ptx") is True
c_target("cpu").source(code)     the text of a `.c`
"""

from __future__ import annotations

from deuteron.aot.targets.cpu import CPU
from deuteron.aot.targets.cuda import CUDA
from deuteron.aot.targets.target import CTarget
from deuteron.backend import parse_target
from deuteron.backend.devices import machine_target
from deuteron.errors import UsageError
from deuteron.options import Target

_PTX = "+ptx"

TARGETS: dict[str, CTarget] = {target.name: target for target in (CPU, CUDA)}


def c_target(backend: str) -> CTarget:
    """How to emit C for a backend; raises UsageError where that is not there."""
    if backend not in TARGETS:
        raise UsageError(
            f"Deuteron does not compile ahead of time for '{backend}' yet; it does for {', '.join(sorted(TARGETS))}"
        )
    return TARGETS[backend]


def select_target(text: str | None) -> Target:
    """The target that was named, completed; or where none was, that of this machine. Raises UsageError."""
    if text is None:
        target = machine_target()
        return c_target(target.backend).resolve(Target("cpu", "", 1) if target.backend == "cpu" else target)
    name = text.strip().removesuffix(_PTX)
    target = parse_target(name)
    if name == target.backend:  # without an architecture it is the default one of the C target
        target = Target(target.backend, "", target.warp_size)
    resolved = c_target(target.backend).resolve(target)
    if asks_for_ptx(text):
        c_target(resolved.backend).check_ptx(resolved)
    return resolved


def asks_for_ptx(text: str | None) -> bool:
    """Whether a target's name asks for the text besides, which newer devices can be made to run."""
    return text is not None and text.strip().endswith(_PTX)
