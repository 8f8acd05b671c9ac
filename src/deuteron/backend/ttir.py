"""The first stage of every target: tile IR, from the frontend's module or from a text.

    "tt.func"() <{sym_name = "add", function_type = (!tt.ptr<f32>, i32) -> (), ...}> ({ ... }) : () -> ()

xDSL is imported when a function here is called, so that a kernel out of the cache is launched without it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from deuteron.backend.metadata import Apart, Param, TileStep, make_param
from deuteron.backend.stage import Made, Stage, Unit
from deuteron.errors import UsageError
from deuteron.settings import settings

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Attribute
    from xdsl.passes import ModulePass

    from deuteron.ir.tt.apart import Pair
    from deuteron.ir.tt.function import FuncOp


def optimise(module: ModuleOp, unit: Unit, passes: Sequence[ModulePass]) -> Made:
    """Run the tile passes, and find out which arguments the kernel writes."""
    from deuteron.analysis.aliasing.apart import mark_may_alias
    from deuteron.analysis.axis.ranges import mark_many_programs
    from deuteron.ir.tt.descriptor import mark_plain_loads
    from deuteron.ir.verifier import verify_ttir

    if _verifies_each(unit):
        verify_ttir(module, "the frontend")
    if unit.options.may_alias:
        mark_may_alias(kernel_of(module))
    if getattr(unit.options, "many_programs", False):
        mark_many_programs(kernel_of(module))
    if getattr(unit.options, "plain_loads", False):
        mark_plain_loads(kernel_of(module))
    made = run_pipeline(module, unit, passes)
    return Made(made.product, _arguments(kernel_of(module), unit))


def _arguments(kernel: FuncOp, unit: Unit) -> dict[str, Any]:
    """What the metadata says of the parameters whose memory the kernel may write; nothing where that is not known."""
    from deuteron.analysis.aliasing.updated_arguments import updated_arguments
    from deuteron.analysis.aliasing.written_arguments import written_arguments

    params = unit.metadata({}).runtime_params
    written = written_arguments(kernel)
    if not written.is_known or len(params) != len(kernel.args):
        return {}
    names = dict(zip(kernel.args, (param.name for param in params), strict=True))
    found = {"written": written.arguments, "updated": updated_arguments(kernel)}
    return {fact: tuple(name for arg, name in names.items() if arg in args) for fact, args in found.items()}


def apart_facts(pairs: Sequence[Pair], unit: Unit) -> dict[str, Any]:
    """What the metadata says of the pairs of arguments that the code takes to be apart."""
    names = [param.name for param in unit.metadata({}).runtime_params]
    return {"apart": tuple(_described(pair, names) for pair in pairs)}


def _described(pair: Pair, names: Sequence[str]) -> Apart:
    equal = tuple((names[a], names[b]) for a, b in pair.equal)
    tiles = tuple(
        tuple(TileStep(extent, factor, None if number < 0 else names[number]) for extent, factor, number in tile)
        for tile in pair.tiles
    )
    return Apart(names[pair.first], names[pair.second], pair.or_equal, equal, tiles)


def run_pipeline(module: ModuleOp, unit: Unit, passes: Sequence[ModulePass]) -> Made:
    """Run the passes of a stage but those that are disabled. What they make is verified, or what each of them makes."""
    from deuteron.ir.verifier import verify_ir
    from deuteron.passes import run_passes

    run_passes(module, _enabled(passes, unit), unit.dump, verify_ir, _verifies_each(unit))
    return Made(module)


def _verifies_each(unit: Unit) -> bool:
    """Whether what the frontend, and each pass, makes is verified, and not what a stage makes alone: where
    DEUTERON_VERIFY_EACH says so, or it is dumped.
    """
    return settings.verify_each or unit.dump is not None


def _enabled(passes: Sequence[ModulePass], unit: Unit) -> Sequence[ModulePass]:
    if not unit.disabled:
        return passes
    from deuteron.passes.by_name import without  # deferred: brings the passes of all targets

    return without(passes, unit.disabled)


def print_tile_ir(module: ModuleOp) -> str:
    from deuteron.ir.text import print_module

    return print_module(module)


def parse_tile_ir(text: str, file: str) -> ModuleOp:
    from deuteron.ir.text import parse_module

    return parse_module(text, file)


def parse_input(text: str, file: str) -> ModuleOp:
    """The module of a text that anybody may have written; raises IRError, with its place, where it is no tile IR."""
    from deuteron.ir.verifier import check_input, verify_ttir

    module = parse_tile_ir(text, file)
    check_input(module, file, verify_ttir)
    return module


def kernel_of(module: ModuleOp) -> FuncOp:
    """The module's only public function."""
    from deuteron.ir.tt.function import functions_in

    kernels = [func for func in functions_in(module) if not func.is_private]
    if len(kernels) != 1:
        names = ", ".join(op.sym_name.data for op in kernels) or "none"
        raise UsageError(f"a module of tile IR needs exactly one public function, the kernel, got {names}")
    return kernels[0]


def describe_tile_ir(module: ModuleOp) -> tuple[str, tuple[Param, ...]]:
    """The name and the parameters of the module's kernel, which a launch can pass."""
    from deuteron.ir.kernel_parameters import check_parameters

    kernel = kernel_of(module)
    check_parameters(kernel)
    params = (
        make_param(value.name_hint or f"arg{index}", signature_type(value.type), kernel.arg_divisibility(index))
        for index, value in enumerate(kernel.args)
    )
    signless = (replace(param, is_signless=param.type.lstrip("*").startswith("i")) for param in params)
    return kernel.sym_name.data, tuple(signless)


def signature_type(type: Attribute) -> str:
    """The type of an argument in a signature: `!tt.ptr<f32>` is `*fp32`, `i32` is `i32`."""
    from deuteron.ir import types

    if types.is_pointer(type):
        return "*" + signature_type(types.pointee_of(type))
    declared = types.FLOAT_TYPES.get(type)
    return declared.signature if declared else str(type)


def stage(run: Callable[[ModuleOp, Unit], Made]) -> Stage:
    """The stage of a target, which runs its passes by `optimise`."""
    return Stage("ttir", None, run, text=print_tile_ir, parse=parse_input, describe=describe_tile_ir)
