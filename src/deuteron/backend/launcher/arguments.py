"""Machine code for one argument of a launch: the number of its token, and what is passed for it.

    argument(shared, parameter, obj, bound)    1, or 0: it cannot tell, and an exception may be set
    constant(shared, obj, words)               the same for a constexpr, or an option

What is found here is what `runtime/specialise.py` says of the argument. Of numbers, None, arrays of NumPy and tensors
of torch the code knows how; for all others, subclasses of these included, it calls the specialiser itself. BOUND is
what is found of an argument; `passed` is what the specialiser gave, a reference of the launch's own, else `value` has
it.
"""

from __future__ import annotations

from deuteron.backend.launcher.code import NULL, Code
from deuteron.backend.launcher.object_layout import (
    NUMPY_DATA,
    NUMPY_DTYPE,
    NUMPY_FLAGS,
    NUMPY_UNUSUAL,
    NUMPY_WRITEABLE,
)
from deuteron.backend.launcher.records import (
    ALIGNED,
    ARRAYS_CALLED,
    ARRAYS_UNALIGNED,
    BY_FLOAT,
    BY_IDENTITY,
    BY_INTEGER,
    BY_TOKEN,
    NUMPY_DTYPES,
    NUMPY_TABLE,
    PARAMETER,
    READ_ONLY,
    SHARED,
    TORCH_DEVICES,
    TORCH_DTYPES,
    TORCH_TABLE,
    Record,
)
from deuteron.backend.llvm.module import Module
from deuteron.backend.llvm.types import Value, const

BOUND = Record("token value is_float passed")

DONE, UNKNOWN = const("i32", 1), const("i32", 0)


def define_arguments(module: Module) -> None:
    """Add the functions `argument` and `constant`, and those that they call."""
    _define_called(module)
    _define_integer(module)
    _define_numpy(module)
    _define_torch(module)
    _define_argument(module)
    _define_constant(module)


def _define_called(module: Module) -> None:
    """The token that a specialiser gives, if a kernel has been compiled for it, and what it passes."""
    parameters = [("ptr", "shared"), ("ptr", "specialise"), ("ptr", "obj"), ("ptr", "bound")]
    c = module.function("called", "i32", parameters, kind=Code)
    shared, specialise, obj, bound = c.parameters
    found = c.variable("ptr", NULL)
    unknown, drop = c.block("unknown"), c.block("drop")
    pair = c.python("PyObject_CallOneArg", specialise, obj)
    c.leave_if(c.is_null(pair), unknown)
    c.leave_if(c.differ(c.class_of(pair), c.field(shared, SHARED, "tuple", "ptr")), drop)
    c.leave_if(c.differ(c.python("PyTuple_Size", pair), c.word(2)), drop)
    token = c.python("PyTuple_GetItem", pair, c.word(0))
    c.look_up(c.field(shared, SHARED, "tokens", "ptr"), token, found)
    number = c.load("ptr", found)
    c.leave_if(c.is_null(number), drop)
    c.put(bound, c.word(BOUND.index("token")), c.python("PyLong_AsUnsignedLongLongMask", number))
    c.python("Py_DecRef", number)
    passed = c.python("PyTuple_GetItem", pair, c.word(1))
    c.python("Py_IncRef", passed)
    c.put(bound, c.word(BOUND.index("passed")), passed)
    c.python("Py_DecRef", pair)
    c.ret(DONE)
    c.position(drop)
    c.python("Py_DecRef", pair)
    c.br(unknown)
    c.position(unknown)
    c.ret(UNKNOWN)


def _define_integer(module: Module) -> None:
    """The token of an `int`, which depends on whether it fits 32 bits, is 1, or is positive and divisible by 16."""
    parameters = [("ptr", "parameter"), ("ptr", "obj"), ("ptr", "bound")]
    c = module.function("integer", "i32", parameters, kind=Code)
    parameter, obj, bound = c.parameters
    overflow = c.variable("i32")
    unknown = c.block("unknown")
    value = c.python("PyLong_AsLongLongAndOverflow", obj, overflow)
    c.leave_if(c.is_not_null(c.load("i32", overflow)), unknown)
    is_narrow = c.equal(c.sext(c.trunc(value, "i32"), "i64"), value)
    is_hinted = c.and_(
        c.is_null(c.and_(value, c.word(15))),
        c.icmp("sge", value, c.word(0)),
    )
    narrow = c.select(is_hinted, _token_field("i32_16"), _token_field("i32"))
    narrow = c.select(c.equal(value, c.word(1)), _token_field("i32_one"), narrow)
    wide = c.select(is_hinted, _token_field("i64_16"), _token_field("i64"))
    _finish(c, bound, c.at(parameter, c.select(is_narrow, narrow, wide)), value, unknown)


def _token_field(name: str) -> Value:
    return const("i64", PARAMETER.index(name))


def _finish(c: Code, bound: Value, token: Value, value: Value, unknown) -> None:
    """Return with this token and value, unless the token is 0."""
    c.leave_if(c.is_null(token), unknown)
    _store(c, bound, token, value)
    c.ret(DONE)
    c.position(unknown)
    c.ret(UNKNOWN)


def _store(c: Code, bound: Value, token: Value, value: Value, is_float: int = 0) -> None:
    for name, word in (("token", token), ("value", value), ("is_float", c.word(is_float))):
        c.put(bound, c.word(BOUND.index(name)), word)


def _define_numpy(module: Module) -> None:
    """The token of an `ndarray` whose dtype is in the table."""
    parameters = [("ptr", "shared"), ("ptr", "parameter"), ("ptr", "array"), ("ptr", "bound")]
    c = module.function("numpy_array", "i32", parameters, kind=Code)
    shared, parameter, array, bound = c.parameters
    unknown, search, compare, further = (c.block(name) for name in ("unknown", "search", "compare", "further"))
    flags = c.load("i32", c.gep("i8", array, c.word(NUMPY_FLAGS)))
    c.leave_if(c.is_not_null(c.and_(flags, const("i32", NUMPY_UNUSUAL))), unknown)
    dtype = c.load("i64", c.gep("i8", array, c.word(NUMPY_DTYPE)))
    data = c.load("i64", c.gep("i8", array, c.word(NUMPY_DATA)))
    start, before = c.lshr(dtype, c.word(4)), c.current_block
    c.br(search)
    c.position(search)
    place = c.phi("i64", [(start, before)])
    pair = c.after(shared, c.add(c.shl(c.and_(place, c.word(NUMPY_DTYPES - 1)), c.word(1)), c.word(NUMPY_TABLE)))
    known = c.at(pair, c.word(0))
    c.cond_br(c.equal(known, dtype), compare, further)
    c.position(further)
    c.add_incoming(place, c.add(place, c.word(1)), further)
    c.cond_br(c.is_null(known), unknown, search)
    c.position(compare)
    is_read_only = c.is_null(c.and_(flags, const("i32", NUMPY_WRITEABLE)))
    read_only = c.select(is_read_only, c.word(READ_ONLY), c.word(0))
    first = c.at(pair, c.word(1))
    c.leave_if(c.is_null(first), unknown)
    _finish(c, bound, c.add(c.add(first, read_only), _alignment(c, parameter, data)), data, unknown)


def _alignment(c: Code, parameter: Value, address: Value) -> Value:
    """What is added to the first token of an array for its address."""
    mode = c.field(parameter, PARAMETER, "arrays")
    is_aligned = c.and_(c.is_null(c.and_(address, c.word(15))), c.differ(mode, c.word(ARRAYS_UNALIGNED)))
    return c.select(is_aligned, c.word(ALIGNED), c.word(0))


def _define_torch(module: Module) -> None:
    """The token of a `Tensor` on the CPU or a GPU, through the stable C functions of torch."""
    parameters = [("ptr", "shared"), ("ptr", "parameter"), ("ptr", "tensor"), ("ptr", "bound")]
    c = module.function("torch_tensor", "i32", parameters, kind=Code)
    shared, parameter, tensor, bound = c.parameters
    kind, number, address = c.variable("i32"), c.variable("i32"), c.variable("i64")
    unknown = c.block("unknown")
    handle = c.gep("i8", tensor, c.field(shared, SHARED, "tensor_offset"))

    def ask(function: str, variable: Value) -> Value:
        status = c.call_pointer("i32", c.field(shared, SHARED, function, "ptr"), handle, variable)
        c.leave_if(c.is_not_null(status), unknown)
        return c.load("i64" if variable is address else "i32", variable)

    c.leave_if(c.is_not_null(ask("tensor_layout", number)), unknown)
    c.leave_if(is_negative(c, shared, handle), unknown)
    is_gpu = ask("tensor_device_type", kind)
    c.leave_if(c.icmp("ugt", is_gpu, const("i32", 1)), unknown)
    device = c.sext(ask("tensor_device", number), "i64")
    device = c.select(c.is_null(is_gpu), c.word(0), c.add(device, c.word(1)))
    c.leave_if(c.icmp("uge", device, c.word(TORCH_DEVICES)), unknown)
    dtype = c.zext(ask("tensor_dtype", number), "i64")
    c.leave_if(c.icmp("uge", dtype, c.word(TORCH_DTYPES)), unknown)
    place = c.add(c.add(c.mul(device, c.word(TORCH_DTYPES)), dtype), c.word(TORCH_TABLE))
    first = c.at(shared, place)
    c.leave_if(c.is_null(first), unknown)
    data = ask("tensor_data", address)
    c.leave_if(c.is_null(data), unknown)  # where it has elements, they have no memory
    _finish(c, bound, c.add(first, _alignment(c, parameter, data)), data, unknown)


def is_negative(c: Code, shared: Value, handle: Value) -> Value:
    """Whether the elements of a tensor are in memory with the other sign: Python says what to do."""
    keys = c.load("i64", c.gep("i8", c.load("ptr", handle), c.field(shared, SHARED, "tensor_keys")))
    return c.is_not_null(c.and_(keys, c.field(shared, SHARED, "tensor_negative")))


def _define_argument(module: Module) -> None:
    parameters = [("ptr", "shared"), ("ptr", "parameter"), ("ptr", "obj"), ("ptr", "bound")]
    c = module.function("argument", "i32", parameters, kind=Code)
    shared, parameter, obj, bound = c.parameters
    call = c.block("call")
    kind = c.class_of(obj)
    c.put(bound, c.word(BOUND.index("passed")), NULL)

    def is_class(name: str) -> Value:
        return c.equal(kind, c.field(shared, SHARED, name, "ptr"))

    def simple(field: str, value: Value, is_float: int = 0) -> None:
        token = c.field(parameter, PARAMETER, field)
        c.leave_if(c.is_null(token), call)
        _store(c, bound, token, value, is_float)
        c.ret(DONE)

    def as_array(function: str) -> None:
        c.leave_if(c.equal(c.field(parameter, PARAMETER, "arrays"), c.word(ARRAYS_CALLED)), call)
        c.leave_if(c.is_null(c.call("i32", function, shared, parameter, obj, bound)), call)
        c.ret(DONE)

    with c.when(c.or_(is_class("tensor"), is_class("parameter"))):
        as_array("torch_tensor")
    with c.when(is_class("int")):
        c.leave_if(c.is_null(c.call("i32", "integer", parameter, obj, bound)), call)
        c.ret(DONE)
    with c.when(is_class("ndarray")):
        as_array("numpy_array")
    with c.when(is_class("float")):
        simple("float", c.bitcast(c.python("PyFloat_AsDouble", obj), "i64"), is_float=1)
    for name, value in (("none", 0), ("true", 1), ("false", 0)):
        with c.when(c.equal(obj, c.field(shared, SHARED, name, "ptr"))):
            simple(name, c.word(value))
    c.br(call)
    c.position(call)
    c.ret(c.call("i32", "called", shared, c.field(parameter, PARAMETER, "specialise", "ptr"), obj, bound))


def _define_constant(module: Module) -> None:
    """The two words of a constant: how it is compared, and as what."""
    c = module.function("constant", "i32", [("ptr", "shared"), ("ptr", "obj"), ("ptr", "words")], kind=Code)
    shared, obj, words = c.parameters
    overflow, found = c.variable("i32"), c.variable("ptr", NULL)
    bound = c.alloca("i64", len(BOUND), align=8)
    unknown, call = c.block("unknown"), c.block("call")
    kind = c.class_of(obj)

    def finish(how: int, value: Value) -> None:
        c.put(words, c.word(0), c.word(how))
        c.put(words, c.word(1), value)
        c.ret(DONE)

    with c.when(c.equal(kind, c.field(shared, SHARED, "int", "ptr"))):
        value = c.python("PyLong_AsLongLongAndOverflow", obj, overflow)
        c.leave_if(c.is_not_null(c.load("i32", overflow)), call)
        finish(BY_INTEGER, value)
    for name in ("none", "true", "false"):
        with c.when(c.equal(obj, c.field(shared, SHARED, name, "ptr"))):
            finish(BY_IDENTITY, c.ptrtoint(obj))
    with c.when(c.equal(kind, c.field(shared, SHARED, "float", "ptr"))):
        finish(BY_FLOAT, c.bitcast(c.python("PyFloat_AsDouble", obj), "i64"))
    with c.when(c.equal(kind, c.field(shared, SHARED, "str", "ptr"))):
        c.look_up(c.field(shared, SHARED, "strings", "ptr"), obj, found)
        number = c.load("ptr", found)
        c.leave_if(c.is_null(number), unknown)
        value = c.python("PyLong_AsUnsignedLongLongMask", number)
        c.python("Py_DecRef", number)
        finish(BY_TOKEN, value)
    c.look_up(c.field(shared, SHARED, "identities", "ptr"), kind, found)
    known = c.load("ptr", found)
    with c.when(c.is_not_null(known)):
        c.python("Py_DecRef", known)
        finish(BY_IDENTITY, c.ptrtoint(obj))
    c.leave_if(c.has_raised(), unknown)
    c.br(call)
    c.position(call)
    status = c.call("i32", "called", shared, c.field(shared, SHARED, "constant", "ptr"), obj, bound)
    c.leave_if(c.is_null(status), unknown)
    c.python("Py_DecRef", c.at(bound, c.word(BOUND.index("passed")), "ptr"))
    finish(BY_TOKEN, c.at(bound, c.word(BOUND.index("token"))))
    c.position(unknown)
    c.ret(UNKNOWN)
