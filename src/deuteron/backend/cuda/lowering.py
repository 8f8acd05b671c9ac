"""ttgir to LLVM IR: one kernel, a function that all threads of a program run.

    lower_module(module, "add", machine, options)     LoweredKernel(llir, shared_bytes, extra_warps)

    define ptx_kernel void @add(ptr addrspace(1) align 16 %x, i32 %n) ... "nvvm.reqntid"="128" {
    entry:      what depends on the thread: its lane, its warp, coordinates
    body:       the ops in order

Parameters are those of the tt.func, in order: i1 as i8; f16 and bf16 as float, as on the CPU. Behind them come the
tensor maps of TMA copies, each as 128 bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute

from deuteron.analysis.axis_analysis import AxisInfoAnalysis
from deuteron.backend.cuda.invariant_loads import invariant_loads
from deuteron.backend.cuda.rules.table import RULES
from deuteron.backend.cuda.rules.warp_specialize import registers_at_launch
from deuteron.backend.cuda.tensor_maps import tensor_maps_of
from deuteron.backend.gpu.context import Context
from deuteron.backend.gpu.elements import register_type
from deuteron.backend.gpu.threads import Threads
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.module import Module
from deuteron.backend.llvm.types import Value, const
from deuteron.backend.tensor_map import ALIGNMENT, SIZE, TensorMap
from deuteron.errors import CompilationError, OutOfResources
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.ttg.warp_specialize import WarpSpecializeOp
from deuteron.ir.types import element_type_of, i1, is_pointer
from deuteron.machine.gpu import GPU
from deuteron.options import CUDAOptions
from deuteron.passes.gpu.memory.allocate_shared import total_of

_MAP_TYPE = f'ptr byval([{SIZE} x i8]) align {ALIGNMENT} "nvvm.grid_constant"'


@dataclass(frozen=True)
class LoweredKernel:
    """LLVM IR, how much shared memory a launch has to give, how many warps besides those that were asked for, and which
    tensor maps.
    """

    llir: str
    shared_bytes: int
    extra_warps: int
    tensor_maps: tuple[TensorMap, ...] = ()


def lower_module(module: ModuleOp, symbol: str, machine: GPU, options: CUDAOptions) -> LoweredKernel:
    """Lower the kernel of a module of ttgir; raises OutOfResources where the target lacks shared memory."""
    func, shared = _kernel(module), total_of(module)
    if shared > machine.shared.max_bytes:
        raise OutOfResources(shared, machine.shared.max_bytes, "shared memory")
    num_warps = module.attributes["ttg.num-warps"].value.data
    specialized = [op for op in func.walk() if isinstance(op, WarpSpecializeOp)]
    extra_warps = sum(sum(op.launched_warps) for op in specialized)
    gives_registers = any(op.registers for op in specialized)
    fast_math = "contract" if options.enable_fp_fusion else ""
    llvm = Module(symbol, fast_math=fast_math, debug_kind="DebugDirectivesOnly")
    map_of = tensor_maps_of(func)
    maps = tuple(dict.fromkeys(map_of.values()))
    parameters = [*_parameters(func), *((_MAP_TYPE, f"map{index}") for index in range(len(maps)))]
    b = llvm.function(
        symbol, "void", parameters, "kernel", _attributes(machine, num_warps + extra_warps, gives_registers, options)
    )
    facts = AxisInfoAnalysis(func), invariant_loads(func)
    ctx = Context(llvm, b, machine, options, RULES, *facts, Threads(b, num_warps + extra_warps))
    body = b.block("body")
    b.position(body)
    for argument, value in zip(func.args, b.parameters, strict=False):
        ctx.values[argument] = _argument(b, value, argument.type)
    ctx.tensor_maps = {op: b.parameters[len(func.args) + maps.index(found)] for op, found in map_of.items()}
    ctx.lower_block(func.body.block)
    b.ret()
    b.position(b.entry_block)
    b.br(body)
    return LoweredKernel(llvm.text(), shared, extra_warps, maps)


def _kernel(module: ModuleOp) -> FuncOp:
    functions = [op for op in module.ops if isinstance(op, FuncOp)]
    if len(functions) != 1:
        names = ", ".join(function.sym_name.data for function in functions) or "none"
        raise CompilationError(f"ttgir holds one function, the kernel, got {names}; calls have been inlined by then.")
    return functions[0]


def _parameters(func: FuncOp) -> list[tuple[str, str]]:
    names = [argument.name_hint or f"arg{index}" for index, argument in enumerate(func.args)]
    return [
        (_parameter_type(argument.type, func.arg_divisibility(index)), names[index])
        for index, argument in enumerate(func.args)
    ]


def _parameter_type(type: Attribute, divisibility: int) -> str:
    if is_pointer(type):
        return f"{register_type(type)} align 16" if divisibility % 16 == 0 else register_type(type)
    held = register_type(type)
    return {"i1": "i8", "half": "float", "bfloat": "float"}.get(held, held)


def _argument(b: Builder, value: Value, type: Attribute) -> Value:
    if element_type_of(type) == i1:
        return b.icmp("ne", value, const("i8", 0))
    held = register_type(type)
    return b.fptrunc(value, held) if held in ("half", "bfloat") else value


def _attributes(machine: GPU, num_warps: int, gives_registers: bool, options: CUDAOptions) -> str:
    """Where warps give registers to others, ptxas has to know how many they begin with (C7508)."""
    limit = registers_at_launch(machine, num_warps, options.maxnreg) if gives_registers else options.maxnreg
    maximum = f' "nvvm.maxnreg"="{limit}"' if limit else ""
    cluster = f' "nvvm.cluster_dim"="{options.num_ctas},1,1"' if options.num_ctas > 1 else ""
    return f'nounwind "nvvm.reqntid"="{machine.warp_size * num_warps}"{maximum}{cluster}'
