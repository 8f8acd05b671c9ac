"""From ttgir to a function of LLVM IR that all threads of a program run, as far as GPUs have it in common.

    check_config(module, config)
    func = kernel_of(module)
    b = llvm.function("add", "void", parameters_of(func), isa.kernel_convention, attributes)
    lower_body(ctx, func)

    entry:      what depends on the thread: its lane, its warp, coordinates
    body:       the ops in order

Parameters are those of the tt.func, in order: i1 as i8; f16 and bf16 as float, as on the CPU.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute

from deuteron.backend.gpu.context import Context
from deuteron.backend.gpu.elements import register_type
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, const
from deuteron.errors import CompilationError, OutOfResources, UsageError
from deuteron.ir.tt.function import FuncOp, functions_in
from deuteron.ir.types import element_type_of, i1, is_pointer
from deuteron.ir.verifier import warp_size_of
from deuteron.machine.gpu import GPU, GPUConfig
from deuteron.passes.gpu.memory.allocate_shared import total_of


def kernel_of(module: ModuleOp) -> FuncOp:
    """The function of a module of ttgir."""
    functions = functions_in(module)
    if len(functions) != 1:
        names = ", ".join(function.sym_name.data for function in functions) or "none"
        raise CompilationError(f"ttgir holds one function, the kernel, got {names}; calls have been inlined by then.")
    return functions[0]


def check_config(module: ModuleOp, config: GPUConfig) -> None:
    """Raise UsageError where ttgir, which may come as text, is not for this configuration: a launch would be wrong."""
    made = {name: module.attributes.get(f"ttg.{name.replace('_', '-')}") for name in ("num_warps", "num_ctas")}
    for name, attribute in made.items():
        number, asked = attribute.value.data if attribute is not None else 1, getattr(config, name)
        if number != asked:
            raise UsageError(f"the ttgir is for {name}={number}, and {name}={asked} was asked for")
    lanes, machine, target = warp_size_of(module), config.machine, module.attributes.get("ttg.target")
    if lanes != machine.warp_size:
        raise UsageError(f"the ttgir is for warps of {lanes} threads, {machine.name} has warps of {machine.warp_size}")
    if target is not None and target.data != machine.name:
        # which may have other instructions, registers and bytes of shared memory
        raise UsageError(f"the ttgir is for {target.data}, and {machine.name} was asked for")


def shared_bytes_of(module: ModuleOp, machine: GPU) -> int:
    """What a kernel takes of shared memory; raises OutOfResources where the machine has less."""
    shared = total_of(module)
    if shared > machine.shared.max_bytes:
        raise OutOfResources(shared, machine.shared.max_bytes, "shared memory")
    return shared


def parameters_of(func: FuncOp) -> list[tuple[str, str]]:
    """The LLVM type, with its attributes, and the name of each parameter."""
    names = [argument.name_hint or f"arg{index}" for index, argument in enumerate(func.args)]
    return [
        (_parameter_type(argument.type, func.arg_divisibility(index)), names[index])
        for index, argument in enumerate(func.args)
    ]


def lower_body(ctx: Context, func: FuncOp) -> None:
    """Lower the ops of a function whose parameters are the first ones of the builder's."""
    b = ctx.b
    body = b.block("body")
    b.position(body)
    for argument, value in zip(func.args, b.parameters, strict=False):
        ctx.values[argument] = _argument(b, value, argument.type)
    ctx.lower_block(func.body.block)
    b.ret()
    b.position(b.entry_block)
    b.br(body)


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
