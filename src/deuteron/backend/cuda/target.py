"""NVIDIA GPUs as compile targets: what LLVM and ptxas call them, and what a block may use there.

    architecture(90)     Architecture(capability=90, name="sm_90a", ptx_version=83, max_shared_bytes=232448,
                                      max_warps=64, max_blocks=32)

From 9.0 on the architecture-specific variants (`a`) are used: their code runs on that architecture only and may use all
of its instructions. Limits: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
"""

from __future__ import annotations

from dataclasses import dataclass

from deuteron.errors import UsageError

MAX_THREADS = 1024
STATIC_SHARED_BYTES = 48 * 1024
RESERVED_SHARED_BYTES = 1024  # of every block


@dataclass(frozen=True)
class Architecture:
    """One compute capability. `ptx_version` is the lowest ISA that has it (83 is 8.3) and is what LLVM emits.

    `max_shared_bytes` is for a block, `max_warps` and `max_blocks` are for a multiprocessor.
    """

    capability: int
    name: str
    ptx_version: int
    max_shared_bytes: int
    max_warps: int
    max_blocks: int

    @property
    def shared_bytes_per_multiprocessor(self) -> int:
        """What one block may have, and what the driver keeps for itself of it."""
        return self.max_shared_bytes + RESERVED_SHARED_BYTES

    @property
    def has_clusters(self) -> bool:
        """Whether blocks can be launched in clusters, which share their shared memory."""
        return self.capability >= 90

    @property
    def is_specific(self) -> bool:
        """Whether its code runs on this very capability only, not on later ones of the same major number."""
        return self.name.endswith("a")

    def runs_on(self, capability: int) -> bool:
        """Whether a device of that compute capability runs its code."""
        if self.is_specific:
            return capability == self.capability
        return capability // 10 == self.capability // 10 and capability >= self.capability


_ARCHITECTURES = {
    architecture.capability: architecture
    for architecture in (
        Architecture(80, "sm_80", 83, 163 * 1024, 64, 32),
        Architecture(86, "sm_86", 83, 99 * 1024, 48, 16),
        Architecture(89, "sm_89", 84, 99 * 1024, 48, 24),
        Architecture(90, "sm_90a", 83, 227 * 1024, 64, 32),
        Architecture(100, "sm_100a", 86, 227 * 1024, 64, 32),
        Architecture(120, "sm_120", 87, 99 * 1024, 48, 24),
    )
}


def architecture(capability: int | str) -> Architecture:
    """The architecture of a `cuda:<capability>` target; raises UsageError for one that Deuteron does not know."""
    found = _ARCHITECTURES.get(int(capability)) if str(capability).isdigit() else None
    if found is None:
        known = ", ".join(f"cuda:{number}" for number in _ARCHITECTURES)
        raise UsageError(f"unknown target 'cuda:{capability}': Deuteron compiles for {known}")
    return found


def architecture_for_device(capability: int) -> Architecture:
    """The best architecture whose code a device runs; raises UsageError where there is none.

    8.7 runs code for 8.0 and 8.6, and 12.1 code for 12.0; code for an architecture-specific variant runs nowhere else.
    """
    usable = [known for known in _ARCHITECTURES.values() if known.runs_on(capability)]
    if not usable:
        known = ", ".join(f"{number / 10}" for number in _ARCHITECTURES)
        raise UsageError(
            f"this GPU has compute capability {capability / 10}, and Deuteron compiles for none that it runs: {known}"
        )
    return max(usable, key=lambda found: found.capability)
