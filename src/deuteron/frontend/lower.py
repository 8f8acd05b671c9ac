"""A kernel as tile IR: its parameters become arguments or compile-time values, then its body is compiled.

    add(x_ptr, n, BLOCK: tl.constexpr)
    signature {"x_ptr": "*fp32", "n": "i32", "BLOCK": "constexpr"}, constexprs {"BLOCK": 64}

    tt.func @add(%x_ptr: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) { ... }      BLOCK is 64 in the body

The module is verified by whoever runs the next stage.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Attribute, Block

from deuteron.errors import CompilationError, DeuteronError, InternalError, UsageError, suggest
from deuteron.frontend import (
    assignments,
    attributes,
    branches,
    calls,
    comprehensions,
    expressions,
    inline,
    operators,
    statements,
)
from deuteron.frontend.completion import EndOfFunction, ended_by
from deuteron.frontend.context import PLAIN, Asked, Context, Frame, Syntax
from deuteron.frontend.scope import Scope
from deuteron.frontend.semantics.constant import number
from deuteron.frontend.semantics.tensor_descriptor import PADDINGS, build_descriptor
from deuteron.frontend.semantics.types import ir_type
from deuteron.frontend.values import Tensor, Value, give_name
from deuteron.ir.builder import Builder
from deuteron.ir.location import to_attribute
from deuteron.ir.remarks import Kind, remark_place
from deuteron.ir.tt.function import FuncOp, ReturnOp, divisibility
from deuteron.ir.types import i32
from deuteron.language.constant import constexpr, rebuild, unwrap
from deuteron.language.functions.function import Function, Parameter, variadic_kernel
from deuteron.language.functions.source_functions import functions_in
from deuteron.language.signature import KernelArgument, descriptor_arguments, leaves, parse_type, part_names
from deuteron.language.types import dtype, int64, tensor_descriptor_type
from deuteron.options import Target

SYNTAX = Syntax(
    expressions=expressions.EXPRESSIONS
    | operators.EXPRESSIONS
    | calls.EXPRESSIONS
    | attributes.EXPRESSIONS
    | comprehensions.EXPRESSIONS
    | branches.EXPRESSIONS
    | assignments.EXPRESSIONS,
    statements=statements.STATEMENTS,
    execute=statements.execute,
    inline=inline.inline,
    apply=calls.apply,
)

Signature = Mapping[str, Any]
Attrs = Mapping[str, Sequence[tuple[str, int]]]
ArgumentType = dtype | constexpr | tuple
"""The type of a parameter: of a tuple those of its items, of which some are known values."""
ArgumentTypes = Mapping[str, ArgumentType]


def lower_function(
    fn: Function,
    signature: Signature,
    constexprs: Mapping[str, object],
    attrs: Attrs | None = None,
    target: Target | None = None,
    name: str | None = None,
    asked: Asked = PLAIN,
) -> ModuleOp:
    """The tile IR of a kernel.

    :param signature: the type of each parameter as text, or "constexpr"; of a tuple a tuple of these.
    :param constexprs: values of parameters that are known; one that is given here is no argument of the kernel.
    :param attrs: promises on arguments, by name: `{"x_ptr": (("tt.divisibility", 16),)}`.

    :param target: what it is compiled for, of which it may ask; None where nothing is known.
    :param name: what it is called; default: the function's name.
    :param asked: options that the source may depend on.

    What a parameter that is a tuple holds has names of its own, as in `language.signature`.

    Errors: UsageError for a signature that does not fit the function, CompilationError for what is wrong in its source.
    """
    _check_names(fn, signature, constexprs)
    constants = _compile_time_parameters(fn, signature, constexprs)
    types = {
        param.name: _type_of(fn, param, signature, constexprs) for param in fn.params if param.name not in constants
    }
    location = to_attribute(fn.location(fn.tree))
    parts = {name: _kernel_arguments(name, type, attrs or {}) for name, type in types.items()}
    arguments = [argument for part in parts.values() for argument in part]
    _check_distinct(fn, [part for name, type in signature.items() for part, _ in leaves(name, type)])
    _check_distinct(fn, [*constants, *(argument.name for argument in arguments)])
    input_types = [ir_type(argument.type) for argument in arguments]
    func = FuncOp(name or fn.__name__, input_types, (), [_arg_attrs(argument, attrs or {}) for argument in arguments])
    func.location = location
    frame = Frame(Scope(fn, dict(constants)), fn.tree)
    given = {function.fn: function for value in constexprs.values() for function in functions_in(value)}
    ctx = Context(Builder.at_end(func.body.block, func.location), SYNTAX, frame, target, asked, given)
    _compile_body(ctx, fn, func.body.block, types)
    module = ModuleOp([func])
    module.location = location
    for place, said in ctx.old_spellings:
        remark_place(module, place, Kind.OLD_SPELLING, said)
    return module


def _check_names(fn: Function, signature: Signature, constexprs: Mapping[str, object]) -> None:
    for param in fn.params:
        if param.is_variadic:
            raise UsageError(variadic_kernel(fn, param), fn.location(fn.tree))
        if param.is_constexpr and param.do_not_specialize:
            message = (
                f"'{param.name}' is a constexpr, which a kernel is compiled for: take it out of do_not_specialize."
            )
            raise CompilationError(message, fn.location(fn.tree))
    parts = [part for name, type in signature.items() for part, _ in leaves(name, type)]
    for what, names, known_names in (("signature", signature, ()), ("constexprs", constexprs, parts)):
        for name in names:
            if name not in fn.arg_names and name not in known_names:
                known = ", ".join(fn.arg_names)
                raise UsageError(
                    f"The {what} of '{fn.__name__}' names '{name}', but its parameters are ({known})."
                    f"{suggest(str(name), fn.arg_names)}"
                )


def _compile_time_parameters(fn: Function, signature: Signature, constexprs: Mapping[str, object]) -> dict[str, Value]:
    values = {}
    for param in fn.params:
        if param.name in constexprs:
            values[param.name] = unwrap(constexprs[param.name])
        elif param.is_constexpr or signature.get(param.name) == "constexpr":
            if not param.has_default:
                raise UsageError(f"The constexpr parameter '{param.name}' of '{fn.__name__}' has no value.")
            values[param.name] = unwrap(param.default)
    return values


def _type_of(fn: Function, param: Parameter, signature: Signature, constexprs: Mapping[str, object]) -> ArgumentType:
    if param.name not in signature:
        raise UsageError(f"The signature of '{fn.__name__}' has no type for its parameter '{param.name}'.")
    try:
        return _parsed(param.name, signature[param.name], constexprs)
    except UsageError as error:
        raise UsageError(f"The signature of '{fn.__name__}', parameter '{param.name}': {error.message}") from None


def _parsed(name: str, type: Any, constexprs: Mapping[str, object]) -> ArgumentType:
    if isinstance(type, tuple):
        pairs = zip(part_names(name, type), type, strict=True)
        return rebuild(type, [_parsed(part, item, constexprs) for part, item in pairs])
    if type != "constexpr":
        return parse_type(type)
    if name not in constexprs:
        raise UsageError(f"'{name}' has no value.")
    return constexpr(unwrap(constexprs[name]))


def _kernel_arguments(name: str, type: ArgumentType, attrs: Attrs) -> list[KernelArgument]:
    """What a parameter is an argument, or arguments, of."""
    if isinstance(type, constexpr):
        return []
    if isinstance(type, tuple):
        return [
            argument
            for part, item in zip(part_names(name, type), type, strict=True)
            for argument in _kernel_arguments(part, item, attrs)
        ]
    if not isinstance(type, tensor_descriptor_type):
        return [KernelArgument(name, type)]
    return descriptor_arguments(name, type, dict(attrs.get(name, ())).get("tt.divisibility", 1))


def _check_distinct(fn: Function, names: Sequence[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise UsageError(
                f"'{fn.__name__}' has a parameter '{name}', which a part of a tuple or a descriptor is called too. "
                "Rename it."
            )


def _arg_attrs(argument: KernelArgument, attrs: Attrs) -> dict[str, Attribute]:
    if argument.divisibility > 1:
        return divisibility(argument.divisibility)
    return {key: IntegerAttr(value, i32) for key, value in attrs.get(argument.name, ())}


def _compile_body(ctx: Context, fn: Function, block: Block, types: ArgumentTypes) -> None:
    for name, value in _arguments(ctx, fn, block, types).items():
        ctx.scope.assign(name, value)
    try:
        ctx.execute(ended_by(EndOfFunction(), fn.tree.body))
    except DeuteronError:
        raise
    except Exception as error:
        message = (
            f"compiling '{fn.__name__}' failed with {type(error).__name__}: {error}. This is a defect of Deuteron."
        )
        raise InternalError(message, ctx.frame.location(), ctx.call_chain) from error
    ctx.stamp()
    ctx.builder.insert(ReturnOp())


def _arguments(ctx: Context, fn: Function, block: Block, types: ArgumentTypes) -> dict[str, Value]:
    """The values of the parameters; descriptors are made of their arguments first."""
    nodes = {node.arg: node for node in ast.walk(fn.tree.args) if isinstance(node, ast.arg)}
    values, args = {}, iter(block.args)
    for name, type in types.items():
        tensors = []
        for argument in _kernel_arguments(name, type, {}):
            arg = next(args)
            give_name(arg, argument.name)
            arg.location = to_attribute(fn.location(nodes[name]), argument.name)
            tensors.append(Tensor(arg, argument.type))
        with ctx.at(nodes[name]):
            values[name] = _value_of_arguments(ctx, type, iter(tensors))
    return values


def _value_of_arguments(ctx: Context, type: ArgumentType, tensors: Iterator[Tensor]) -> Value:
    if isinstance(type, constexpr):
        return type.value
    if isinstance(type, tuple):
        return rebuild(type, [_value_of_arguments(ctx, item, tensors) for item in type])
    if not isinstance(type, tensor_descriptor_type):
        return next(tensors)
    ctx.stamp()
    rank = len(type.block_type.shape)
    base, sizes = next(tensors), [next(tensors) for _ in range(rank)]
    strides = [*(next(tensors) for _ in range(rank - 1)), number(ctx, 1, int64)]
    return build_descriptor(ctx, base, sizes, strides, type.block_type, PADDINGS[type.padding])
