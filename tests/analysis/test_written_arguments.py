"""Which arguments a kernel writes, through pointers and descriptors, and which loads are apart from that."""

import pytest

import deuteron
import deuteron.language as tl
from deuteron.analysis.aliasing.points_to import Targets
from deuteron.analysis.aliasing.written_arguments import is_apart, written_arguments
from deuteron.frontend import lower_function
from deuteron.ir.tt.descriptor import DescriptorLoadOp
from deuteron.ir.tt.memory import LoadOp


@deuteron.jit
def kernel(a_ptr, b_ptr, n, KIND: tl.constexpr):
    """Reads a in both ways; writes one of the arguments, or where another pointer says."""
    i = tl.arange(0, 16)
    a = tl.make_tensor_descriptor(a_ptr, [n], [1], [16])
    b = tl.make_tensor_descriptor(b_ptr, [n], [1], [16])
    x = tl.load(a_ptr + i) + a.load([0])
    if KIND == "store":
        tl.store(b_ptr + i, x)
    elif KIND == "atomic":
        tl.atomic_add(b_ptr + i, x)
    elif KIND == "block":
        b.store([0], x)
    elif KIND == "reduction":
        b.atomic_add([0], x)
    elif KIND == "same":
        a.store([0], x)
    elif KIND == "unknown":
        tl.store((a_ptr if n > 3 else b_ptr) + i, x)


def function(kind: str):
    signature = {"a_ptr": "*fp32", "b_ptr": "*fp32", "n": "i32", "KIND": "constexpr"}
    module = lower_function(kernel, signature, {"KIND": kind}, {})
    return next(iter(module.ops))


@pytest.mark.parametrize("kind", ["store", "atomic", "block", "reduction"])
def test_writes_of_every_kind_are_seen(kind: str):
    func = function(kind)
    assert written_arguments(func) == Targets(frozenset({func.args[1]}))


@pytest.mark.parametrize(
    ("kind", "expected"), [("nothing", True), ("store", True), ("block", True), ("same", False), ("unknown", False)]
)
@pytest.mark.parametrize("load", [LoadOp, DescriptorLoadOp])
def test_loads_apart_from_what_is_written(kind: str, expected: bool, load: type):
    func = function(kind)
    (read,) = (op for op in func.walk() if isinstance(op, load))
    assert is_apart(read, written_arguments(func)) == expected
