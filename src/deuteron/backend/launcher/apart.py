"""Machine code that looks whether the arrays of a launch are apart where its kernel relies on it.

    are_apart(shared, apart, objects, slots, views)     1; 2: some overlap; 0: it has raised
    look(shared, looked_at, obj, address, view)         where the elements of an array are: a VIEW; 1, or 0
    take_turns(first, second)                           whether the elements of two VIEWs whose spans meet are apart

It does what `backend/overlaps.py` says. Arrays of NumPy and tensors of torch it reads itself; of all others a function
of Python tells, if there is one: else they may be anywhere. An `apart` is an APART record, the LOOKED_AT of arrays,
PAIRs of these, EQUAL numbers, TILEs and STEPs.
"""

from __future__ import annotations

from deuteron.backend.launcher.arguments import DONE, UNKNOWN
from deuteron.backend.launcher.code import NULL, Code
from deuteron.backend.launcher.object_layout import NUMPY_NUM_AXES, NUMPY_SHAPE, NUMPY_STRIDES
from deuteron.backend.launcher.records import APART, EQUAL, LOOKED_AT, PAIR, SHARED, STEP, TILE, VIEW
from deuteron.backend.llvm.control_flow import Block
from deuteron.backend.llvm.module import Module
from deuteron.backend.llvm.types import Value, const

OVERLAP = const("i32", 2)
_LARGEST = (1 << 63) - 1  # bytes of what may be anywhere: more than any period
_END_OF_MEMORY = (1 << 64) - 1


def define_apart(module: Module) -> None:
    _define_measured(module)
    _define_look(module)
    _define_within(module)
    _define_are_apart_modulo(module)
    _define_take_turns(module)
    _define_size_of(module)
    _define_is_injective(module)
    _define_are_one(module)
    _define_pairs_are_apart(module)
    _define_are_apart(module)


def _view(c: Code, views: Value, number: Value) -> Value:
    return c.after(views, c.mul(number, c.word(len(VIEW))))


def _define_are_apart(module: Module) -> None:
    given = [("ptr", name) for name in ("shared", "apart", "objects", "slots", "views")]
    c = module.function("are_apart", "i32", given, kind=Code)
    shared, apart, objects, slots, views = c.parameters
    result = c.variable("i32", UNKNOWN)
    drop = c.block("drop")
    num_views = c.field(apart, APART, "num_views")
    with c.when(c.is_null(num_views)):
        c.ret(DONE)
    with c.repeat(num_views) as index:
        _fill(c, _view(c, views, index), owner=NULL)
    described = c.after(apart, len(APART))
    with c.repeat(num_views) as index:
        own = c.after(described, c.mul(index, c.word(len(LOOKED_AT))))
        obj = c.at(objects, c.field(own, LOOKED_AT, "object"), "ptr")
        address = c.at(slots, c.field(own, LOOKED_AT, "slot"))
        found = c.call("i32", "look", shared, own, obj, address, _view(c, views, index))
        c.leave_if(c.is_null(found), drop)
    pairs = c.after(described, c.mul(num_views, c.word(len(LOOKED_AT))))
    c.store(c.call("i32", "pairs_are_apart", apart, pairs, views, slots), result)
    c.br(drop)
    c.position(drop)
    with c.repeat(num_views) as index:
        owner = c.field(_view(c, views, index), VIEW, "owner", "ptr")
        with c.when(c.is_not_null(owner)):
            c.python("Py_DecRef", owner)
    c.ret(c.load("i32", result))


def _define_pairs_are_apart(module: Module) -> None:
    given = [("ptr", name) for name in ("apart", "pairs", "views", "slots")]
    c = module.function("pairs_are_apart", "i32", given, kind=Code)
    apart, pairs, views, slots = c.parameters
    overlap = c.block("overlap")
    count, num_equal, num_tiles = (c.field(apart, APART, name) for name in APART.names[1:])
    equal = c.after(pairs, c.mul(count, c.word(len(PAIR))))
    tiles = c.after(equal, c.mul(num_equal, c.word(len(EQUAL))))
    steps = c.after(tiles, c.mul(num_tiles, c.word(len(TILE))))
    with c.repeat(count) as index:
        pair, further = c.after(pairs, c.mul(index, c.word(len(PAIR)))), c.block("further")
        first, second = (_view(c, views, c.field(pair, PAIR, name)) for name in ("first", "second"))
        c.leave_if(c.is_null(c.zext(_meet(c, first, second), "i64")), further)
        are_one = c.call("i32", "are_one", pair, equal, tiles, steps, first, second, slots)
        c.leave_if(c.is_not_null(are_one), further)
        c.leave_if(c.equal(*(c.field(view, VIEW, "address") for view in (first, second))), overlap)
        c.leave_if(c.is_null(c.call("i32", "take_turns", first, second)), overlap)
        c.br(further)
        c.position(further)
    c.ret(DONE)
    c.position(overlap)
    c.ret(OVERLAP)


def _define_are_one(module: Module) -> None:
    """Whether a pair that may begin at one place does, and the numbers are such as they have to be."""
    given = [("ptr", name) for name in ("pair", "equal", "tiles", "steps", "first", "second", "slots")]
    c = module.function("are_one", "i32", given, kind=Code)
    pair, equal, tiles, steps, first, second, slots = c.parameters
    differ = c.block("differ")
    c.leave_if(c.is_null(c.field(pair, PAIR, "or_equal")), differ)
    c.leave_if(c.differ(c.field(first, VIEW, "address"), c.field(second, VIEW, "address")), differ)
    with c.loop(c.field(pair, PAIR, "begin_equal"), c.field(pair, PAIR, "end_equal"), c.word(1)) as loop:
        own = c.after(equal, c.mul(loop.index, c.word(len(EQUAL))))
        numbers = [c.at(slots, c.field(own, EQUAL, name)) for name in EQUAL.names]
        c.leave_if(c.differ(*numbers), differ)
    with c.loop(c.field(pair, PAIR, "begin_tiles"), c.field(pair, PAIR, "end_tiles"), c.word(1)) as loop:
        tile = c.after(tiles, c.mul(loop.index, c.word(len(TILE))))
        ends = [c.field(tile, TILE, name) for name in TILE.names]
        c.leave_if(c.is_null(c.call("i32", "is_injective", steps, *ends, slots)), differ)
    c.ret(DONE)
    c.position(differ)
    c.ret(UNKNOWN)


def _define_is_injective(module: Module) -> None:
    """Whether each step is longer than all that shorter ones reach, and those of its length that come before it; of
    those with an extent below 0 it may be shorter (`layout/steps.py`).
    """
    given = [("ptr", "steps"), ("i64", "begin"), ("i64", "end"), ("ptr", "slots")]
    c = module.function("is_injective", "i32", given, kind=Code)
    steps, begin, end, slots = c.parameters
    covered, meet = c.variable("i64"), c.block("meet")
    with c.loop(begin, end, c.word(1)) as loop:
        size, own_extent = _size_of(c, steps, loop.index, slots)
        c.store(c.word(0), covered)
        with c.loop(begin, end, c.word(1)) as other:
            shorter, extent = _size_of(c, steps, other.index, slots)
            is_earlier = c.and_(c.equal(shorter, size), c.icmp("ult", other.index, loop.index))
            with c.when(c.or_(c.icmp("ult", shorter, size), is_earlier)):
                is_reach = c.icmp("slt", extent, c.word(0))
                count = c.select(is_reach, c.sub(c.word(0), extent), c.sub(extent, c.word(1)))
                c.store(c.add(c.load("i64", covered), c.mul(shorter, count)), covered)
        is_asked = c.icmp("sgt", own_extent, c.word(0))
        c.leave_if(c.and_(is_asked, c.icmp("ule", size, c.load("i64", covered))), meet)
    c.ret(DONE)
    c.position(meet)
    c.ret(UNKNOWN)


def _size_of(c: Code, steps: Value, index: Value, slots: Value) -> tuple[Value, Value]:
    """How long a step is, and how many elements there are along it."""
    step = c.after(steps, c.mul(index, c.word(len(STEP))))
    return c.call("i64", "size_of", step, slots), c.field(step, STEP, "extent")


def _define_size_of(module: Module) -> None:
    c = module.function("size_of", "i64", [("ptr", "step"), ("ptr", "slots")], kind=Code)
    step, slots = c.parameters
    size = c.variable("i64", c.field(step, STEP, "factor"))
    with c.when(c.is_not_null(c.field(step, STEP, "has_slot"))):
        shift = c.field(step, STEP, "shift")
        number = c.ashr(c.shl(c.at(slots, c.field(step, STEP, "slot")), shift), shift)
        c.store(c.mul(c.load("i64", size), number), size)
    found = c.load("i64", size)
    c.ret(c.select(*_magnitude(c, found)))


def _meet(c: Code, first: Value, second: Value) -> Value:
    """Whether two spans have a byte in common; what is empty ends where it begins."""
    (begin, end), (other, other_end) = (
        [c.field(view, VIEW, name) for name in VIEW.names[:2]] for view in (first, second)
    )
    are_some = c.and_(c.differ(begin, end), c.differ(other, other_end))
    return c.and_(are_some, c.and_(c.icmp("ult", begin, other_end), c.icmp("ult", other, end)))


def _define_take_turns(module: Module) -> None:
    """Every step of an axis, of either, is tried as the period."""
    c = module.function("take_turns", "i32", [("ptr", "first"), ("ptr", "second")], kind=Code)
    first, second = c.parameters
    for view in (first, second):
        with c.repeat(c.field(view, VIEW, "num_axes")) as axis, c.when(_has_several(c, view, axis)):
            period = c.select(*_magnitude(c, _step(c, view, axis)))
            apart = c.call("i32", "are_apart_modulo", period, first, second)
            with c.when(c.is_not_null(apart)):
                c.ret(DONE)
    c.ret(UNKNOWN)


def _has_several(c: Code, view: Value, axis: Value) -> Value:
    """Whether an axis has several elements at several places."""
    extent = c.at(c.field(view, VIEW, "extents", "ptr"), axis)
    return c.and_(c.icmp("sgt", extent, c.word(1)), c.is_not_null(_step(c, view, axis)))


def _step(c: Code, view: Value, axis: Value) -> Value:
    return c.mul(c.at(c.field(view, VIEW, "steps", "ptr"), axis), c.field(view, VIEW, "unit"))


def _magnitude(c: Code, step: Value) -> tuple[Value, Value, Value]:
    return c.icmp("slt", step, c.word(0)), c.sub(c.word(0), step), step


def _define_are_apart_modulo(module: Module) -> None:
    c = module.function("are_apart_modulo", "i32", [("i64", "period"), ("ptr", "first"), ("ptr", "second")], kind=Code)
    period, *views = c.parameters
    ends = [(c.variable("i64"), c.variable("i64")) for _ in views]
    for view, (low, size) in zip(views, ends, strict=True):
        c.call("i32", "within", period, view, low, size)
    (low, size), (other, other_size) = ([c.load("i64", end) for end in pair] for pair in ends)
    rest = c.srem(c.sub(other, low), period)
    distance = c.select(c.icmp("slt", rest, c.word(0)), c.add(rest, period), rest)
    is_behind = c.icmp("ule", size, distance)
    is_before = c.and_(c.icmp("ule", other_size, period), c.icmp("ule", distance, c.sub(period, other_size)))
    c.ret(c.zext(c.and_(is_behind, is_before), "i32"))


def _define_within(module: Module) -> None:
    """The lowest byte and the number of bytes of what an array touches, but for axes that go on by whole periods."""
    given = [("i64", "period"), ("ptr", "view"), ("ptr", "low"), ("ptr", "size")]
    c = module.function("within", "i32", given, kind=Code)
    period, view, low, size = c.parameters
    c.store(c.field(view, VIEW, "address"), low)
    c.store(c.field(view, VIEW, "item"), size)
    with c.repeat(c.field(view, VIEW, "num_axes")) as axis, c.when(_has_several(c, view, axis)):
        step = _step(c, view, axis)
        with c.when(c.is_not_null(c.srem(step, period))):
            reach = c.mul(c.sub(c.at(c.field(view, VIEW, "extents", "ptr"), axis), c.word(1)), step)
            is_down, length, _ = _magnitude(c, reach)
            c.store(c.add(c.load("i64", low), c.select(is_down, reach, c.word(0))), low)
            c.store(c.add(c.load("i64", size), c.select(is_down, length, reach)), size)
    c.ret(DONE)


def _define_look(module: Module) -> None:
    given = [("ptr", "shared"), ("ptr", "looked_at"), ("ptr", "obj"), ("i64", "address"), ("ptr", "view")]
    c = module.function("look", "i32", given, kind=Code)
    shared, looked_at, obj, address, view = c.parameters
    variables = c.variable("i64"), c.variable("ptr"), c.variable("ptr")
    numpy, tensor, empty, anywhere, measure = map(c.block, ("numpy", "tensor", "empty", "anywhere", "measure"))
    unknown = c.block("unknown")
    item, function = c.field(looked_at, LOOKED_AT, "item"), c.field(looked_at, LOOKED_AT, "measure", "ptr")
    _fill(c, view, address=address, item=item, num_axes=c.word(0), unit=c.word(1))
    kind = c.class_of(obj)
    c.leave_if(c.is_null(address), empty)
    c.leave_if(c.equal(kind, c.field(shared, SHARED, "ndarray", "ptr")), numpy)
    for name in ("tensor", "parameter"):
        c.leave_if(c.equal(kind, c.field(shared, SHARED, name, "ptr")), tensor)
    c.leave_if(c.is_null(function), anywhere)
    found = c.call("i32", "measured", shared, function, obj, view)
    c.leave_if(c.is_null(found), unknown)
    c.cond_br(c.equal(found, OVERLAP), anywhere, measure)
    c.position(numpy)
    _read_numpy(c, obj, view)
    c.br(measure)
    c.position(tensor)
    _read_tensor(c, shared, obj, view, item, variables, anywhere)
    c.br(measure)
    c.position(measure)
    begin, end = _span(c, view, empty)
    _fill(c, view, begin=begin, end=end)
    c.ret(DONE)
    c.position(anywhere)
    _fill(c, view, begin=c.word(0), end=c.word(_END_OF_MEMORY), item=c.word(_LARGEST), num_axes=c.word(0))
    c.ret(DONE)
    c.position(empty)
    _fill(c, view, begin=address, end=address)
    c.ret(DONE)
    c.position(unknown)
    c.ret(UNKNOWN)


def _fill(c: Code, view: Value, **fields: Value) -> None:
    for name, value in fields.items():
        c.put(view, c.word(VIEW.index(name)), value)


def _read_numpy(c: Code, array: Value, view: Value) -> None:
    num_axes = c.sext(c.load("i32", c.gep("i8", array, c.word(NUMPY_NUM_AXES))), "i64")
    extents, steps = (c.load("ptr", c.gep("i8", array, c.word(offset))) for offset in (NUMPY_SHAPE, NUMPY_STRIDES))
    _fill(c, view, num_axes=num_axes, extents=extents, steps=steps)


def _read_tensor(
    c: Code, shared: Value, tensor: Value, view: Value, item: Value, variables: tuple[Value, ...], anywhere: Block
) -> None:
    handle = c.gep("i8", tensor, c.field(shared, SHARED, "tensor_offset"))
    for function, variable in zip(("tensor_dim", "tensor_sizes", "tensor_strides"), variables, strict=True):
        status = c.call_pointer("i32", c.field(shared, SHARED, function, "ptr"), handle, variable)
        c.leave_if(c.is_not_null(status), anywhere)
    types = ("i64", "ptr", "ptr")
    num_axes, extents, steps = (c.load(type, variable) for type, variable in zip(types, variables, strict=True))
    _fill(c, view, num_axes=num_axes, extents=extents, steps=steps, unit=item)


def _span(c: Code, view: Value, empty: Block) -> tuple[Value, Value]:
    """The ends, moved by what each axis reaches, down where its step is negative."""
    address, item = (c.field(view, VIEW, name) for name in ("address", "item"))
    _fill(c, view, begin=address, end=c.add(address, item))
    extents = c.field(view, VIEW, "extents", "ptr")
    with c.repeat(c.field(view, VIEW, "num_axes")) as axis:
        extent = c.at(extents, axis)
        c.leave_if(c.is_null(extent), empty)
        reach = c.mul(c.sub(extent, c.word(1)), _step(c, view, axis))
        is_down = c.icmp("slt", reach, c.word(0))
        _fill(c, view, begin=c.add(c.field(view, VIEW, "begin"), c.select(is_down, reach, c.word(0))))
        _fill(c, view, end=c.add(c.field(view, VIEW, "end"), c.select(is_down, c.word(0), reach)))
    return c.field(view, VIEW, "begin"), c.field(view, VIEW, "end")


def _define_measured(module: Module) -> None:
    """Let a function of Python say what a VIEW is to know; 1, 2 where it does not know, or 0 where it raised."""
    given = [("ptr", "shared"), ("ptr", "function"), ("ptr", "obj"), ("ptr", "view")]
    c = module.function("measured", "i32", given, kind=Code)
    shared, function, obj, view = c.parameters
    words = c.python("PyObject_CallOneArg", function, obj)
    with c.when(c.is_null(words)):
        c.ret(UNKNOWN)
    _fill(c, view, owner=words)
    with c.when(c.differ(c.class_of(words), c.field(shared, SHARED, "bytes", "ptr"))):
        c.ret(OVERLAP)
    found = c.python("PyBytes_AsString", words)
    num_axes, extents = c.at(found, c.word(1)), c.after(found, 2)
    item, steps = c.at(found, c.word(0)), c.after(extents, num_axes)
    _fill(c, view, item=item, num_axes=num_axes, extents=extents, steps=steps)
    c.ret(DONE)
