"""From tile IR to LLVM IR: the entry of this backend, and the kernel's interface.

    lower_module(module, "add_kernel", cpu, features, options)      LoweredKernel(llir, scratch_bytes)

    define hidden void @add_kernel(ptr %args, ptr %grid, i64 %begin, i64 %end, ptr %scratch)
        loads the arguments, then calls for every program
    define internal i1 @add_kernel.program(ptr %x, i32 %n, ..., i32 %pid0, ..., ptr noalias %scratch) alwaysinline
        whether it was left before its end, since the launch is to end

`args[i]` points to the value of the i-th parameter; `begin` and `end` are linear indices of programs, x fastest or as
`plan/programs/grid_order.py` says. Where
programs may wait for one another (`analysis/waiting_loops.py`) or assert, one more entry of `args` points to what they
and the launch tell each other (`control.py`), or is null. Of an interruptible kernel the last entry is for its loops,
and that over programs, which look now and then whether the launch is to end (`countdown.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from deuteron.analysis.aliasing.apart import pairs_apart
from deuteron.analysis.waiting_loops import waiting_loops
from deuteron.backend.assertion import Assertion
from deuteron.backend.checked_access import CheckedAccess
from deuteron.backend.cpu.context import Context, Products, Stops
from deuteron.backend.cpu.countdown import Countdown, begin_countdown, close_strips, open_strips
from deuteron.backend.cpu.emitter import Emitter
from deuteron.backend.cpu.floating_environment import enter_environment, leave_environment
from deuteron.backend.cpu.launch.control import SIZE as CONTROL_SIZE
from deuteron.backend.cpu.memory.elements import register_type
from deuteron.backend.cpu.memory.formats import rounded
from deuteron.backend.cpu.memory.streaming import fence_streams, launch_streams
from deuteron.backend.cpu.plan.needed_scans import find_needed_scans
from deuteron.backend.cpu.plan.prepare import kernel_of
from deuteron.backend.cpu.plan.products.begin_sums import begin_sums
from deuteron.backend.cpu.plan.products.direct import drop_copies, read_directly
from deuteron.backend.cpu.plan.products.few_rows import find_few_rows
from deuteron.backend.cpu.plan.products.marks import product_of
from deuteron.backend.cpu.plan.products.needed_depth import find_needed_depth
from deuteron.backend.cpu.plan.products.needed_sums import find_needed_sums
from deuteron.backend.cpu.plan.products.pack_in_place import pack_in_place
from deuteron.backend.cpu.plan.products.reuse import reuse_operands
from deuteron.backend.cpu.plan.products.single_rows import find_single_rows
from deuteron.backend.cpu.plan.programs.grid_order import FROM_X, Order, grid_order
from deuteron.backend.cpu.plan.programs.idle_programs import EVERY_PROGRAM, Stride, busy_programs
from deuteron.backend.cpu.plan.programs.streams import Streams, find_streams
from deuteron.backend.cpu.plan.programs.work import work_of
from deuteron.backend.cpu.plan.schedule import Plan, Scheduler
from deuteron.backend.cpu.plan.slots import Reuse
from deuteron.backend.cpu.plan.tiles.buffers import assign_buffers
from deuteron.backend.cpu.plan.tiles.carry_in_registers import carry_in_registers
from deuteron.backend.cpu.plan.tiles.orders import choose_orders
from deuteron.backend.cpu.plan.tiles.private import release_private_tiles
from deuteron.backend.cpu.products.amx import emit_configuration, emit_release
from deuteron.backend.cpu.products.products import TileProduct
from deuteron.backend.cpu.products.shared_products import repeated_products
from deuteron.backend.cpu.program_loop import Programs
from deuteron.backend.cpu.rules.bounds import describe_access, pointers_of, prepare_checks
from deuteron.backend.cpu.rules.control_flow import emit_region
from deuteron.backend.cpu.rules.debug import describe_assertion
from deuteron.backend.cpu.rules.reused import begin_launch_words, new_words, table_bytes
from deuteron.backend.cpu.rules.stopping import stop_if_told
from deuteron.backend.cpu.rules.table import RULES
from deuteron.backend.cpu.target import cpu_target
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.module import Module
from deuteron.backend.llvm.pieces import cut_into_pieces
from deuteron.backend.llvm.targets import architecture_of
from deuteron.backend.llvm.types import Value, const, zero
from deuteron.backend.spans import EVERYTHING
from deuteron.ir.location import from_attribute, user_location
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.apart import Pair
from deuteron.ir.tt.atomic import AtomicOp
from deuteron.ir.tt.debug import AssertOp
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.types import i1, is_narrow_float
from deuteron.machine.cpu import CPU
from deuteron.options import CPUOptions
from deuteron.settings import BOUNDS

# Loops stay loops: a call of memset in their place spills all vectors that the code around it holds. Null and an offset
# may be any address, of which LLVM takes accesses for impossible else.
_ATTRIBUTES = 'nounwind null_pointer_is_valid "no-builtins"'

_GRID_NAMES = ("pid0", "pid1", "pid2", "grid0", "grid1", "grid2")


@dataclass(frozen=True)
class LoweredKernel:
    """The LLVM IR of a kernel, how much scratch memory a thread needs to run it, where programs wait (or 0), whether it
    uses tiles of AMX, or atomics, the assertions and checked accesses that it tells of, by number, and which arguments
    are taken to be apart.
    """

    llir: str
    scratch_bytes: int
    waiting_line: int
    uses_tiles: bool = False
    has_atomics: bool = False
    assertions: tuple[Assertion | CheckedAccess, ...] = ()
    apart: tuple[Pair, ...] = ()


def lower_module(
    module: ModuleOp,
    symbol: str,
    cpu: str,
    features: str,
    options: CPUOptions,
    path_of: Callable[[str], str] = str,
) -> LoweredKernel:
    """Lower the kernel of a module; the module is left as it is."""
    target = cpu_target(cpu, features)
    plan = plan_function(kernel_of(module, target), options.check != BOUNDS)
    streams = find_streams(plan)
    waiting = waiting_loops(plan.function)
    num_spans = len(pointers_of(plan.function)) if options.check == BOUNDS else 0
    asserts = bool(num_spans) or any(_counts(op, options.debug) for op in nested_ops(plan.function))
    reuses = _plan_products(plan, target, asserts)
    if not asserts:
        find_needed_scans(plan)
    scratch_bytes = assign_buffers(plan)
    words_offset = scratch_bytes
    if options.interruptible:
        scratch_bytes += table_bytes(reuses)
    llvm_module = Module(symbol, "contract" if options.enable_fp_fusion else "", path_of=path_of)
    is_controlled = bool(waiting) or asserts
    busy = EVERY_PROGRAM if is_controlled else busy_programs(plan.function)
    entry = Entry(
        symbol=symbol,
        function=plan.function,
        is_controlled=is_controlled,
        num_spans=num_spans,
        uses_tiles=any(isinstance(product_of(op), TileProduct) for op in nested_ops(plan.function)),
        has_atomics=bool(nested_ops(plan.function, AtomicOp)),
        streams=streams,
        reuses=reuses,
        words_offset=words_offset,
        cache_bytes=target.cache_bytes,
        work=work_of(plan.body, plan.function.body.block) if options.interruptible else 0,
        order=FROM_X if is_controlled else busy.first_in(grid_order(plan.function, reuses)),
        busy=busy,
    )
    _emit_entry(llvm_module, entry, architecture_of(cpu), options.has_lines)
    ctx = _emit_program(llvm_module, entry, plan, target, options, waiting, asserts)
    assertions = tuple(_described(op, plan.function, path_of) for op in ctx.checks.assertions)
    line = _line_of(waiting[0]) if waiting else 0
    apart = tuple(pairs_apart(plan.function))
    return LoweredKernel(
        llvm_module.text(), scratch_bytes, line, entry.uses_tiles, entry.has_atomics, assertions, apart
    )


def _plan_products(plan: Plan, target: CPU, asserts: bool) -> list[Reuse]:
    """How products are computed; returns the operands that programs find packed. A program that asserts, or checks its
    accesses, does all of its own work where it is written.
    """
    find_needed_sums(plan)
    find_needed_depth(plan)
    if not asserts:
        read_directly(plan)
    begin_sums(plan)
    reuses = [] if asserts else reuse_operands(plan, target.second_cache_bytes)
    drop_copies(plan)
    if not asserts:
        find_few_rows(plan, target)
        find_single_rows(plan)
    return reuses


def _counts(op: Operation, debug: bool) -> bool:
    return isinstance(op, AssertOp) and op.counts(debug)


def _described(op: Operation, function: FuncOp, path_of: Callable[[str], str]) -> Assertion | CheckedAccess:
    """What the metadata says of an assertion, or of an access that is checked."""
    place, calls = from_attribute(op.location)
    named = [location and replace(location, file=path_of(location.file)) for location in (place, *calls)]
    if isinstance(op, AssertOp):
        return describe_assertion(op, named[0], tuple(named[1:]))
    return describe_access(op, function, named[0], tuple(named[1:]))


def _line_of(op: Operation) -> int:
    location, _ = from_attribute(op.location)
    return location.line if location else 1


def plan_function(function: FuncOp, carry: bool = True) -> Plan:
    """The items of a function, before memory is assigned; `carry`: tiles of loops may be in registers."""
    scheduler = Scheduler(function)
    body = scheduler.region(function.body.block)
    plan = Plan(function, body, scheduler.places, scheduler.storage, scheduler.reader)
    release_private_tiles(plan)
    if carry:
        carry_in_registers(plan)
    choose_orders(plan)
    pack_in_place(plan)
    return plan


def _emit_program(
    module: Module,
    entry: Entry,
    plan: Plan,
    target: CPU,
    options: CPUOptions,
    waiting: Sequence[Operation],
    asserts: bool,
) -> Context:
    """The function that is one program of the grid. One that asserts does not begin after another has failed."""
    parameters = plan.function.args
    typed = [(register_type(value.type), value.name_hint or f"arg{n}") for n, value in enumerate(parameters)]
    typed += [("i32", name) for name in _GRID_NAMES]
    typed += [("ptr noalias align 64", "scratch"), ("ptr noalias", "words"), ("ptr", "control"), ("i1", "streams")]
    typed += [("ptr noalias", "budget"), ("ptr", "watch")] if options.interruptible else []
    b = module.function(f"{entry.symbol}.program", "i1", typed, attributes=f"alwaysinline {_ATTRIBUTES}")
    values, rest = b.parameters[: len(parameters)], b.parameters[len(parameters) :]
    program = dict(zip((*_GRID_NAMES, "scratch", "words", "control", "streams"), rest, strict=False))
    countdown = Countdown(*rest[-2:], entry.uses_tiles, entry.has_atomics) if options.interruptible else None
    stops, products = Stops(frozenset(waiting), asserts, countdown), Products(repeated_products(plan.body))
    ctx = Context(
        module, Emitter(b), plan, target, options, RULES, emit_region, program, stops, products, entry.streams
    )
    block = plan.function.body.block
    ctx.bind_block(block)
    prepare_checks(ctx)
    if asserts:
        stop_if_told(ctx)
    for parameter, value in zip(parameters, values, strict=True):
        ctx.bind(parameter, _as_declared(b, parameter, value, target))
    emit_region(ctx, plan.body, block)
    ctx.emitter.innermost().ret(const("i1", 0))
    cut_into_pieces(b, f"noinline {_ATTRIBUTES}")
    return ctx


def _as_declared(b: Builder, parameter: SSAValue, value: Value, target: CPU) -> Value:
    """A parameter of fp16 is passed as float, which may hold more digits."""
    return rounded(b, value, parameter.type, target) if is_narrow_float(parameter.type) else value


@dataclass(frozen=True)
class Entry:
    """What the external function of a kernel is made for. `work` of a program, if it is interruptible, or 0; `order` in
    which programs follow one another, `busy` those that do something, along the first dimension of that. The tables of
    `reuses` are in scratch memory, at `words_offset`, if it is interruptible.
    """

    symbol: str
    function: FuncOp
    is_controlled: bool
    num_spans: int
    uses_tiles: bool
    has_atomics: bool
    streams: Streams
    reuses: list[Reuse]
    words_offset: int
    cache_bytes: int
    work: int
    order: Order
    busy: Stride


def _emit_entry(module: Module, entry: Entry, architecture: str, has_lines: bool) -> None:
    """The external function: the loop over programs. With lines it has one, since the program becomes part of it.

    Tiles are configured once for all of them: a kernel calls nothing but printf, which leaves them as they are.
    """
    parameters = entry.function.args
    signature = [("ptr", "args"), ("ptr", "grid"), ("i64", "begin"), ("i64", "end"), ("ptr", "scratch")]
    b = module.function(entry.symbol, "void", signature, linkage="external", attributes=_ATTRIBUTES)
    args, grid, begin, end, scratch = b.parameters
    location = user_location(entry.function.location) if has_lines else None
    if location:
        b.set_debug_location(module.debug_location(b, location.file, location.line, location.column))
    values = [_load_argument(b, args, number, value) for number, value in enumerate(parameters)]
    sizes = [b.load("i32", b.gep("i32", grid, const("i64", axis))) for axis in range(3)]
    control = _control(b, args, len(parameters), entry.num_spans) if entry.is_controlled else zero("ptr")
    watch = (
        b.load("ptr", b.gep("ptr", args, const("i64", len(parameters) + entry.is_controlled))) if entry.work else None
    )
    countdown = watch and begin_countdown(b, watch, entry.uses_tiles, entry.has_atomics)
    named = dict(zip(parameters, values, strict=True))
    words = _words(b, entry, b.sub(end, begin), watch, scratch)
    callers = enter_environment(b, architecture)
    streams = launch_streams(b, entry.streams, entry.cache_bytes, named, sizes)
    if entry.uses_tiles:
        emit_configuration(b)
    given = [*sizes, scratch, words, control, streams]
    programs = Programs(begin, end, sizes, entry.order).every(b, entry.busy)
    if countdown:
        _emit_watched_programs(b, entry, programs, values, given, countdown)
    else:
        with b.loop(programs.begin, programs.end, const("i64", 1), programs.first(b), hint="program") as loop:
            b.call("i1", f"{entry.symbol}.program", *values, *programs.ids(b, loop.carried), *given)
            loop.next(*programs.after(b, loop.carried))
    if entry.uses_tiles:
        emit_release(b)
    fence_streams(b, streams)
    leave_environment(b, callers)
    b.ret()


def _words(b: Builder, entry: Entry, num_programs: Value, watch: Value | None, scratch: Value) -> Value:
    """The tables of what programs find packed."""
    if watch is None or not entry.reuses:
        return new_words(b, entry.reuses, num_programs)
    words = b.gep("i8", scratch, const("i64", entry.words_offset))
    begin_launch_words(b, words, entry.reuses, num_programs, watch)
    return words


def _emit_watched_programs(
    b: Builder, entry: Entry, programs: Programs, values: list[Value], given: list[Value], countdown: Countdown
) -> None:
    """The loop over programs, which ends where one of them was left, or the loop itself finds that it is to end."""
    emitter, left = Emitter(b), b.block("left")
    bounds = programs.begin, programs.end, const("i64", 1)
    strips = open_strips(emitter, countdown, bounds, entry.work, programs.first(b), "program")
    body, places = emitter.innermost(), strips.inner.carried
    ids, given = programs.ids(body, places), [*given, countdown.budget, countdown.watch]
    is_left, further = body.call("i1", f"{entry.symbol}.program", *values, *ids, *given), body.block("further")
    body.cond_br(is_left, left, further)
    body.position(further)
    close_strips(emitter, countdown, strips, programs.after(body, places), lambda b: b.br(left))
    b.br(left)
    b.position(left)


def _control(b: Builder, args: Value, number: int, num_spans: int) -> Value:
    """What the caller gives after the arguments, or a block of this call's own, by which everything is in bounds."""
    given = b.load("ptr", b.gep("ptr", args, const("i64", number)))
    words = [*[0] * (CONTROL_SIZE // 8), *[*EVERYTHING] * num_spans]
    own = b.alloca("i64", len(words))
    for place, word in enumerate(words):
        b.store(const("i64", word), b.gep("i64", own, const("i64", place)))
    return b.select(b.icmp("eq", given, zero("ptr")), own, given)


def _load_argument(b: Builder, args: Value, number: int, parameter: SSAValue) -> Value:
    pointer = b.load("ptr", b.gep("ptr", args, const("i64", number)))
    if parameter.type == i1:
        return b.icmp("ne", b.load("i8", pointer), const("i8", 0))
    return b.load(register_type(parameter.type), pointer, hint=parameter.name_hint or "")
