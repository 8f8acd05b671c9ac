"""Machine code that finds the entry of a launch, looks whether its conditions hold, and packs what the kernel takes.

    find(record, words, count, entry)      a new reference to the entry of a key, a tuple that begins with its record
    holds(record)                          whether what the entry was made under is still so
    pack(record, bound, slots)             the arguments as the kernel reads them, 8 bytes each
    are_packed_alike(record, other)        whether the conditions and the slots of two entries are the same

All return 1, or 0 where Python has to look at the launch.
"""

from __future__ import annotations

from deuteron.backend.launcher.arguments import BOUND, DONE, UNKNOWN
from deuteron.backend.launcher.code import NULL, Code
from deuteron.backend.launcher.records import (
    AS_BOOL,
    AS_DOUBLE,
    AS_FLOAT,
    AS_INTEGER,
    CONDITION,
    ENTRY,
    IS_ATTRIBUTE,
    IS_FALSE_ATTRIBUTE,
    IS_FALSE_ITEM,
    IS_IN_CELL,
    IS_ITEM,
    IS_SUBSCRIPT,
    KERNEL,
    SHARED,
    SLOT,
    WHOLE,
)
from deuteron.backend.llvm.module import Module
from deuteron.backend.llvm.types import Value, const

_MULTIPLIER = 0x9E3779B97F4A7C15
_HASH_BITS = (1 << 60) - 1  # an int of two digits in CPython


def define_entries(module: Module) -> None:
    """Add the functions `hash_words`, `find`, `holds` and `pack`."""
    _define_hash(module)
    _define_find(module)
    _define_condition(module)
    _define_holds(module)
    define_convert(module)
    _define_pack(module)
    _define_are_packed_alike(module)


def record_of(c: Code, owner: Value) -> Value:
    """The record in the `bytes` with which a tuple begins."""
    return c.python("PyBytes_AsString", c.python("PyTuple_GetItem", owner, c.word(0)))


def _define_hash(module: Module) -> None:
    c = module.function("hash_words", "i64", [("ptr", "words"), ("i64", "count")], "external", kind=Code)
    words, count = c.parameters
    with c.loop(c.word(0), count, c.word(1), carried=[count]) as loop:
        mixed = c.mul(c.xor(loop.carried[0], c.at(words, loop.index)), c.word(_MULTIPLIER))
        loop.next(c.xor(mixed, c.lshr(mixed, c.word(32))))
    c.ret(c.and_(loop.results[0], c.word(_HASH_BITS)))


def _define_find(module: Module) -> None:
    """Entries are in a dictionary by the hash of their keys, which are then compared."""
    parameters = [("ptr", "kernel"), ("ptr", "words"), ("i64", "count"), ("ptr", "found")]
    c = module.function("find", "i32", parameters, kind=Code)
    kernel, words, count, found = c.parameters
    unknown = c.block("unknown")
    key = c.python("PyLong_FromLongLong", c.call("i64", "hash_words", words, count))
    c.leave_if(c.is_null(key), unknown)
    c.look_up(c.field(kernel, KERNEL, "entries", "ptr"), key, found)
    c.python("Py_DecRef", key)
    entry = c.load("ptr", found)
    c.leave_if(c.is_null(entry), unknown)
    record = record_of(c, entry)
    c.leave_if(c.differ(c.field(record, ENTRY, "num_words"), count), unknown)
    own = c.after(record, len(ENTRY))
    with c.repeat(count) as index:
        c.leave_if(c.differ(c.at(own, index), c.at(words, index)), unknown)
    c.ret(DONE)
    c.position(unknown)
    c.ret(UNKNOWN)


def _define_holds(module: Module) -> None:
    c = module.function("holds", "i32", [("ptr", "record")], kind=Code)
    (record,) = c.parameters
    unknown = c.block("unknown")
    conditions = c.after(record, c.add(c.field(record, ENTRY, "num_words"), c.word(len(ENTRY))))
    with c.repeat(c.field(record, ENTRY, "num_conditions")) as index:
        condition = c.after(conditions, c.mul(index, c.word(len(CONDITION))))
        c.leave_if(c.is_null(c.call("i32", "condition", condition)), unknown)
    c.ret(DONE)
    c.position(unknown)
    c.ret(UNKNOWN)


def _define_condition(module: Module) -> None:
    """What is looked for has to be one object, or, for `IS_FALSE_...`, nothing or something false."""
    c = module.function("condition", "i32", [("ptr", "condition")], kind=Code)
    (condition,) = c.parameters
    found, truth = c.variable("ptr", NULL), c.variable("i32", const("i32", 0))
    kind = c.field(condition, CONDITION, "kind")
    owner, name = (c.field(condition, CONDITION, field, "ptr") for field in ("owner", "name"))

    def is_kind(*kinds: int) -> Value:
        first, *others = (c.equal(kind, c.word(number)) for number in kinds)
        return c.or_(first, *others) if others else first

    with c.when(is_kind(IS_ITEM, IS_FALSE_ITEM)):
        c.look_up(owner, name, found)
        with c.when(c.is_null(c.load("ptr", found))), c.when(c.has_raised()):
            c.ret(UNKNOWN)
    for function, kinds in (
        ("PyObject_GetAttr", (IS_ATTRIBUTE, IS_FALSE_ATTRIBUTE)),
        ("PyObject_GetItem", (IS_SUBSCRIPT,)),
    ):
        with c.when(is_kind(*kinds)):
            part = c.python(function, owner, name)
            with c.when(c.is_null(part)):
                c.ret(UNKNOWN)
            c.store(part, found)
    with c.when(is_kind(IS_IN_CELL)):
        c.store(c.python("PyCell_Get", owner), found)
    value = c.load("ptr", found)
    with c.when(is_kind(IS_FALSE_ITEM, IS_FALSE_ATTRIBUTE)):
        with c.when(c.is_not_null(value)):
            c.store(c.python("PyObject_IsTrue", value), truth)  # or -1, which holds no more than 1 does
            c.python("Py_DecRef", value)
        c.ret(c.zext(c.is_null(c.load("i32", truth)), "i32"))
    with c.when(c.is_not_null(value)):
        c.python("Py_DecRef", value)
    c.ret(c.zext(c.equal(value, c.field(condition, CONDITION, "expected", "ptr")), "i32"))


def define_convert(module: Module) -> None:
    """The word for an object that a specialiser passed."""
    parameters = [("ptr", "shared"), ("ptr", "obj"), ("i64", "format"), ("ptr", "slot")]
    c = module.function("convert", "i32", parameters, kind=Code)
    shared, obj, form, slot = c.parameters
    unknown = c.block("unknown")
    kind = c.class_of(obj)
    is_integer, is_float = (_is_subclass(c, kind, c.field(shared, SHARED, name, "ptr")) for name in ("int", "float"))
    with c.when(c.equal(form, c.word(AS_INTEGER))):
        c.leave_if(c.is_null(is_integer), unknown)
        c.put(slot, c.word(0), c.python("PyLong_AsUnsignedLongLongMask", obj))
        c.ret(DONE)
    c.leave_if(c.is_null(c.or_(is_float, is_integer)), unknown)
    with c.when(c.equal(form, c.word(AS_BOOL))):
        c.put(slot, c.word(0), c.zext(c.python("PyObject_IsTrue", obj), "i64"))
        c.ret(DONE)
    number = c.python("PyFloat_AsDouble", obj)
    may_be_error = c.and_(is_integer, c.fcmp("oeq", number, const("double", -1.0)))
    with c.when(may_be_error):
        c.leave_if(c.has_raised(), unknown)
    c.put(slot, c.word(0), _float_word(c, number, form))
    c.ret(DONE)
    c.position(unknown)
    c.ret(UNKNOWN)


def _is_subclass(c: Code, kind: Value, base: Value) -> Value:
    """Whether objects of a class are numbers of Python: `bool` is a subclass of `int`."""
    return c.is_not_null(c.python("PyType_IsSubtype", kind, base))


def _float_word(c: Code, number: Value, form: Value) -> Value:
    as_float = c.zext(c.bitcast(c.fptrunc(number, "float"), "i32"), "i64")
    return c.select(c.equal(form, c.word(AS_FLOAT)), as_float, c.bitcast(number, "i64"))


def _define_pack(module: Module) -> None:
    parameters = [("ptr", "shared"), ("ptr", "record"), ("ptr", "bound"), ("ptr", "slots")]
    c = module.function("pack", "i32", parameters, kind=Code)
    shared, record, bound, slots = c.parameters
    unknown = c.block("unknown")
    conditions = c.mul(c.field(record, ENTRY, "num_conditions"), c.word(len(CONDITION)))
    descriptions = c.after(record, c.add(c.add(c.field(record, ENTRY, "num_words"), conditions), c.word(len(ENTRY))))
    with c.repeat(c.field(record, ENTRY, "num_slots")) as index:
        described = c.after(descriptions, c.mul(index, c.word(len(SLOT))))
        form, part = (c.field(described, SLOT, name) for name in ("format", "part"))
        argument = c.after(bound, c.mul(c.field(described, SLOT, "parameter"), c.word(len(BOUND))))
        passed = c.field(argument, BOUND, "passed", "ptr")
        slot, native, done = c.after(slots, index), c.block("native"), c.block("packed")
        c.leave_if(c.is_null(passed), native)
        _pack_passed(c, shared, passed, part, form, slot, done, unknown)
        c.position(native)
        _pack_native(c, argument, form, slot, unknown)
        c.br(done)
        c.position(done)
        c.put(slots, index, c.and_(c.at(slots, index), c.field(described, SLOT, "mask")))
    c.ret(DONE)
    c.position(unknown)
    c.ret(UNKNOWN)


def _pack_passed(c: Code, shared: Value, passed: Value, part: Value, form: Value, slot: Value, done, unknown) -> None:
    with c.when(c.equal(part, c.word(WHOLE))):
        c.leave_if(c.is_null(c.call("i32", "convert", shared, passed, form, slot)), unknown)
        c.br(done)
    c.leave_if(c.differ(c.class_of(passed), c.field(shared, SHARED, "tuple", "ptr")), unknown)
    item = c.python("PyTuple_GetItem", passed, part)
    c.leave_if(c.is_null(item), unknown)
    c.leave_if(c.is_null(c.call("i32", "convert", shared, item, form, slot)), unknown)
    c.br(done)


def _pack_native(c: Code, argument: Value, form: Value, slot: Value, unknown) -> None:
    """Of a number that the code itself has read: integers become floats as Python makes them."""
    value = c.field(argument, BOUND, "value")
    is_float = c.is_not_null(c.field(argument, BOUND, "is_float"))
    takes_float = c.icmp("uge", form, c.word(AS_FLOAT))
    c.leave_if(c.and_(is_float, c.xor(takes_float, const("i1", 1))), unknown)
    number = c.select(is_float, c.bitcast(value, "double"), c.sitofp(value, "double"))
    as_bool = c.zext(c.is_not_null(value), "i64")
    integer = c.select(c.equal(form, c.word(AS_BOOL)), as_bool, value)
    c.put(slot, c.word(0), c.select(takes_float, _float_word(c, number, form), integer))
    assert AS_DOUBLE > AS_FLOAT > AS_BOOL


def _define_are_packed_alike(module: Module) -> None:
    c = module.function("are_packed_alike", "i32", [("ptr", "record"), ("ptr", "other")], kind=Code)
    records, unlike = c.parameters, c.block("unlike")
    for name in ("num_conditions", "num_slots"):
        c.leave_if(c.differ(*(c.field(record, ENTRY, name) for record in records)), unlike)
    num_conditions, num_slots = (c.field(records[0], ENTRY, name) for name in ("num_conditions", "num_slots"))
    count = c.add(c.mul(num_conditions, c.word(len(CONDITION))), c.mul(num_slots, c.word(len(SLOT))))
    own, others = (
        c.after(record, c.add(c.field(record, ENTRY, "num_words"), c.word(len(ENTRY)))) for record in records
    )
    with c.repeat(count) as index:
        c.leave_if(c.differ(c.at(own, index), c.at(others, index)), unlike)
    c.ret(DONE)
    c.position(unlike)
    c.ret(UNKNOWN)
