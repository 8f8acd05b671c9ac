"""The CPU as a target: its options, its stages, and how its kernels are loaded.

    ttir -> llir -> obj        and `asm` from `llir` when somebody asks for it

`native` is the processor at hand with all its features; any other arch is the name of an LLVM CPU without more.
xDSL and LLVM are imported when a stage runs: a kernel out of the cache is launched without xDSL.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from deuteron.backend import ttir
from deuteron.backend.cpu.launch.torch_timing import offer_to_torch
from deuteron.backend.llvm.definition import DEFINES
from deuteron.backend.llvm.targets import CPU, architecture_of, machine, resolve_cpu
from deuteron.backend.llvm.tile_permission import may_use_tiles
from deuteron.backend.metadata import KernelMetadata
from deuteron.backend.stage import Made, Stage, Unit
from deuteron.errors import InternalError, IRError, LaunchError, Location
from deuteron.options import CPUOptions, Target, make_options

if TYPE_CHECKING:
    from xdsl.passes import ModulePass

    from deuteron.backend.report import Report


def _pipelines(options: CPUOptions) -> dict[str, list[ModulePass]]:
    from deuteron.machine.tile import TILES_OF_CPU
    from deuteron.passes.tile import tile_passes

    config = replace(TILES_OF_CPU, groups_programs=not options.check, splits_accesses=not options.check)
    return {"tile": tile_passes(config, options.debug)}


def _optimise_tile_ir(module: Any, unit: Unit) -> Made:
    return ttir.optimise(module, unit, _pipelines(unit.options)["tile"])


_FACTS = ("scratch_bytes", "waiting_line", "uses_tiles", "has_atomics", "assertions")


def _lower_to_llvm(module: Any, unit: Unit) -> Made:
    from deuteron.backend.cpu.lowering import lower_module
    from deuteron.backend.llvm.compile import optimise

    cpu, features = _cpu(unit)
    lowered = lower_module(module, unit.symbol, cpu, features, unit.options, unit.path_of)
    optimised = optimise(lowered.llir, cpu, features, unit.options.opt_level)
    found = {name: getattr(lowered, name) for name in _FACTS}
    return Made(optimised, {**found, **ttir.apart_facts(lowered.apart, unit)})


def _parse_llvm(text: str, file: str) -> str:
    """The text, if LLVM accepts it: what comes from outside must not reach code generation otherwise."""
    from deuteron.backend.llvm.compile import optimise
    from deuteron.backend.llvm.parse import check_text

    check_text(text, file)
    try:
        optimise(text, "generic", opt_level=0)
    except InternalError as error:
        raise IRError(error.message, Location(file, 1)) from error
    return text


def _emit_assembly(llir: str, unit: Unit) -> Made:
    from deuteron.backend.llvm.compile import emit_assembly

    return Made(emit_assembly(llir, *_cpu(unit), unit.options.opt_level))


def _emit_object(llir: str, unit: Unit) -> Made:
    from deuteron.backend.llvm.compile import emit_object

    return Made(emit_object(llir, *_cpu(unit), unit.options.opt_level))


def _cpu(unit: Unit) -> CPU:
    return resolve_cpu(str(unit.target.arch))


def _without_functions(texts: Mapping[str, str | bytes], metadata: KernelMetadata) -> LaunchError | None:
    """The error of code that calls functions which are nowhere: LLVM IR for a CPU that has instructions for them."""
    from deuteron.backend.llvm.compile import external_symbols
    from deuteron.backend.llvm.loader import is_in_process

    missing = [symbol for symbol in sorted(external_symbols(texts["asm"])) if not is_in_process(symbol)]
    if not missing:
        return None
    return LaunchError(
        f"'{metadata.name}' calls {', '.join(missing)}, which this process does not have: LLVM has no instruction of "
        f"'{metadata.target.arch}' for that. Compile the kernel itself for this CPU."
    )


class CPUBackend:
    """Compiles for processors, and launches on the one at hand."""

    name = "cpu"
    target_forms = ("cpu", "cpu:<LLVM CPU name>")
    options_class = CPUOptions
    stages: Sequence[Stage] = (
        ttir.stage(_optimise_tile_ir),
        Stage("llir", "ttir", _lower_to_llvm, parse=_parse_llvm, comment=";", defines=DEFINES),
        Stage("asm", "llir", _emit_assembly, on_demand=True),
        Stage("obj", "llir", _emit_object),
    )

    def parse_target(self, arch: str) -> Target:
        return Target("cpu", arch or "native", 1)

    def make_options(self, given: Mapping[str, Any]) -> CPUOptions:
        return make_options(CPUOptions, given)

    def check(self, target: Target, options: CPUOptions) -> None:
        resolve_cpu(str(target.arch))

    def pipelines(self, target: Target, options: CPUOptions) -> Mapping[str, Sequence[ModulePass]]:
        return _pipelines(options)

    def pass_objects(self, target: Target, options: CPUOptions) -> Sequence[object]:
        return ()

    def fingerprint(self, target: Target) -> str:
        return " ".join(resolve_cpu(str(target.arch)))

    def report(self, texts: Mapping[str, str | bytes], metadata: KernelMetadata) -> Report:
        from deuteron.backend.cpu.report import make_report  # deferred: brings xDSL

        return make_report(texts, metadata)

    def load(self, texts: Mapping[str, str | bytes], metadata: KernelMetadata) -> Callable[..., None]:
        from deuteron.backend.cpu.launch.driver import load_kernel  # deferred: brings llvmlite

        offer_to_torch()
        architecture = architecture_of(str(metadata.target.arch))
        if architecture != machine():
            raise LaunchError(f"'{metadata.name}' is compiled for {architecture}, and this machine is {machine()}")
        if metadata.uses_tiles and not may_use_tiles():
            raise LaunchError(
                f"'{metadata.name}' is compiled for '{metadata.target.arch}' with AMX, which this machine lacks or the "
                f"system refuses this process. Compile for 'cpu', which takes what may be used."
            )
        try:
            return load_kernel(texts["obj"], metadata)
        except InternalError as error:
            if refusal := _without_functions(texts, metadata):
                raise refusal from error
            raise
