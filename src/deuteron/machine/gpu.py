"""What is true of a GPU, and how a kernel uses it.

    GPU(name="cuda:80", warp_size=32, registers=RegisterFile(65536, 255, 256, 4), mma=..., tma=None, ...)
    GPUConfig(gpu, num_warps=8, num_ctas=2)       what passes get

A multiprocessor is what runs the warps of a CTA (a compute unit), a warp those threads that execute together (a wave).
A capability that nobody gave is none: `tma=None`, `max_cluster=1`, no bytes that an asynchronous copy takes.
"""

from __future__ import annotations

from dataclasses import dataclass

from deuteron.errors import UsageError
from deuteron.machine.matrix import MatrixUnit, RegisterMatrixUnit
from deuteron.machine.tile import TileConfig

USUAL_REGISTERS = 255  # of a thread: the most on every GPU here
REGISTER_BYTES = 4  # of each


@dataclass(frozen=True)
class RegisterFile:
    """Registers of 32 bits of a multiprocessor. Warps get them in multiples of `unit`, from one of `partitions`."""

    count: int
    max_per_thread: int
    unit: int
    partitions: int

    def allowed(self, limit: int | None) -> int:
        """The most that a thread may have where a program limits it: to more than there are is no limit."""
        return min(limit or self.max_per_thread, self.max_per_thread)


@dataclass(frozen=True)
class SharedMemory:
    """In bytes: what a CTA may have, what the driver keeps besides, and what the sum is rounded up to.

    `for_operands`: whether operands of dots may be there at all.
    """

    max_bytes: int
    reserved_bytes: int
    unit: int
    bytes_per_multiprocessor: int
    for_operands: bool = True


@dataclass(frozen=True)
class TensorMemoryCopies:
    """A unit that copies boxes of tensors by descriptors (TMA).

    `max_extent`: of a box in each dimension; `alignment`: in bytes, of addresses, strides and rows in global memory.
    """

    max_extent: int
    alignment: int


@dataclass(frozen=True, kw_only=True)
class GPU:
    """One kind of GPU; `name` is for messages and texts alone.

    max_threads           of a CTA
    resident_warps        of a multiprocessor, as resident_ctas
    schedulers            that issue an instruction a cycle, of a multiprocessor
    max_cluster           CTAs that can be launched as one cluster, sharing their shared memory
    mma                   what multiplies matrices in registers of a warp
    wgmma                 what multiplies matrices in shared memory, while the warps go on
    async_copy_bytes      what one asynchronous copy of a thread, from global to shared memory, may take
    has_mbarriers         barriers in shared memory that count threads and bytes
    register_move_unit    warps hand registers to others while they run, so many at a time (setmaxnreg); 0: they cannot
    converts_fp8          instructions that convert from and to fp8
    has_bf16_atomics      global atomics that add bf16
    has_vector_atomics    global atomics that add 16 bytes of fp32, fp16 or bf16 at once
    max_shuffles          of a kernel, with which its assembler still takes about a second; None: any number
    """

    name: str
    warp_size: int
    registers: RegisterFile
    shared: SharedMemory
    max_threads: int
    resident_warps: int
    resident_ctas: int
    schedulers: int = 1
    max_cluster: int = 1
    mma: RegisterMatrixUnit | None = None
    wgmma: MatrixUnit | None = None
    async_copy_bytes: tuple[int, ...] = ()
    tma: TensorMemoryCopies | None = None
    has_mbarriers: bool = False
    register_move_unit: int = 0
    has_stmatrix: bool = False
    converts_fp8: bool = False
    has_bf16_atomics: bool = False
    has_vector_atomics: bool = False
    max_shuffles: int | None = None

    @property
    def tma_bytes(self) -> int:
        """The largest box of a tensor that TMA may copy, for which a CTA has room; 0 where there is no TMA."""
        return self.shared.max_bytes if self.tma is not None else 0

    @property
    def max_warps(self) -> int:
        """Of a CTA."""
        return self.max_threads // self.warp_size


@dataclass(frozen=True)
class GPUConfig:
    """A machine, and how many warps a CTA has, how many stages pipelined loops, how many CTAs a program.

    Raises UsageError for what no machine can launch, or this one cannot.
    """

    machine: GPU
    num_warps: int = 4
    num_stages: int = 3
    num_ctas: int = 1

    def __post_init__(self) -> None:
        for option, number in (("num_warps", self.num_warps), ("num_ctas", self.num_ctas)):
            if number.bit_count() != 1 or number < 1:
                raise UsageError(f"{option} must be a power of two, got {number}")
        name, max_warps, max_cluster = self.machine.name, self.machine.max_warps, self.machine.max_cluster
        if self.num_warps > max_warps:
            raise UsageError(
                f"num_warps={self.num_warps} makes CTAs of {self.num_threads} threads, and {name} launches at most "
                f"{self.machine.max_threads}: say num_warps={max_warps} or less"
            )
        if self.num_ctas > max_cluster:
            raise UsageError(
                f"num_ctas={self.num_ctas} makes clusters of {self.num_ctas} CTAs, and {name} launches at most "
                f"{max_cluster} together: say num_ctas={max_cluster}"
            )

    @property
    def num_threads(self) -> int:
        """Of a CTA."""
        return self.num_warps * self.machine.warp_size

    @property
    def tile(self) -> TileConfig:
        """What the passes on tile IR get."""
        wgmma = self.machine.wgmma
        return TileConfig(self.machine.tma_bytes, split_rows=wgmma and wgmma.rows, num_threads=self.num_threads)

    def resident_ctas(self, shared_bytes: int) -> int:
        """How many CTAs that need so much shared memory a multiprocessor has room for, as far as that says; 0: none."""
        shared = self.machine.shared
        if shared_bytes > shared.max_bytes:
            return 0
        by_memory = shared.bytes_per_multiprocessor // (shared_bytes + shared.reserved_bytes)
        return min(by_memory, self.machine.resident_warps // self.num_warps, self.machine.resident_ctas)

    @property
    def registers_per_thread(self) -> int:
        """Where a multiprocessor runs one CTA."""
        return min(self.machine.registers.max_per_thread, self.machine.registers.count // self.num_threads)
