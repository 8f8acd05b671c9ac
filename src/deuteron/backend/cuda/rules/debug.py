"""tt.print and tt.assert.

Each element is printed by one thread, by vprintf, in no particular order. An assertion is compiled with the option
`debug` only:

    __assertfail("too large", "k.py", 7, "kernel", 1)       k.py:7: kernel: block: [0,0,0], thread: [2,0,0] Assertion
                                                            `too large` failed.       by the driver, on standard error

After it the context is of no more use: every call gives CUDA_ERROR_ASSERT.
"""

from __future__ import annotations

from xdsl.ir import Attribute, Operation

from deuteron.backend.cuda.context import CUDAContext
from deuteron.backend.gpu.context import Rule
from deuteron.backend.gpu.elements import to_bits
from deuteron.backend.gpu.fragment import Fragment, Operand, positions, registers_of
from deuteron.backend.gpu.threads import owned_registers
from deuteron.backend.llvm.types import Value, byte_width, const
from deuteron.ir.location import from_attribute, import_path
from deuteron.ir.types import byte_width_of, element_type_of, f32, is_float, is_fp8, is_pointer


def print_(ctx: CUDAContext, op: Operation, *operands: Operand) -> None:
    pids = [ctx.isa.program_id(ctx.b, axis) for axis in range(3)]
    if not operands:
        _print_line(ctx, f"{op.line_without_values}\n", pids, ctx.threads.owner(None))
    signed = op.is_signed.get_values()
    for number, operand in enumerate(operands):
        layout = operand.layout if isinstance(operand, Fragment) else None
        places = positions(layout) if layout else [()]
        threads = ctx.threads.coordinates(layout) if layout else []
        for register in owned_registers(layout) if layout else [0]:
            index = [thread.at(ctx.b, p) for thread, p in zip(threads, places[register], strict=True)]
            type, value = op.operands[number].type, registers_of(operand)[register]
            code, shown = _shown(ctx, value, type, bool(signed[number]), bool(op.hex.value.data))
            line = f"{op.beginning(number)}{code}\n"
            _print_line(ctx, line, [*pids, *index, shown], ctx.threads.owner(layout))


def _shown(ctx: CUDAContext, value: Value, type: Attribute, signed: bool, as_hex: bool) -> tuple[str, Value]:
    """The conversion specifier, and the value as variadic functions take it."""
    b = ctx.b
    if as_hex:
        bits = to_bits(b, value, type)
        return f"0x%0{2 * byte_width_of(type)}llx", b.zext(bits, "i64")
    if is_float(type):
        element = element_type_of(type)
        if is_fp8(element):
            value = ctx.isa.conversion(ctx.machine, element, f32)(b, value)[0]
        return "%f", b.fpext(value, "double")
    if is_pointer(type):
        return "%llu", b.ptrtoint(value)
    extended = b.sext(value, "i64") if signed else b.zext(value, "i64")
    return ("%lld" if signed else "%llu"), extended


def _print_line(ctx: CUDAContext, line: str, values: list[Value], guard: Value | None) -> None:
    """vprintf takes its arguments in memory, each aligned to its size.

    They are stored before the branch: LLVM would move a dot that only the branch uses into it, where mma.sync
    lacks the other threads.
    """
    b, offsets, size = ctx.b, [], 0
    for value in values:
        width = byte_width(value.type)
        offsets.append(-(-size // width) * width)
        size = offsets[-1] + width
    with ctx.threads.in_entry():
        buffer = b.alloca("i8", max(size, 8), align=8)
    for value, offset in zip(values, offsets, strict=True):
        b.store(value, b.gep("i8", buffer, const("i32", offset)))
    with b.if_(guard if guard is not None else const("i1", True), "print"):
        b.call("i32", "vprintf", ctx.module.string(line), buffer)


def assert_(ctx: CUDAContext, op: Operation, condition: Operand) -> None:
    if not op.counts(ctx.options.debug):
        return
    b = ctx.b
    holds = registers_of(condition)[0]
    for value in registers_of(condition)[1:]:
        holds = b.and_(holds, value)
    place, _ = from_attribute(op.location)
    file, line = (import_path(place.file), place.line) if place else ("", 0)
    with b.if_(b.xor(holds, const("i1", True)), "fails"):
        message, file, kernel = map(ctx.module.string, (op.message.data, file, ctx.module.name))
        b.call("void", "__assertfail", message, file, const("i32", line), kernel, const("i64", 1))


RULES: dict[str, Rule] = {"tt.print": print_, "tt.assert": assert_}
