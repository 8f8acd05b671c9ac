"""Accesses that are checked against the arrays of the launch, with the option `check="bounds"`.

tl.load(x_ptr + i)       if not rotr(first - lowest, 2) < count: which lane is outside? stopping.tell(number, lane, ...)
                         load <16 x float>, first

One comparison for the lanes together; where it does not hold, each lane that is on. What is loaded or stored is aligned
to its size: the bits that have to be 0 are rotated to the top, where they make the number too large. A pointer of which
one argument is known to be the base stays within that array. Others may point into any: each access remembers the
array that it was in the last time.
"""

from __future__ import annotations

from math import prod

from xdsl.ir import Operation

from deuteron.analysis.aliasing.points_to import points_to
from deuteron.backend.checked_access import CheckedAccess
from deuteron.backend.cpu.algebra import as_vector
from deuteron.backend.cpu.context import AxisIndex, Context
from deuteron.backend.cpu.fragment import Affine, Fragment, Uniform, lanes_of
from deuteron.backend.cpu.launch.control import SIZE as CONTROL_SIZE
from deuteron.backend.cpu.launch.control import SPAN_SIZE
from deuteron.backend.cpu.rules.stopping import Failure, fail_unless, lane_number
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, const, vector, width, zero
from deuteron.errors import Location
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.types import byte_width_of, is_pointer, pointee_of, shape_of
from deuteron.settings import BOUNDS

ANY = -1  # the base of a pointer that may be any argument
_LIMITS = 3  # words that are known of a span: what `_limits` gives for all lanes, and the count for one


def check_access(
    ctx: Context, op: Operation, index: AxisIndex, level: int, pointer: Fragment, mask: Fragment | None
) -> None:
    """Leave the program, and tell of it, unless the lanes that are on are in bounds. `index` is where in the tile."""
    if ctx.options.check == BOUNDS:
        _Check(ctx, op, index, level, pointer, mask).emit()


def prepare_checks(ctx: Context) -> None:
    """At the beginning of a program: what the accesses remember whose arrays are not known."""
    if ctx.options.check != BOUNDS:
        return
    b = ctx.emitter.at(0)
    for op in nested_ops(ctx.plan.function):
        if _is_access(op) and base_of(op, ctx.plan.function) == ANY:
            ctx.checks.last_spans[op] = b.alloca("i64", _LIMITS, align=8)
            for word in range(_LIMITS):
                b.store(const("i64", 0), b.gep("i64", ctx.checks.last_spans[op], const("i64", word)))


def describe_access(
    op: Operation, function: FuncOp, place: Location | None, calls: tuple[Location, ...]
) -> CheckedAccess:
    """What the metadata says of an access."""
    access, type = op.name.removeprefix("tt.").replace("_", " "), op.operands[0].type
    return CheckedAccess(place, calls, shape_of(type), access, _num_bytes(op), base_of(op, function))


def base_of(op: Operation, function: FuncOp) -> int:
    """The number, among the pointers of the function, of the argument that an access is of, or ANY."""
    found = points_to(op.operands[0])
    if not found.is_known or len(found.arguments) != 1:
        return ANY
    return pointers_of(function).index(next(iter(found.arguments)))


def pointers_of(function: FuncOp) -> list:
    """The arguments whose spans follow the control block."""
    return [argument for argument in function.args if is_pointer(argument.type)]


def _is_access(op: Operation) -> bool:
    return bool(op.operands) and is_pointer(op.operands[0].type) and op.name.startswith(_ACCESSES)


_ACCESSES = ("tt.load", "tt.store", "tt.atomic_")


def _num_bytes(op: Operation) -> int:
    return byte_width_of(pointee_of(op.operands[0].type))


class _Check:
    """The check of one access while it is emitted, at a level."""

    def __init__(
        self, ctx: Context, op: Operation, index: AxisIndex, level: int, pointer: Fragment, mask: Fragment | None
    ):
        self.ctx, self.op, self.index, self.level, self.pointer, self.mask = ctx, op, index, level, pointer, mask
        self.lanes = lanes_of(pointer, *([mask] if mask else []))
        self.num_bytes = _num_bytes(op)
        self.base = base_of(op, ctx.plan.function)
        self.reach = (self.lanes - 1) * pointer.step if self._follow_one_another() else 0

    @property
    def b(self) -> Builder:
        return self.ctx.emitter.at(self.level)

    def emit(self) -> None:
        self._bounds(0)  # here, where it dominates all that follows: at level 0 it would be part of a branch below
        in_bounds = self._all_inside()
        unsure, going = self.b.block("unsure"), self.b.block("in_bounds")
        self.b.cond_br(in_bounds, going, unsure)
        self.b.position(unsure)
        pointers, mask = self._pointers(), self._mask()
        if self.mask is not None and self.lanes > 1:
            outside = self.b.and_(mask, self.b.xor(self._inside(pointers, 0), const(mask.type, True)))
            some = self.b.block("some_outside")
            self.b.cond_br(_reduced(self.b, "or", outside), some, going)
            self.b.position(some)
        lane = self._first_outside(pointers, mask)
        holds = self.b.icmp("slt", lane, const("i64", 0))
        fail_unless(self.ctx, self.b, holds, lambda: self._failure(pointers, lane))
        self.b.br(going)
        self.b.position(going)

    def _all_inside(self) -> Value:
        """Whether all lanes are in bounds together; of lanes that do not follow one another, those that are on."""
        pointer, b = self.pointer, self.b
        if isinstance(pointer, Uniform):
            return self._inside(pointer.value, 0)
        if self._follow_one_another():
            first = pointer.base if self.reach >= 0 else b.gep("i8", pointer.base, const("i64", self.reach))
            return self._inside(first, self.reach)
        mask = self._mask()
        inside = self._inside(self._pointers(), 0)
        if self.mask is not None:
            inside = self.b.or_(inside, self.b.xor(mask, const(mask.type, True)))
        return _reduced(self.b, "and", inside)

    def _follow_one_another(self) -> bool:
        """Whether the lanes are at distances that are known, and aligned if one is."""
        pointer = self.pointer
        is_straight = isinstance(pointer, Affine) and pointer.elements is None
        return is_straight and isinstance(pointer.step, int) and pointer.step % self.num_bytes == 0

    def _inside(self, address: Value, reach: int) -> Value:
        """Whether the element at an address, or at each of several, is aligned and in bounds with all up to the one
        that is `reach` bytes away.
        """
        bounds = self._bounds(abs(reach))
        b, lanes = self.b, width(address.type)
        lowest, count = (b.splat(value, lanes) for value in bounds)
        offset = b.sub(b.ptrtoint(address, lowest.type), lowest)
        bits = const(offset.type, self.num_bytes.bit_length() - 1)
        return b.icmp("ult", b.intrinsic("llvm.fshr", offset.type, offset, offset, bits), count)

    def _bounds(self, reach: int) -> tuple[Value, Value]:
        """What `_limits` gives for the array that is accessed."""
        b = self.b
        if self.base == ANY:
            last, word = self.ctx.checks.last_spans[self.op], 1 if reach else 2
            return b.load("i64", last, 8), b.load("i64", b.gep("i64", last, const("i64", word)), 8)
        known, key = self.ctx.checks.limits, (self.base, self.num_bytes, reach)
        if key not in known:
            b = self.ctx.emitter.at(0)
            span = _span_address(b, self.ctx.program["control"], const("i64", self.base))
            known[key] = _limits(b, span, const("i64", self.num_bytes), const("i64", reach))
        return known[key]

    def _pointers(self) -> Value:
        return as_vector(self.ctx.emitter, self.pointer, self.lanes)

    def _mask(self) -> Value:
        if self.mask is None:
            return const(vector("i1", self.lanes), True)
        return as_vector(self.ctx.emitter, self.mask, self.lanes)

    def _first_outside(self, pointers: Value, mask: Value) -> Value:
        """The first lane that is on and out of bounds, or -1."""
        name = f"first_outside.{self.lanes}"
        if not self.ctx.module.has_function(name):
            _define_first_outside(self.ctx, name, self.lanes)
        last = self.ctx.checks.last_spans.get(self.op, zero("ptr"))
        numbers = [const("i64", number) for number in (self.num_bytes, abs(self.reach), self.base)]
        return self.b.call("i64", name, pointers, mask, *numbers, self.ctx.program["control"], last)

    def _failure(self, pointers: Value, lane: Value) -> Failure:
        ctx, shape = self.ctx, shape_of(self.op.operands[0].type)
        number = ctx.checks.assertions.setdefault(self.op, len(ctx.checks.assertions))
        first = lane_number(self.b, self.index, shape, self.level)
        axes = [axis for axis, entry in enumerate(self.index) if entry and entry.lanes > 1 and self.lanes > 1]
        step = prod(shape[axes[0] + 1 :]) if axes else 1
        address = self.b.ptrtoint(_lane_of(self.b, pointers, lane), "i64")
        return Failure(number, self.b.add(first, self.b.mul(lane, const("i64", step))), address)


def _limits(b: Builder, span: Value, num_bytes: Value, reach: Value) -> tuple[Value, Value]:
    """The lowest address in a span that is a multiple of `num_bytes`; and how many there are from which on as many
    bytes are in it, and as many `reach` bytes further on.
    """
    begin, size = b.load("i64", span, 8), b.load("i64", b.gep("i64", span, const("i64", 1)), 8)
    gap = b.and_(b.sub(const("i64", 0), begin), b.sub(num_bytes, const("i64", 1)))
    needed = b.add(b.add(gap, reach), num_bytes)
    count = b.add(b.udiv(b.sub(size, needed), num_bytes), const("i64", 1))
    return b.add(begin, gap), b.select(b.icmp("uge", size, needed), count, const("i64", 0))


def _span_address(b: Builder, control: Value, number: Value) -> Value:
    offset = b.add(b.mul(number, const("i64", SPAN_SIZE)), const("i64", CONTROL_SIZE))
    return b.gep("i8", control, offset)


def _reduced(b: Builder, how: str, mask: Value) -> Value:
    if width(mask.type) == 1:
        return mask
    return b.intrinsic(f"llvm.vector.reduce.{how}", "i1", mask, overloads=[mask.type])


def _lane_of(b: Builder, value: Value, lane: Value) -> Value:
    return b.extractelement(value, lane) if width(value.type) > 1 else value


_MORE = [("i64", "num_bytes"), ("i64", "reach"), ("i64", "base"), ("ptr", "control"), ("ptr", "last")]
_IS_OUTSIDE = "bounds.is_outside"


def _define_first_outside(ctx: Context, name: str, lanes: int) -> None:
    """The first lane that is on and out of bounds, or -1; the last lanes are asked first."""
    if not ctx.module.has_function(_IS_OUTSIDE):
        _define_is_outside(ctx)
    types = [(vector("ptr", lanes), "pointers"), (vector("i1", lanes), "mask"), *_MORE]
    b = ctx.module.function(name, "i64", types, attributes="noinline cold nounwind")
    pointers, mask = (Value(type, value.text) for (type, _), value in zip(types[:2], b.parameters, strict=False))
    with b.loop(const("i64", 0), const("i64", lanes), const("i64", 1), [const("i64", -1)], "lane") as loop:
        lane = b.sub(const("i64", lanes - 1), loop.index)
        with b.if_(_lane_of(b, mask, lane), "on") as branch:
            address = b.ptrtoint(_lane_of(b, pointers, lane), "i64")
            is_outside = b.call("i1", _IS_OUTSIDE, address, *b.parameters[2:])
            branch.yield_(b.select(is_outside, lane, loop.carried[0]))
            branch.otherwise()
            branch.yield_(loop.carried[0])
        loop.next(branch.results[0])
    b.ret(loop.results[0])


def _define_is_outside(ctx: Context) -> None:
    """Of one lane: not aligned, or not in the array that is the base; without one not in any, which is remembered."""
    b = ctx.module.function(_IS_OUTSIDE, "i1", [("i64", "address"), *_MORE], attributes="noinline cold nounwind")
    address, num_bytes, reach, base, control, last = b.parameters
    names = ("aligned", "own", "missed", "search", "found", "remember", "inside", "outside")
    aligned, own, missed, search, found, remember, inside, outside = map(b.block, names)
    rest = b.and_(address, b.sub(num_bytes, const("i64", 1)))
    b.cond_br(b.icmp("eq", rest, const("i64", 0)), aligned, outside)
    b.position(aligned)
    b.cond_br(b.icmp("slt", base, const("i64", 0)), search, own)
    b.position(own)
    span = _span_address(b, control, base)
    b.cond_br(_is_in(b, span, address, num_bytes), inside, missed)
    b.position(missed)
    begin, size = b.load("i64", span, 8), b.load("i64", b.gep("i64", span, const("i64", 1)), 8)
    b.cond_br(b.icmp("eq", b.or_(begin, size), const("i64", 0)), search, outside)
    b.position(search)
    count = const("i64", len(pointers_of(ctx.plan.function)))
    with b.loop(const("i64", 0), count, const("i64", 1), [zero("ptr")], "span") as loop:
        candidate = _span_address(b, control, loop.index)
        loop.next(b.select(_is_in(b, candidate, address, num_bytes), candidate, loop.carried[0]))
    b.cond_br(b.icmp("eq", loop.results[0], zero("ptr")), outside, found)
    b.position(found)
    b.cond_br(b.icmp("eq", last, zero("ptr")), inside, remember)
    b.position(remember)
    lowest, together = _limits(b, loop.results[0], num_bytes, reach)
    for word, known in enumerate((lowest, together, _limits(b, loop.results[0], num_bytes, const("i64", 0))[1])):
        b.store(known, b.gep("i64", last, const("i64", word)), 8)
    b.br(inside)
    for block, result in ((inside, False), (outside, True)):
        b.position(block)
        b.ret(const("i1", result))


def _is_in(b: Builder, span: Value, address: Value, num_bytes: Value) -> Value:
    lowest, size = b.load("i64", span, 8), b.load("i64", b.gep("i64", span, const("i64", 1)), 8)
    offset = b.sub(address, lowest)
    return b.and_(b.icmp("ule", offset, size), b.icmp("uge", b.sub(size, offset), num_bytes))
