"""Which arguments a pointer may point into: through what moves it, loops, branches, descriptors; else unknown."""

import pytest

import deuteron
import deuteron.language as tl
from deuteron.analysis.aliasing.points_to import UNKNOWN, Targets, points_to
from deuteron.frontend import lower_function
from deuteron.ir.tt.descriptor import DescriptorStoreOp
from deuteron.ir.tt.memory import StoreOp


@deuteron.jit
def found(a, n):
    """Which returns from a loop, or after it."""
    for k in range(n):
        if k == 3:
            return a + k
    return a


@deuteron.jit
def kernel(a, b, table, n, KIND: tl.constexpr):
    """Stores through a pointer that was come by in one of many ways."""
    i = tl.arange(0, 16)
    p, q = a, b
    if KIND == "moved":
        p = (p + n).to(tl.pointer_type(tl.int32)).to(tl.pointer_type(tl.float32))
        p = tl.trans(tl.reshape(p + i, (4, 4)))
    elif KIND == "advanced":
        for _ in range(n):
            p += 16
    elif KIND == "exchanged":
        for _ in range(n):
            p, q = q, p
    elif KIND == "exchanged in while":
        k = n
        while k > 0:
            p, q = q, p + 1
            k -= 1
    elif KIND == "taken in while":
        k = n
        while k > 0:
            p = q
            k -= 1
    elif KIND == "branch":
        if n > 3:
            p = q + 1
    elif KIND == "select":
        p = tl.where(i > n, p + i, q + i)
    elif KIND == "joined":
        p = tl.join(p + i, q + i)
    elif KIND == "loaded":
        p = tl.load(table + n).to(tl.pointer_type(tl.float32))
    elif KIND == "loaded in some round":
        for _ in range(n):
            p = tl.load(table + n).to(tl.pointer_type(tl.float32))
    elif KIND == "left early":
        for k in range(n):
            if k == 3:
                return
            if k > 4:
                n += 1
                if n > 5:
                    return
                p = q + k
    elif KIND == "integer":
        p = (p.to(tl.int64) + n).to(tl.pointer_type(tl.float32))
    elif KIND == "null":
        p = tl.full((16,), 0, tl.int64).to(tl.pointer_type(tl.float32))
    elif KIND == "null and an address":
        p = tl.reshape(tl.full((16,), 0, tl.int64).to(tl.pointer_type(tl.float32)) + i, (4, 4))
    elif KIND == "null on a path":
        p = tl.where(i > n, p + i, tl.full((16,), 0, tl.int64).to(tl.pointer_type(tl.float32))) + n
    elif KIND == "null and a path's offset":
        p = tl.full((16,), 0, tl.int64).to(tl.pointer_type(tl.float32))
        for k in range(n):
            p += k
    elif KIND == "absent on a path":
        p = found(a, n) + i
    if KIND == "block":
        tl.make_tensor_descriptor(p + n, [n], [1], [16]).store([0], i.to(tl.float32))
    else:
        tl.store(p, 1.0)


def stored_through(kind: str):
    signature = {"a": "*fp32", "b": "*fp32", "table": "*i64", "n": "i32", "KIND": "constexpr"}
    func = next(iter(lower_function(kernel, signature, {"KIND": kind}, {}).ops))
    (store,) = (op for op in func.walk() if isinstance(op, StoreOp | DescriptorStoreOp))
    return func, store.operands[0]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("plain", "a"),
        ("moved", "a"),
        ("advanced", "a"),
        ("block", "a"),
        ("exchanged", "ab"),
        ("exchanged in while", "ab"),
        ("taken in while", "ab"),
        ("branch", "ab"),
        ("left early", "ab"),
        ("select", "ab"),
        ("joined", "ab"),
        ("null", ""),
        ("absent on a path", "a"),
    ],
)
def test_arguments(kind: str, expected: str):
    func, pointer = stored_through(kind)
    named = dict(zip("ab", func.args, strict=False))
    assert points_to(pointer) == Targets(frozenset(named[name] for name in expected))


@pytest.mark.parametrize(
    "kind",
    [
        "loaded",
        "loaded in some round",
        "integer",
        "null and an address",
        "null on a path",
        "null and a path's offset",
    ],
)
def test_unknown(kind: str):
    assert points_to(stored_through(kind)[1]) == UNKNOWN
    assert points_to(None) == UNKNOWN


def test_what_is_shared():
    func, _ = stored_through("plain")
    a, b = (Targets(frozenset({argument})) for argument in func.args[:2])
    assert a.shares(a | b) and not a.shares(b)
    assert UNKNOWN.shares(a) and UNKNOWN.shares(UNKNOWN) and a.shares(b | UNKNOWN)
    assert not Targets().shares(UNKNOWN) and not Targets()
