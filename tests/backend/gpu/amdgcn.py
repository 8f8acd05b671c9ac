"""A target of tests alone: AMD GPUs of 64 lanes, as far as vector addition, reductions and conversions of layouts go.

    ttgir, assembly = compile_for_amdgcn(add, {"x": "*fp32", "n": "i32", ...}, {"BLOCK": 1024})

It shows what a second GPU takes: a machine, an ISA, the calling of LLVM; all rules are those of backend/gpu.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache

import llvmlite.binding as llvm
from xdsl.dialects.builtin import ModuleOp

from deuteron.analysis.axis_analysis import AxisInfoAnalysis
from deuteron.backend.gpu.context import Context
from deuteron.backend.gpu.isa import ISA, NO_HINTS, AccessHints
from deuteron.backend.gpu.lowering import check_config, kernel_of, lower_body, parameters_of, shared_bytes_of
from deuteron.backend.gpu.rules.table import RULES
from deuteron.backend.gpu.threads import Threads
from deuteron.backend.gpu.words import join, split
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.module import Module
from deuteron.backend.llvm.parse import parsed
from deuteron.backend.llvm.types import Value, bit_width, const, vector, zero
from deuteron.frontend import lower_function
from deuteron.ir.text import print_module
from deuteron.ir.verifier import verify_ir
from deuteron.machine.gpu import GPU, GPUConfig, RegisterFile, SharedMemory
from deuteron.passes import run_passes
from deuteron.passes.gpu import gpu_passes
from deuteron.passes.tile import tile_passes
from deuteron.runtime.jit import JITFunction

TRIPLE, CPU = "amdgcn-amd-amdhsa", "gfx90a"
MI200 = GPU(
    name="amdgcn:gfx90a",
    warp_size=64,
    registers=RegisterFile(count=128 * 1024, max_per_thread=256, unit=512, partitions=4),
    shared=SharedMemory(max_bytes=64 * 1024, reserved_bytes=0, unit=512, bytes_per_multiprocessor=64 * 1024),
    max_threads=1024,
    resident_warps=32,
    resident_ctas=32,
    schedulers=4,
)


class GCN(ISA):
    name = "AMDGCN"
    kernel_convention = "amdgpu_kernel"

    def thread_index(self, b: Builder) -> Value:
        return b.intrinsic("llvm.amdgcn.workitem.id.x", "i32", overloads=())

    def uniform(self, b: Builder, word: Value) -> Value:
        return b.intrinsic("llvm.amdgcn.readfirstlane", "i32", word)

    def shuffle(self, b: Builder, word: Value, lane: Value) -> Value:
        address = b.shl(lane, const("i32", 2))
        return b.intrinsic("llvm.amdgcn.ds.bpermute", "i32", address, word, overloads=())

    def shuffle_xor(self, b: Builder, word: Value, lane_mask: int) -> Value:
        return self.shuffle(b, word, b.xor(_lane(b), const("i32", lane_mask)))

    def barrier(self, b: Builder, num_threads: int, number: int | None) -> None:
        assert number is None, "a CTA has one barrier"
        with _fences(b):
            b.intrinsic("llvm.amdgcn.s.barrier", "void", overloads=())

    def warp_barrier(self, b: Builder) -> None:
        with _fences(b):
            b.intrinsic("llvm.amdgcn.wave.barrier", "void", overloads=())

    def program_id(self, b: Builder, axis: int) -> Value:
        return b.intrinsic(f"llvm.amdgcn.workgroup.id.{'xyz'[axis]}", "i32", overloads=())

    def num_programs(self, b: Builder, axis: int) -> Value:
        """Of the implicit arguments, the first three words (code object version 5)."""
        arguments = b.intrinsic("llvm.amdgcn.implicitarg.ptr", "ptr addrspace(4)", overloads=())
        return b.load("i32", b.gep("i32", arguments, const("i32", axis)))

    def load(
        self,
        b: Builder,
        type: str,
        address: Value,
        count: int,
        mask: Value | None = None,
        other: Sequence[Value] = (),
        hints: AccessHints = NO_HINTS,
    ) -> list[Value]:
        """A branch where the mask is off, whatever it is: lanes that do not load are switched off."""
        if mask is None:
            loaded = b.load(vector(type, count) if count > 1 else type, address, align=count * bit_width(type) // 8)
            return split(b, loaded, count)
        with b.if_(mask) as branch:
            branch.yield_(*self.load(b, type, address, count))
            branch.otherwise()
            branch.yield_(*(other or [zero(type)] * count))
        return list(branch.results)

    def store(
        self,
        b: Builder,
        elements: Sequence[Value],
        address: Value,
        mask: Value | None = None,
        hints: AccessHints = NO_HINTS,
    ) -> None:
        if mask is not None:
            with b.if_(mask):
                self.store(b, elements, address)
            return
        b.store(join(b, elements), address, align=len(elements) * bit_width(elements[0].type) // 8)


def _lane(b: Builder) -> Value:
    low = b.intrinsic("llvm.amdgcn.mbcnt.lo", "i32", const("i32", -1), const("i32", 0), overloads=())
    return b.intrinsic("llvm.amdgcn.mbcnt.hi", "i32", const("i32", -1), low, overloads=())


@contextmanager
def _fences(b: Builder) -> Iterator[None]:
    b.fence('syncscope("workgroup") release')
    yield
    b.fence('syncscope("workgroup") acquire')


def compile_for_amdgcn(
    kernel: JITFunction,
    signature: Mapping[str, str],
    constants: Mapping[str, object],
    num_warps: int = 4,
    hinted: Collection[str] = (),
) -> tuple[str, str]:
    """The ttgir and the assembly of a kernel; hinted arguments are divisible by 16."""
    config, hints = GPUConfig(MI200, num_warps), dict.fromkeys(hinted, (("tt.divisibility", 16),))
    module = lower_function(kernel, {**signature, **dict.fromkeys(constants, "constexpr")}, constants, hints)
    run_passes(module, [*tile_passes(loads_ahead=True), *gpu_passes(config)], verify=verify_ir)
    return print_module(module), _assembly(_lower(module, config))


def _lower(module: ModuleOp, config: GPUConfig) -> str:
    func, isa = kernel_of(module), GCN()
    check_config(module, config)
    shared_bytes_of(module, config.machine)
    llvm_module = Module("kernel", fast_math="contract")
    attributes = f'nounwind "amdgpu-flat-work-group-size"="{config.num_threads},{config.num_threads}"'
    b = llvm_module.function("kernel", "void", parameters_of(func), isa.kernel_convention, attributes)
    threads = Threads(b, isa, config.machine.warp_size, config.num_warps)
    facts = AxisInfoAnalysis(func), frozenset()
    lower_body(Context(llvm_module, b, isa, config, RULES, *facts, threads), func)
    return llvm_module.text()


@cache
def _target_machine() -> llvm.TargetMachine:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm.Target.from_triple(TRIPLE).create_target_machine(cpu=CPU, opt=3)


def _assembly(llir: str) -> str:
    machine = _target_machine()
    with parsed(llir, TRIPLE) as module:
        module.data_layout = str(machine.target_data)
        return machine.emit_assembly(module)
