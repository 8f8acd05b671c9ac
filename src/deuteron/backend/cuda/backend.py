"""NVIDIA GPUs as a target: their options, their stages, and how their kernels are loaded.

    ttir -> ttgir -> llir -> ptx -> cubin        `cuda:80`, 86, 89, 90, 100, 120
                                                 and `sass` of the cubin when asked for, where nvdisasm is found

Neither a GPU, a driver nor a CUDA toolkit is needed to compile. xDSL and LLVM are imported when a stage runs: a kernel
out of the cache is launched without them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from deuteron.backend import ttir
from deuteron.backend.cuda.fit_registers import assemble_to_fit
from deuteron.backend.cuda.nvdisasm import disassemble, has_disassembler
from deuteron.backend.cuda.ptxas import ptxas_version
from deuteron.backend.cuda.target import Architecture, architecture
from deuteron.backend.cuda.widen_products import widen_products
from deuteron.backend.metadata import KernelMetadata
from deuteron.backend.report import Report
from deuteron.backend.stage import Made, Stage, Unit
from deuteron.errors import InternalError, IRError, Location, UsageError
from deuteron.machine.gpu import GPUConfig
from deuteron.options import CUDAOptions, Target, make_options

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Operation


def _architecture(unit: Unit) -> Architecture:
    return architecture(unit.target.arch)


def gpu_config(unit: Unit) -> GPUConfig:
    """What passes get of a kernel being compiled."""
    options = unit.options
    return GPUConfig(_architecture(unit).machine, options.num_warps, options.num_stages, options.num_ctas)


def _optimise_tile_ir(module: ModuleOp, unit: Unit) -> Made:
    from deuteron.passes.tile import tile_passes

    has_tma = _architecture(unit).machine.tma is not None
    return ttir.optimise(module, unit, tile_passes(has_tma, loads_ahead=True))


def _assign_layouts(module: ModuleOp, unit: Unit) -> Made:
    from deuteron.passes import run_passes
    from deuteron.passes.gpu import gpu_passes

    run_passes(module, gpu_passes(gpu_config(unit)), unit.dump, _verify)
    return Made(module)


def _verify(module: ModuleOp, after: str, ops: Sequence[Operation]) -> None:
    """Verify what is tile IR until its tiles have layouts, and ttgir from then on."""
    from deuteron.ir.verifier import verify_ttgir, verify_ttir

    verify = verify_ttgir if "ttg.num-warps" in module.attributes else verify_ttir
    verify(module, after, ops)


def _parse_ttgir(text: str, file: str) -> ModuleOp:
    """Layouts are taken as they are; places in shared memory and barriers are made where the text has none."""
    from deuteron.ir.verifier import verify_ttgir
    from deuteron.passes import run_passes
    from deuteron.passes.gpu import memory_passes
    from deuteron.passes.gpu.memory.allocate_shared import TOTAL

    module = ttir.parse_tile_ir(text, file)
    try:
        verify_ttgir(module, "parsing")
    except InternalError as error:
        raise IRError(error.message, error.location or Location(file, 1)) from error
    if TOTAL not in module.attributes:
        run_passes(module, memory_passes(), verify=_verify)
    return module


def _lower_to_llvm(module: ModuleOp, unit: Unit) -> Made:
    from deuteron.backend.cuda.lowering import lower_module

    _check_launch(module, unit)
    lowered = lower_module(module, unit.symbol, gpu_config(unit), unit.options)
    found = {"shared": lowered.shared_bytes, "extra_warps": lowered.extra_warps, "tensor_maps": lowered.tensor_maps}
    return Made(lowered.llir, found)


def _check_launch(module: ModuleOp, unit: Unit) -> None:
    """A text is for a number of warps and of blocks; a launch of others would be wrong."""
    for option in ("num_warps", "num_ctas"):
        attribute = module.attributes.get(f"ttg.{option.replace('_', '-')}")
        made, asked = attribute.value.data if attribute is not None else 1, getattr(unit.options, option)
        if made != asked:
            raise UsageError(f"the ttgir is for {option}={made}, and {option}={asked} was asked for")


def _parse_llvm(text: str, file: str) -> str:
    """The text, if LLVM accepts it: what comes from outside must not reach code generation otherwise."""
    from deuteron.backend.llvm.nvptx import check

    try:
        check(text)
    except InternalError as error:
        raise IRError(error.message, Location(file, 1)) from error
    return text


def _emit_ptx(llir: str, unit: Unit) -> Made:
    from deuteron.backend.llvm.nvptx import emit_ptx

    target = _architecture(unit)
    return Made(widen_products(emit_ptx(llir, target.name, target.ptx_version)))


def _as_text(text: str, file: str) -> str:
    return text


def _assemble(ptx: str, unit: Unit) -> Made:
    cubin = assemble_to_fit(ptx, _architecture(unit), unit.facts.shared, unit.options.enable_fp_fusion)
    used = cubin.resources
    resources = {**asdict(used), "spill_bytes": used.spill_bytes, "warnings": list(cubin.messages)}
    return Made(cubin.image, {"resources": resources})


def _disassemble(cubin: bytes, unit: Unit) -> Made:
    return Made(disassemble(cubin))


_SASS = Stage("sass", "cubin", _disassemble, on_demand=True)


class CUDABackend:
    """Compiles for NVIDIA GPUs, and launches on those of the machine."""

    name = "cuda"
    options_class = CUDAOptions
    stages: Sequence[Stage] = (
        ttir.stage(_optimise_tile_ir),
        Stage(
            "ttgir",
            "ttir",
            _assign_layouts,
            text=ttir.print_tile_ir,
            parse=_parse_ttgir,
            describe=ttir.describe_tile_ir,
        ),
        Stage("llir", "ttgir", _lower_to_llvm, parse=_parse_llvm, comment=";"),
        Stage("ptx", "llir", _emit_ptx, parse=_as_text, comment="//"),
        Stage("cubin", "ptx", _assemble),
        *((_SASS,) if has_disassembler() else ()),
    )

    def make_options(self, given: Mapping[str, Any]) -> CUDAOptions:
        return make_options(CUDAOptions, dict(given))

    def check(self, target: Target, options: CUDAOptions) -> None:
        if options.num_ctas > architecture(target.arch).machine.max_cluster:
            raise UsageError(
                f"num_ctas={options.num_ctas} makes clusters of blocks, which compute capability 9.0 and later have, "
                f"and the target is {target}: say num_ctas=1"
            )

    def machine(self, target: Target) -> str:
        return f"{architecture(target.arch).name} ptxas {ptxas_version()}"

    def report(self, texts: Mapping[str, str | bytes], metadata: KernelMetadata) -> Report:
        from deuteron.backend.cuda.report import make_report  # deferred: brings xDSL

        return make_report(texts, metadata)

    def load(self, texts: Mapping[str, str | bytes], metadata: KernelMetadata) -> Callable[..., None]:
        from deuteron.backend.cuda.driver import load_kernel  # deferred: brings the driver

        return load_kernel(texts["cubin"], metadata)
