"""The first stages of every GPU: tile IR, and ttgir, which has layouts.

    ttir -> ttgir -> ...

`config_of(target, options)` is what a target's passes get. Passes and verifiers are imported when a stage runs: they
bring xDSL, without which a kernel out of the cache is launched.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from deuteron.backend import ttir
from deuteron.backend.stage import Made, Stage, Unit
from deuteron.machine.gpu import GPUConfig
from deuteron.options import Target

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.passes import ModulePass

ConfigOf = Callable[[Target, Any], GPUConfig]


def gpu_pipelines(config: GPUConfig, debug: bool) -> dict[str, list[ModulePass]]:
    """The passes, by the name of the pipeline. `debug`: whether assertions count."""
    from deuteron.passes.gpu import gpu_passes, memory_passes
    from deuteron.passes.tile import tile_passes

    return {"tile": tile_passes(config.tile, debug), "gpu": gpu_passes(config), "memory": memory_passes()}


def gpu_stages(config_of: ConfigOf) -> tuple[Stage, Stage]:
    """The stages `ttir` and `ttgir`."""

    def optimise_tile_ir(module: ModuleOp, unit: Unit) -> Made:
        pipelines = gpu_pipelines(config_of(unit.target, unit.options), unit.options.debug)
        return ttir.optimise(module, unit, pipelines["tile"])

    def assign_layouts(module: ModuleOp, unit: Unit) -> Made:
        from deuteron.passes.gpu.fit_shared import with_room

        def made_for(config: GPUConfig, module: ModuleOp) -> ModuleOp:
            return ttir.run_pipeline(module, unit, gpu_pipelines(config, unit.options.debug)["gpu"]).product

        return Made(with_room(module, config_of(unit.target, unit.options), made_for))

    layouts = Stage(
        "ttgir", "ttir", assign_layouts, text=ttir.print_tile_ir, parse=_parse_ttgir, describe=ttir.describe_tile_ir
    )
    return ttir.stage(optimise_tile_ir), layouts


def _parse_ttgir(text: str, file: str) -> ModuleOp:
    """Layouts are taken as they are. Places in shared memory are made anew, and barriers where the text has none: what
    a text says of both would have to be checked by the passes that make them, which change nothing that they made.
    """
    from deuteron.analysis.shared_memory.copy_waits import check_copies
    from deuteron.analysis.shared_memory.dot_waits import check_waits
    from deuteron.ir.verifier import check_input, verify_ttgir
    from deuteron.passes import run_passes
    from deuteron.passes.gpu import memory_passes
    from deuteron.passes.gpu.warp_groups.fence_wgmma import check_fences

    module = ttir.parse_tile_ir(text, file)
    check_input(module, file, verify_ttgir)
    check_waits(module)
    check_copies(module)
    check_fences(module)
    run_passes(module, memory_passes(), verify=verify_ttgir)
    return module
