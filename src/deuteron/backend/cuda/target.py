"""NVIDIA GPUs as compile targets: what LLVM and ptxas call them, and their machine descriptions.

    architecture(90)     Architecture(capability=90, name="sm_90a", ptx_version=83, machine=GPU(name="cuda:90", ...))

From 9.0 on the architecture-specific variants (`a`) are used: their code runs on that architecture only and may use all
of its instructions. Limits: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
"""

from __future__ import annotations

from dataclasses import dataclass

from deuteron.errors import UsageError
from deuteron.layout.distributed import mma_v2_accumulator, mma_v2_operand
from deuteron.layout.tensor_box import CHUNK_BYTES, MAX_EXTENT
from deuteron.layout.wgmma import WARPGROUP
from deuteron.machine.gpu import GPU, RegisterFile, SharedMemory, TensorMemoryCopies
from deuteron.machine.matrix import DotTypes, MatrixUnit, RegisterMatrixUnit


@dataclass(frozen=True)
class Architecture:
    """One compute capability. `ptx_version` is the lowest ISA that has it (83 is 8.3) and is what LLVM emits."""

    capability: int
    name: str
    ptx_version: int
    machine: GPU

    @property
    def is_specific(self) -> bool:
        """Whether its code runs on this very capability only, not on later ones of the same major number."""
        return self.name.endswith("a")

    def runs_on(self, capability: int) -> bool:
        """Whether a device of that compute capability runs its code."""
        if self.is_specific:
            return capability == self.capability
        return capability // 10 == self.capability // 10 and capability >= self.capability


WARP_SIZE = 32
STATIC_SHARED_BYTES = 48 * 1024  # what a kernel has without asking the driver for more
_SHARED_RESERVED = 1024  # of every CTA, by the driver
_FP8 = ("f8E4M3FN", "f8E5M2")
_TYPES: frozenset[DotTypes] = frozenset(
    {
        ("f16", "f16", "f32"),
        ("f16", "f16", "f16"),
        ("bf16", "bf16", "f32"),
        ("bf16", "bf16", "bf16"),
        ("tf32", "tf32", "f32"),
        ("i8", "i8", "i32"),
    }
)
_F64: DotTypes = ("f64", "f64", "f64")
_TYPES_WITH_FP8 = _TYPES | {(a, b, result) for a in _FP8 for b in _FP8 for result in ("f32", "f16")}


def _gpu(capability: int, shared_kilobytes: int, resident_warps: int, resident_ctas: int) -> GPU:
    """What follows from the compute capability, and the sizes that do not."""
    is_hopper, has_tma = capability == 90, capability >= 90
    return GPU(
        name=f"cuda:{capability}",
        warp_size=WARP_SIZE,
        registers=RegisterFile(count=64 * 1024, max_per_thread=255, unit=256, partitions=4),
        shared=SharedMemory(
            max_bytes=shared_kilobytes * 1024,
            reserved_bytes=_SHARED_RESERVED,
            unit=128,
            bytes_per_multiprocessor=shared_kilobytes * 1024 + _SHARED_RESERVED,
        ),
        max_threads=1024,
        resident_warps=resident_warps,
        resident_ctas=resident_ctas,
        schedulers=4,
        max_cluster=8 if has_tma else 1,
        mma=RegisterMatrixUnit(
            rows=16,
            columns=8,
            depth_bits=256,
            types=_mma_types(capability),
            accumulator=mma_v2_accumulator,
            operand=mma_v2_operand,
            f64_rows=16 if capability >= 90 else 8,
            f64_registers=64,  # ptxas 13.3 refuses it below, whatever else the kernel has
        ),
        wgmma=_WGMMA if is_hopper else None,
        async_copy_bytes=(4, 8, 16),
        tma=TensorMemoryCopies(MAX_EXTENT, CHUNK_BYTES) if has_tma else None,
        has_mbarriers=True,
        register_move_unit=8 if capability in (90, 100) else 0,
        has_stmatrix=capability >= 90,
        converts_fp8=capability >= 89,
        has_bf16_atomics=capability >= 90,
        has_vector_atomics=capability >= 90,
        # ptxas 13.5 for 7.5 to 8.9 takes time by their square, 1,280 take 7 s; for 9.0 0.4 s.
        max_shuffles=None if capability >= 90 else 512,
    )


def _mma_types(capability: int) -> frozenset[DotTypes]:
    """9.0 takes fp8 in mma.sync, too, but multiplies it as f16; 8.6, 8.9 and 12.0 have no fast unit for f64."""
    if capability in (89, 120):
        return _TYPES_WITH_FP8
    return _TYPES if capability == 86 else _TYPES | {_F64}


_WGMMA = MatrixUnit(
    rows=64,
    columns=8,
    depth_bits=256,
    types=_TYPES_WITH_FP8,
    warps=WARPGROUP,
    flop_bits=4096 * 16,  # 989 TFLOPS of fp16 by 132 multiprocessors at 1.83 GHz
)
_ARCHITECTURES = {
    architecture.capability: architecture
    for architecture in (
        Architecture(80, "sm_80", 83, _gpu(80, 163, 64, 32)),
        Architecture(86, "sm_86", 83, _gpu(86, 99, 48, 16)),
        Architecture(89, "sm_89", 84, _gpu(89, 99, 48, 24)),
        Architecture(90, "sm_90a", 83, _gpu(90, 227, 64, 32)),
        Architecture(100, "sm_100a", 86, _gpu(100, 227, 64, 32)),
        Architecture(120, "sm_120", 87, _gpu(120, 99, 48, 24)),
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
