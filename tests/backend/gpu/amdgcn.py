"""A target of tests alone: AMD GPUs of 64 lanes, down to assembly.

    monkeypatch.setitem(BACKENDS, "amdgcn", AMDGCNBackend())
    deuteron.compile(source, "amdgcn:gfx90a").asm["gcn"]

It shows what a second GPU takes: a machine, an ISA, the calling of LLVM; all passes and rules are those of every GPU.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import llvmlite.binding as llvm
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from deuteron.analysis.axis.axis_analysis import AxisInfoAnalysis
from deuteron.backend.gpu.context import Context
from deuteron.backend.gpu.elements import bits_type, to_bits
from deuteron.backend.gpu.isa import ISA, NO_HINTS, AccessHints
from deuteron.backend.gpu.lowering import check_config, kernel_of, lower_body, parameters_of, shared_bytes_of
from deuteron.backend.gpu.rules.table import RULES
from deuteron.backend.gpu.stages import gpu_pipelines, gpu_stages
from deuteron.backend.gpu.threads import Threads
from deuteron.backend.gpu.words import join, split
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.module import Module
from deuteron.backend.llvm.parse import parsed
from deuteron.backend.llvm.types import Value, bit_width, const, vector, zero
from deuteron.backend.stage import Made, Stage, Unit
from deuteron.ir.tt.atomic import AtomicKind
from deuteron.machine.gpu import GPU, GPUConfig, RegisterFile, SharedMemory
from deuteron.options import CPUOptions, Target

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

    def atomic_rmw(
        self, b: Builder, op: Operation, address: Value, values: Sequence[Value], guard: Value | None
    ) -> Sequence[Value]:
        """LLVM's own, of the whole device, one element at a time: sums alone."""
        (value,) = values
        opcode = {AtomicKind.ADD: "add", AtomicKind.FADD: "fadd"}[AtomicKind(op.kind.value.data)]
        with b.if_(guard if guard is not None else const("i1", True)) as branch:
            old = b.atomicrmw(opcode, address, value, 'syncscope("agent") acq_rel')
            branch.yield_(to_bits(b, old, op.result.type))
            branch.otherwise()
            branch.yield_(zero(bits_type(op.result.type)))
        return branch.results

    def fence(self, b: Builder, op: Operation) -> None:
        b.fence('syncscope("agent") acq_rel')


def _lane(b: Builder) -> Value:
    low = b.intrinsic("llvm.amdgcn.mbcnt.lo", "i32", const("i32", -1), const("i32", 0), overloads=())
    return b.intrinsic("llvm.amdgcn.mbcnt.hi", "i32", const("i32", -1), low, overloads=())


@contextmanager
def _fences(b: Builder) -> Iterator[None]:
    b.fence('syncscope("workgroup") release')
    yield
    b.fence('syncscope("workgroup") acquire')


def _config(target: Target, options: CPUOptions) -> GPUConfig:
    return GPUConfig(MI200, options.num_warps, options.num_stages, options.num_ctas)


def _lower(module: ModuleOp, unit: Unit) -> Made:
    config, func, isa = _config(unit.target, unit.options), kernel_of(module), GCN()
    check_config(module, config)
    shared = shared_bytes_of(module, config.machine)
    made = Module(unit.symbol, fast_math="contract")
    attributes = f'nounwind "amdgpu-flat-work-group-size"="{config.num_threads},{config.num_threads}"'
    b = made.function(unit.symbol, "void", parameters_of(func), isa.kernel_convention, attributes)
    threads = Threads(b, isa, config.machine.warp_size, config.num_warps)
    lower_body(Context(made, b, isa, config, RULES, AxisInfoAnalysis(func), threads), func)
    return Made(made.text(), {"shared": shared})


def _emit_assembly(llir: str, unit: Unit) -> Made:
    machine = _target_machine()
    with parsed(llir, TRIPLE) as module:
        module.data_layout = str(machine.target_data)
        return Made(machine.emit_assembly(module))


class AMDGCNBackend:
    """Compiles, and does not launch. Options are those that every target takes."""

    name = "amdgcn"
    target_forms = ("amdgcn:gfx90a",)
    options_class = CPUOptions
    stages = (*gpu_stages(_config), Stage("llir", "ttgir", _lower), Stage("gcn", "llir", _emit_assembly))

    def parse_target(self, arch: str) -> Target | None:
        return Target(self.name, arch, MI200.warp_size) if arch == CPU else None

    def make_options(self, given: Mapping[str, Any]) -> CPUOptions:
        return CPUOptions(**given)

    def check(self, target: Target, options: CPUOptions) -> None:
        _config(target, options)

    def pipelines(self, target: Target, options: CPUOptions) -> Mapping[str, Sequence[ModulePass]]:
        return gpu_pipelines(_config(target, options), options.debug)

    def pass_objects(self, target: Target, options: CPUOptions) -> Sequence[object]:
        return [_config(target, options)]

    def fingerprint(self, target: Target) -> str:
        return CPU


@cache
def _target_machine() -> llvm.TargetMachine:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm.Target.from_triple(TRIPLE).create_target_machine(cpu=CPU, opt=3)
