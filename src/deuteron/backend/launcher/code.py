"""Functions of LLVM IR in the way of C: variables, early exits, and calls of CPython's C API.

    c = module.function("first_item", "ptr", [("ptr", "pair")], kind=Code)
    item = c.python("PyTuple_GetItem", c.parameters[0], c.word(0))
    with c.when(c.is_null(item)):
        c.leave(fail)                           a block; or c.ret(value)
    c.python("Py_IncRef", item)
    c.ret(item)

The C API's functions are those that the interpreter exports, all of the stable ABI. The class of an object is read
where it lies in a PyObject (`object_layout.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from deuteron.backend.launcher.object_layout import IS_FREE_THREADED, OBJECT_BYTES
from deuteron.backend.launcher.records import WORD, Record
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.control_flow import Block
from deuteron.backend.llvm.types import Value, const

NULL = const("ptr", 0)

# What the functions return, and what they take.
API = {
    "PyBytes_AsString": "ptr ptr",
    "PyCFunction_NewEx": "ptr ptr ptr ptr",
    "PyCallable_Check": "i32 ptr",
    "PyCell_Get": "ptr ptr",
    "PyDict_Copy": "ptr ptr",
    "PyDict_GetItemRef": "i32 ptr ptr ptr",
    "PyDict_GetItemWithError": "ptr ptr ptr",
    "PyDict_New": "ptr",
    "PyDict_SetItem": "i32 ptr ptr ptr",
    "PyErr_CheckSignals": "i32",
    "PyErr_Clear": "void",
    "PyErr_ExceptionMatches": "i32 ptr",
    "PyErr_Fetch": "void ptr ptr ptr",
    "PyErr_NormalizeException": "void ptr ptr ptr",
    "PyErr_Occurred": "ptr",
    "PyEval_RestoreThread": "void ptr",
    "PyEval_SaveThread": "ptr",
    "PyException_SetTraceback": "i32 ptr ptr",
    "PyFloat_AsDouble": "double ptr",
    "PyBytes_FromStringAndSize": "ptr ptr i64",
    "PyGILState_Ensure": "i32",
    "PyGILState_Release": "void i32",
    "PyLong_AsLongLongAndOverflow": "i64 ptr ptr",
    "PyLong_AsUnsignedLongLongMask": "i64 ptr",
    "PyLong_FromLongLong": "ptr i64",
    "PyLong_FromUnsignedLongLong": "ptr i64",
    "PyObject_Call": "ptr ptr ptr ptr",
    "PyObject_CallOneArg": "ptr ptr ptr",
    "PyObject_GetAttr": "ptr ptr ptr",
    "PyObject_GetItem": "ptr ptr ptr",
    "PyObject_IsTrue": "i32 ptr",
    "PyObject_SetAttr": "i32 ptr ptr ptr",
    "PyTuple_GetItem": "ptr ptr i64",
    "PyTuple_New": "ptr i64",
    "PyTuple_SetItem": "i32 ptr i64 ptr",
    "PyTuple_Size": "i64 ptr",
    "PyType_IsSubtype": "i32 ptr ptr",
    "Py_DecRef": "void ptr",
    "Py_IncRef": "void ptr",
}


class Code(Builder):
    """One function being built."""

    def word(self, number: int) -> Value:
        return const("i64", number)

    def python(self, name: str, *args: Value) -> Value:
        """Call a function of the C API."""
        result, *types = API[name].split()
        assert [arg.type for arg in args] == types, (name, args)
        return self.call(result, name, *args)

    def variable(self, type: str, start: Value | None = None) -> Value:
        """The address of a variable of this call. Made in the entry block, before any other."""
        assert self.current_block is self.entry_block
        address = self.alloca(type, align=WORD)
        if start is not None:
            self.store(start, address)
        return address

    def field(self, record: Value, layout: Record, name: str, type: str = "i64") -> Value:
        """The value of a word of a record."""
        return self.at(record, self.word(layout.index(name)), type)

    def at(self, words: Value, index: Value, type: str = "i64") -> Value:
        """The value of one of many words."""
        return self.load(type, self.gep("i64", words, index), align=WORD)

    def put(self, words: Value, index: Value, value: Value) -> None:
        self.store(value, self.gep("i64", words, index), align=WORD)

    def after(self, words: Value, count: Value | int) -> Value:
        """The address so many words later."""
        return self.gep("i64", words, self.word(count) if isinstance(count, int) else count)

    def increase(self, variable: Value, by: Value | int = 1) -> Value:
        """Add to a variable; the value before."""
        value = self.load("i64", variable)
        self.store(self.add(value, self.word(by) if isinstance(by, int) else by), variable)
        return value

    def is_null(self, value: Value) -> Value:
        return self.icmp("eq", value, const(value.type, 0))

    def is_not_null(self, value: Value) -> Value:
        return self.icmp("ne", value, const(value.type, 0))

    def equal(self, a: Value, b: Value) -> Value:
        return self.icmp("eq", a, b)

    def differ(self, a: Value, b: Value) -> Value:
        return self.icmp("ne", a, b)

    def has_raised(self) -> Value:
        """Whether an exception is set. What is called with one set may take it for its own."""
        return self.is_not_null(self.python("PyErr_Occurred"))

    def class_of(self, obj: Value) -> Value:
        return self.load("ptr", self.gep("i8", obj, self.word(OBJECT_BYTES - WORD)))

    @contextmanager
    def when(self, condition: Value) -> Iterator[None]:
        """What is built within runs where the condition holds. It may leave."""
        then, end = self.block("then"), self.block("end")
        self.cond_br(condition, then, end)
        self.position(then)
        yield
        if not self.has_left:
            self.br(end)
        self.position(end)

    @contextmanager
    def repeat(self, count: Value) -> Iterator[Value]:
        """A loop over 0, 1, ... below a count that is not negative; its body may leave the function."""
        with self.loop(self.word(0), count, self.word(1)) as loop:
            yield loop.index

    def leave(self, block: Block) -> None:
        self.br(block)

    def leave_if(self, condition: Value, block: Block) -> None:
        further = self.block("on")
        self.cond_br(condition, block, further)
        self.position(further)

    @property
    def has_left(self) -> bool:
        lines = self.current_block.lines
        return bool(lines) and lines[-1].lstrip().startswith(("br ", "ret ", "unreachable"))

    def look_up(self, dictionary: Value, key: Value, found: Value) -> None:
        """Store a new reference to what a dictionary has, or NULL, into a variable. NULL may be with an exception."""
        if IS_FREE_THREADED:
            self.python("PyDict_GetItemRef", dictionary, key, found)
            return
        value = self.python("PyDict_GetItemWithError", dictionary, key)
        self.store(value, found)
        with self.when(self.is_not_null(value)):
            self.python("Py_IncRef", value)

    def set_item(self, items: Value, index: Value, obj: Value) -> None:
        """Put an object into a new tuple, which gets a reference of its own."""
        self.python("Py_IncRef", obj)
        self.python("PyTuple_SetItem", items, index, obj)

    def call_with(self, function: Value, args: Sequence[Value], result: Value) -> None:
        """Call a function of Python; its result goes into a variable, NULL where it raised."""
        self.store(NULL, result)
        items = self.python("PyTuple_New", self.word(len(args)))
        with self.when(self.is_not_null(items)):
            for index, arg in enumerate(args):
                self.set_item(items, self.word(index), arg)
            self.store(self.python("PyObject_Call", function, items, NULL), result)
            self.python("Py_DecRef", items)
