"""ttgir to LLVM IR: one kernel, a function that all threads of a program run.

    lower_module(module, "add", config, options)     LoweredKernel(llir, shared_bytes, extra_warps)

    define ptx_kernel void @add(ptr addrspace(1) align 16 %x, i32 %n) ... "nvvm.reqntid"="128" {

After the parameters of the tt.func come the tensor maps of TMA copies, each as 128 bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from deuteron.analysis.aliasing.apart import pairs_apart
from deuteron.analysis.axis.axis_analysis import AxisInfoAnalysis
from deuteron.analysis.axis.ranges import MOST_PROGRAMS, noted_programs
from deuteron.analysis.repeated_reads import reads_rows_again
from deuteron.backend.cuda.context import CUDAContext
from deuteron.backend.cuda.instructions.isa import PTX
from deuteron.backend.cuda.launch.tensor_maps import tensor_maps_of
from deuteron.backend.cuda.rules.table import RULES
from deuteron.backend.cuda.rules.warp_specialize import registers_at_launch
from deuteron.backend.gpu.lowering import check_config, kernel_of, lower_body, parameters_of, shared_bytes_of
from deuteron.backend.gpu.threads import Threads
from deuteron.backend.llvm.module import Module
from deuteron.backend.tensor_map import ALIGNMENT, SIZE, TensorMap
from deuteron.errors import CompilationError
from deuteron.ir.location import from_attribute
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.apart import Pair
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.ttg.warp_specialize import WarpSpecializeOp
from deuteron.machine.gpu import GPU, GPUConfig
from deuteron.options import CUDAOptions
from deuteron.passes.gpu.rings.buffered_loads import has_dots

_MAP_TYPE = f'ptr byval([{SIZE} x i8]) align {ALIGNMENT} "nvvm.grid_constant"'


@dataclass(frozen=True)
class LoweredKernel:
    """LLVM IR, how much shared memory a launch has to give, how many warps besides those that were asked for, which
    tensor maps, which arguments are taken to be apart, and how many programs a grid is taken to have at most along x.
    """

    llir: str
    shared_bytes: int
    extra_warps: int
    tensor_maps: tuple[TensorMap, ...] = ()
    apart: tuple[Pair, ...] = ()
    most_programs: int | None = None


def lower_module(
    module: ModuleOp, symbol: str, config: GPUConfig, options: CUDAOptions, path_of: Callable[[str], str] = str
) -> LoweredKernel:
    """Lower the kernel of a module of ttgir; raises OutOfResources where the target lacks shared memory."""
    check_config(module, config)
    func, shared = kernel_of(module), shared_bytes_of(module, config.machine)
    specialized = nested_ops(func, WarpSpecializeOp)
    extra_warps = sum(sum(op.launched_warps) for op in specialized)
    num_warps = module.attributes["ttg.num-warps"].value.data + extra_warps
    fast_math = "contract" if options.enable_fp_fusion else ""
    llvm = Module(symbol, fast_math, "DebugDirectivesOnly", path_of)
    map_of = tensor_maps_of(func)
    maps = tuple(dict.fromkeys(map_of.values()))
    if maps and options.plain_arguments:
        message = "the ttgir copies by TMA, whose tensor maps a launch with plain_arguments=True does not pass"
        raise CompilationError(message, *from_attribute(next(iter(map_of)).location))
    parameters = [*parameters_of(func), *((_MAP_TYPE, f"map{index}") for index in range(len(maps)))]
    isa = PTX(config.machine, config.num_ctas, exponentials_flush=options.enable_reflect_ftz)
    attributes = _attributes(func, config.machine, num_warps, specialized, options)
    b = llvm.function(symbol, "void", parameters, isa.kernel_convention, attributes)
    ctx = CUDAContext(
        module=llvm,
        b=b,
        isa=isa,
        config=config,
        rules=RULES,
        info=AxisInfoAnalysis(func),
        threads=Threads(b, isa, config.machine.warp_size, num_warps),
        options=options,
        tensor_maps={op: b.parameters[len(func.args) + maps.index(found)] for op, found in map_of.items()},
    )
    lower_body(ctx, func)
    return LoweredKernel(llvm.text(), shared, extra_warps, maps, tuple(pairs_apart(func)), _most_programs(func))


def _most_programs(func: FuncOp) -> int | None:
    noted = noted_programs(func)
    return noted if noted < MOST_PROGRAMS else None


def _attributes(
    func: FuncOp, machine: GPU, num_warps: int, specialized: Sequence[WarpSpecializeOp], options: CUDAOptions
) -> str:
    """Where warps give registers to others, ptxas has to know how many they begin with (C7508). Where programs read
    their rows again and again, one on a multiprocessor is enough: those of more would not stay in the L2.
    """
    gives_registers = any(op.registers for op in specialized)
    limit = options.maxnreg and machine.registers.allowed(options.maxnreg)
    limit = registers_at_launch(machine, num_warps, limit) if gives_registers else limit
    maximum = f' "nvvm.maxnreg"="{limit}"' if limit else ""
    is_enough = not limit and not has_dots(func) and reads_rows_again(func)
    enough = ' "nvvm.minctasm"="1"' if is_enough else ""
    cluster = f' "nvvm.cluster_dim"="{options.num_ctas},1,1"' if options.num_ctas > 1 else ""
    return f'nounwind null_pointer_is_valid "nvvm.reqntid"="{machine.warp_size * num_warps}"{maximum}{enough}{cluster}'
