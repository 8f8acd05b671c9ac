"""Machine code that looks whether the arrays of a launch are apart where its kernel relies on it.

    are_apart(shared, apart, objects, slots, spans)     1, or 0: some overlap, or the code cannot tell
    span(shared, obj, address, item, place)             from the lowest to the highest byte of an array

It does what `backend/overlaps.py` says, for arrays of NumPy and tensors of torch; of all others Python has to tell. An
`apart` is an APART record, SPANs of the arrays that are looked at, and PAIRs of these.
"""

from __future__ import annotations

from deuteron.backend.launcher.arguments import DONE, UNKNOWN
from deuteron.backend.launcher.code import Code
from deuteron.backend.launcher.object_layout import NUMPY_NUM_AXES, NUMPY_SHAPE, NUMPY_STRIDES
from deuteron.backend.launcher.records import APART, PAIR, SHARED, SPAN
from deuteron.backend.llvm.module import Module
from deuteron.backend.llvm.types import Value


def define_apart(module: Module) -> None:
    _define_span(module)
    _define_are_apart(module)


def _define_are_apart(module: Module) -> None:
    given = [("ptr", name) for name in ("shared", "apart", "objects", "slots", "spans")]
    c = module.function("are_apart", "i32", given, kind=Code)
    shared, apart, objects, slots, spans = c.parameters
    unknown = c.block("unknown")
    num_spans = c.field(apart, APART, "num_spans")
    described = c.after(apart, len(APART))
    with c.repeat(num_spans) as index:
        own, place = c.after(described, c.mul(index, c.word(len(SPAN)))), c.after(spans, c.shl(index, c.word(1)))
        obj = c.at(objects, c.field(own, SPAN, "object"), "ptr")
        address = c.at(slots, c.field(own, SPAN, "slot"))
        found = c.call("i32", "span", shared, obj, address, c.field(own, SPAN, "item"), place)
        c.leave_if(c.is_null(found), unknown)
    pairs = c.after(described, c.mul(num_spans, c.word(len(SPAN))))
    with c.repeat(c.field(apart, APART, "num_pairs")) as index:
        pair = c.after(pairs, c.mul(index, c.word(len(PAIR))))
        first, second = (c.field(pair, PAIR, name) for name in ("first", "second"))
        meets = _meets(c, *(c.after(spans, c.shl(number, c.word(1))) for number in (first, second)))
        addresses = [_address(c, described, slots, number) for number in (first, second)]
        is_one = c.and_(c.is_not_null(c.field(pair, PAIR, "or_equal")), c.equal(*addresses))
        c.leave_if(c.and_(meets, c.is_null(c.zext(is_one, "i64"))), unknown)
    c.ret(DONE)
    c.position(unknown)
    c.ret(UNKNOWN)


def _address(c: Code, described: Value, slots: Value, number: Value) -> Value:
    """What is passed for an array."""
    return c.at(slots, c.field(c.after(described, c.mul(number, c.word(len(SPAN)))), SPAN, "slot"))


def _meets(c: Code, first: Value, second: Value) -> Value:
    """Whether two arrays have a byte in common; what is empty ends where it begins."""
    (begin, end), (other_begin, other_end) = ([c.at(span, c.word(word)) for word in (0, 1)] for span in (first, second))
    are_some = c.and_(c.differ(begin, end), c.differ(other_begin, other_end))
    return c.and_(are_some, c.and_(c.icmp("ult", begin, other_end), c.icmp("ult", other_begin, end)))


def _define_span(module: Module) -> None:
    given = [("ptr", "shared"), ("ptr", "obj"), ("i64", "address"), ("i64", "item"), ("ptr", "place")]
    c = module.function("span", "i32", given, kind=Code)
    shared, obj, address, item, place = c.parameters
    count, unit = c.variable("i64"), c.variable("i64")
    extents, steps = c.variable("ptr"), c.variable("ptr")
    low, high = c.variable("i64", address), c.variable("i64", address)
    numpy, tensor, empty, measure, unknown = map(c.block, ("numpy", "tensor", "empty", "measure", "unknown"))
    kind = c.class_of(obj)
    c.leave_if(c.is_null(address), empty)
    c.leave_if(c.equal(kind, c.field(shared, SHARED, "ndarray", "ptr")), numpy)
    for name in ("tensor", "parameter"):
        c.leave_if(c.equal(kind, c.field(shared, SHARED, name, "ptr")), tensor)
    c.br(unknown)
    c.position(numpy)
    c.store(c.sext(c.load("i32", c.gep("i8", obj, c.word(NUMPY_NUM_AXES))), "i64"), count)
    c.store(c.load("ptr", c.gep("i8", obj, c.word(NUMPY_SHAPE))), extents)
    c.store(c.load("ptr", c.gep("i8", obj, c.word(NUMPY_STRIDES))), steps)
    c.store(c.word(1), unit)
    c.br(measure)
    c.position(tensor)
    handle = c.gep("i8", obj, c.field(shared, SHARED, "tensor_offset"))
    for function, variable in (("tensor_dim", count), ("tensor_sizes", extents), ("tensor_strides", steps)):
        status = c.call_pointer("i32", c.field(shared, SHARED, function, "ptr"), handle, variable)
        c.leave_if(c.is_not_null(status), unknown)
    c.store(item, unit)
    c.br(measure)
    c.position(measure)
    _measure(c, (count, extents, steps, unit), low, high, empty)
    c.put(place, c.word(0), c.load("i64", low))
    c.put(place, c.word(1), c.add(c.load("i64", high), item))
    c.ret(DONE)
    c.position(empty)
    c.put(place, c.word(0), address)
    c.put(place, c.word(1), address)
    c.ret(DONE)
    c.position(unknown)
    c.ret(UNKNOWN)


def _measure(c: Code, array: tuple[Value, ...], low: Value, high: Value, empty) -> None:
    """Move the ends by what each axis reaches, down where its step is negative."""
    count, extents, steps, unit = array
    extents, steps = c.load("ptr", extents), c.load("ptr", steps)
    with c.repeat(c.load("i64", count)) as axis:
        extent = c.at(extents, axis)
        c.leave_if(c.is_null(extent), empty)
        reach = c.mul(c.mul(c.sub(extent, c.word(1)), c.at(steps, axis)), c.load("i64", unit))
        is_down = c.icmp("slt", reach, c.word(0))
        for end, moves in ((low, c.select(is_down, reach, c.word(0))), (high, c.select(is_down, c.word(0), reach))):
            c.store(c.add(c.load("i64", end), moves), end)
