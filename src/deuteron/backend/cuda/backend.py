"""NVIDIA GPUs as a target: their options, their stages, and how their kernels are loaded.

    ttir -> ttgir -> llir -> ptx -> cubin        `cuda:80`, 86, 89, 90, 100, 120
                                                 and `sass` of the cubin when asked for, where nvdisasm is found

Neither a GPU, a driver nor a CUDA toolkit is needed to compile. xDSL and LLVM are imported when a stage runs: a kernel
out of the cache is launched without them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from deuteron.backend import ttir
from deuteron.backend.cuda.assembler.clamp_fields import clamp_fields
from deuteron.backend.cuda.assembler.fit_registers import assemble_to_fit
from deuteron.backend.cuda.assembler.loop_variables import emit_ptx_to_fit
from deuteron.backend.cuda.assembler.nvdisasm import disassemble, has_disassembler
from deuteron.backend.cuda.assembler.pack_differences import pack_differences
from deuteron.backend.cuda.assembler.pair_products import pair_products
from deuteron.backend.cuda.assembler.ptxas import has_ptxas, ptxas_version, start_assembler
from deuteron.backend.cuda.assembler.ptxas_process import AssemblerProcess
from deuteron.backend.cuda.assembler.widen_halves import widen_halves
from deuteron.backend.cuda.assembler.widen_products import widen_products
from deuteron.backend.cuda.target import WARP_SIZE, Architecture, architecture
from deuteron.backend.gpu.stages import gpu_pipelines, gpu_stages
from deuteron.backend.llvm.definition import DEFINES, ENTRY
from deuteron.backend.metadata import KernelMetadata
from deuteron.backend.stage import Made, Stage, Unit
from deuteron.errors import AssemblerError, InternalError, IRError, Location
from deuteron.machine.gpu import GPUConfig
from deuteron.options import CUDAOptions, Target, make_options

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.passes import ModulePass

    from deuteron.backend.report import Report


def _architecture(unit: Unit) -> Architecture:
    return architecture(unit.target.arch)


def _gpu_config(target: Target, options: CUDAOptions) -> GPUConfig:
    """What passes get. TMA takes descriptors of tensors, which a launch passes beside the arguments."""
    machine = architecture(target.arch).machine
    machine = replace(machine, tma=None) if options.plain_arguments else machine
    return GPUConfig(machine, options.num_warps, options.num_stages, options.num_ctas)


def _lower_to_llvm(module: ModuleOp, unit: Unit) -> Made:
    from deuteron.backend.cuda.lowering import lower_module

    config = _gpu_config(unit.target, unit.options)
    lowered = lower_module(module, unit.symbol, config, unit.options, unit.path_of)
    found = {"shared": lowered.shared_bytes, "extra_warps": lowered.extra_warps, "tensor_maps": lowered.tensor_maps}
    found["most_programs"] = lowered.most_programs
    return Made(lowered.llir, {**found, **ttir.apart_facts(lowered.apart, unit)})


def _parse_llvm(text: str, file: str) -> str:
    """The text, if LLVM accepts it: what comes from outside must not reach code generation otherwise."""
    from deuteron.backend.llvm.nvptx import check
    from deuteron.backend.llvm.parse import check_text

    check_text(text, file)
    try:
        check(text)
    except InternalError as error:
        raise IRError(error.message, Location(file, 1)) from error
    return text


class _PTX(NamedTuple):
    """The text, the process of ptxas that waits for it, if one was started, and the file that it came from, if any."""

    text: str
    assembler: AssemblerProcess | None = None
    file: str | None = None


def _emit_ptx(llir: str, unit: Unit) -> Made:
    with ExitStack() as on_failure:
        # It loads itself while LLVM works.
        name = _architecture(unit).name
        assembler = start_assembler(name, unit.options.enable_fp_fusion) if has_ptxas() else None
        if assembler is not None:
            on_failure.callback(assembler.stop)
        made = emit_ptx_alone(llir, unit)
        on_failure.pop_all()
    return Made(made.product._replace(assembler=assembler))


def emit_ptx_alone(llir: str, unit: Unit) -> Made:
    """Of PTX that nobody assembles: for the emulator."""
    ptx = emit_ptx_to_fit(llir, _architecture(unit))
    return Made(_PTX(clamp_fields(pack_differences(widen_products(pair_products(widen_halves(ptx)))))))


def _parse_ptx(text: str, file: str) -> _PTX:
    return _PTX(text, file=file)


def _assemble(ptx: _PTX, unit: Unit) -> Made:
    fp_fusion = unit.options.enable_fp_fusion
    try:
        cubin = assemble_to_fit(ptx.text, _architecture(unit), unit.facts.shared, fp_fusion, ptx.assembler)
    except AssemblerError as error:
        if ptx.file is None:
            raise
        raise _refused(error, ptx.file) from error
    used = cubin.resources
    resources = {**asdict(used), "spill_bytes": used.spill_bytes, "warnings": list(cubin.messages)}
    return Made(cubin.image, {"resources": resources})


def _refused(error: AssemblerError, file: str) -> IRError:
    """Of PTX that came as text, after its line of metadata."""
    said = re.sub(r"ptxas \S+, line (\d+); ", lambda found: f"line {int(found[1]) + 1}: ", error.message)
    line = re.search(r"line (\d+): ", said)
    return IRError(said, Location(file, int(line[1]) if line else 1))


def _disassemble(cubin: bytes, unit: Unit) -> Made:
    return Made(disassemble(cubin))


_SASS = Stage("sass", "cubin", _disassemble, on_demand=True)


class CUDABackend:
    """Compiles for NVIDIA GPUs, and launches on those of the machine."""

    name = "cuda"
    target_forms = ("cuda:<compute capability>",)
    options_class = CUDAOptions
    stages: Sequence[Stage] = (
        *gpu_stages(_gpu_config),
        Stage("llir", "ttgir", _lower_to_llvm, parse=_parse_llvm, comment=";", defines=DEFINES),
        Stage("ptx", "llir", _emit_ptx, text=attrgetter("text"), parse=_parse_ptx, comment="//", defines=ENTRY),
        Stage("cubin", "ptx", _assemble),
        *((_SASS,) if has_disassembler() else ()),
    )

    def parse_target(self, arch: str) -> Target | None:
        """Of `90`, or `90:32` as Triton has it, with the size of a warp."""
        capability, _, warp_size = arch.partition(":")
        if not capability.isdigit() or warp_size not in ("", str(WARP_SIZE)):
            return None
        return Target("cuda", int(capability), WARP_SIZE)

    def make_options(self, given: Mapping[str, Any]) -> CUDAOptions:
        return make_options(CUDAOptions, given)

    def check(self, target: Target, options: CUDAOptions) -> None:
        _gpu_config(target, options)

    def pipelines(self, target: Target, options: CUDAOptions) -> Mapping[str, Sequence[ModulePass]]:
        return gpu_pipelines(_gpu_config(target, options), options.debug)

    def pass_objects(self, target: Target, options: CUDAOptions) -> Sequence[object]:
        return [_gpu_config(target, options)]

    def fingerprint(self, target: Target) -> str:
        return f"{architecture(target.arch).name} ptxas {ptxas_version()}"

    def report(self, texts: Mapping[str, str | bytes], metadata: KernelMetadata) -> Report:
        from deuteron.backend.cuda.report import make_report  # deferred: brings xDSL

        return make_report(texts, metadata)

    def load(self, texts: Mapping[str, str | bytes], metadata: KernelMetadata) -> Callable[..., None]:
        from deuteron.backend.cuda.launch.driver import load_kernel  # deferred: brings the driver

        return load_kernel(texts["cubin"], metadata)
