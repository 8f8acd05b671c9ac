"""What a kernel may ask of values, types and its target while it is compiled."""

from __future__ import annotations

import enum

import pytest
from ir_text import generic_text

import deuteron.language as tl
from deuteron import aggregate
from deuteron.frontend import lower_function
from deuteron.language.functions.function import Function as jit
from deuteron.language.functions.source_functions import constexpr_function
from deuteron.options import Target

ANNOTATED: tl.constexpr = 16


class Mode(enum.Enum):
    PLAIN = 1
    SCALED = 2


@constexpr_function
def rank_of(x, plus=0):
    return len(x.shape) + plus


def test_attributes_by_name(check_ir):
    @jit
    def kernel(p, n):
        # CHECK: "tt.make_range"() <{start = 0 : i32, end = 16 : i32}>
        tl.static_assert(hasattr(n, "dtype") and not hasattr(n, "colour") and hasattr(p, "to"))
        tl.static_assert(getattr(n, "dtype") == tl.int32 and getattr(n, "colour", 3) == 3)  # noqa: B009
        tl.static_assert(isinstance(n, tl.tensor) and type(n) is tl.tensor)
        tl.static_assert(isinstance((n, 1), tl.tuple) and not isinstance((n, 1), tl.constexpr))
        tl.static_assert(isinstance((n, 1).type, tl.tuple_type) and (n, 1).type[0] == tl.int32)
        tl.static_assert(isinstance(ANNOTATED.type, tl.constexpr_type) and ANNOTATED.type.value == 16)
        tl.static_assert(isinstance(p.dtype, tl.pointer_type) and p.dtype.element_ty == tl.float32)
        tl.arange(0, ANNOTATED)

    check_ir(kernel, "*fp32 i32")


def test_compile_time_function_of_a_run_time_value(check_ir):
    @jit
    def kernel(n):
        # CHECK: end = 4
        tl.static_assert(rank_of(n) == 0)
        tl.arange(0, 2 * rank_of(tl.zeros((4,), tl.int32), plus=1))

    check_ir(kernel, "i32")


def test_members_of_enums(check_ir):
    @jit
    def kernel(n, MODE: tl.constexpr):
        # CHECK: end = 8
        tl.arange(0, 8 if MODE is Mode.SCALED and MODE.value == 2 else 4)

    check_ir(kernel, "i32", MODE=Mode.SCALED)


def test_condition_is_its_value(check_ir):
    @jit
    def kernel(n):
        # CHECK: %[[LESS:.*]] = "arith.cmpi"
        # CHECK: "scf.condition"(%[[LESS]]
        i = 0
        while tl.condition(i < n, disable_licm=True):
            i += 1

    check_ir(kernel, "i32")


@jit
def asks(p):
    if tl.target_info.cuda_capability_geq(9, 0):
        tl.store(p, 90)
    elif tl.target_info.is_cuda():
        tl.store(p, 80)
    else:
        tl.store(p, 0)


@pytest.mark.parametrize(
    ("target", "stored"),
    [(Target("cuda", 90), 90), (Target("cuda", 100), 90), (Target("cuda", 86), 80), (Target("cpu", "native"), 0)],
)
def test_target(target, stored):
    text = generic_text(lower_function(asks, {"p": "*i32"}, {}, target=target), locations=False)
    assert f"value = {stored} : i32" in text and text.count("tt.store") == 1
    assert "value = 0 : i32" in generic_text(lower_function(asks, {"p": "*i32"}, {}), locations=False)


@constexpr_function
def stage():
    target = tl.target_info.current_target()
    return 0 if target is None else 2 if tl.target_info.cuda_capability_geq(9) else 1


@jit
def asks_in_python(p):
    tl.store(p, stage())


@pytest.mark.parametrize(("target", "stored"), [(Target("cuda", 90), 2), (Target("cpu", "native"), 1), (None, 0)])
def test_a_function_of_python_asks_for_the_target_of_the_kernel(target, stored):
    text = generic_text(lower_function(asks_in_python, {"p": "*i32"}, {}, target=target), locations=False)
    assert f"value = {stored} : i32" in text


def test_python_asks_for_the_target_of_a_launch(monkeypatch):
    monkeypatch.setenv("DEUTERON_TARGET", "cuda:90")
    info = tl.target_info
    assert info.is_cuda() and info.cuda_capability_geq(9) and not info.cuda_capability_geq(10, minor=0)
    monkeypatch.setenv("DEUTERON_TARGET", "cpu")
    assert not (info.is_cuda() or info.is_hip()) and info.current_target().backend == "cpu"


def test_the_name_of_a_kernel():
    assert "asked" in generic_text(lower_function(asks, {"p": "*i32"}, {}, name="asked"), locations=False)


def test_aggregates_on_the_host():
    @aggregate
    class Pair:
        first: tl.tensor
        SECOND: tl.constexpr = 2

        @constexpr_function
        def twice(self):
            return 2 * self.SECOND

    @aggregate
    class Named(Pair):
        name: tl.constexpr

        def __init__(self, first):
            self.first, self.SECOND, self.name = first, tl.constexpr(7), "x"

    assert repr(Pair(1)) == "Pair(first=1, SECOND=2)" and Pair(1).twice().value == 4
    assert isinstance(Pair(1).SECOND, tl.constexpr) and Pair(1)._replace(SECOND=3).SECOND == 3
    assert repr(Named(3)) == "Named(first=3, SECOND=7, name='x')" and Named(3).twice() == 14
    assert repr(tl.aggregate_replace(Pair(1), first=5)) == "Pair(first=5, SECOND=2)"
    with pytest.raises(TypeError, match="gives 'first' no value"):
        Pair()
    with pytest.raises(TypeError, match="no field 'frist'. Did you mean 'first'"):
        Pair(frist=3)
    with pytest.raises(AttributeError, match="cannot assign to 'first' of Pair"):
        Pair(1).first = 3


def test_fields_after_one_with_a_default():
    @aggregate
    class Base:
        x: tl.constexpr = 100

    @aggregate
    class Child(Base):
        y: tl.constexpr

    assert repr(Child(y=7)) == "Child(x=100, y=7)" and isinstance(Child(1, 2).y, tl.constexpr)


def test_aggregates_that_cannot_be():
    from deuteron.errors import UsageError

    class Pair:
        first: tl.tensor

        @jit
        def __init__(self, first):
            pass

    with pytest.raises(UsageError, match="is a @jit function"):
        aggregate(Pair)

    class Plain(Mode.__class__):
        x: tl.tensor

    with pytest.raises(TypeError, match="which is no aggregate"):
        aggregate(Plain)


@aggregate
class Ends:
    first: tl.tensor
    last: tl.tensor

    def __init__(self, size, _semantic=None):
        self.first = tl.arange(0, size, _semantic=_semantic)
        self.last = tl.arange(size, 2 * size, _semantic=_semantic)

    def __getitem__(self, index):
        return (self.first, self.last)[index]

    @staticmethod
    def of(size):
        return Ends(size)


def test_plain_functions_of_an_aggregate(check_ir):
    """They run while the kernel is compiled; with `_semantic` they call functions of the language."""

    @jit
    def kernel():
        # CHECK: %[[FIRST:.*]] = "tt.make_range"() <{start = 0 : i32, end = 8 : i32}>
        # CHECK: %[[LAST:.*]] = "tt.make_range"() <{start = 8 : i32, end = 16 : i32}>
        # CHECK: "arith.subi"(%[[LAST]], %[[FIRST]])
        ends = Ends(8)
        x = ends[1] - ends[0]  # noqa: F841

    check_ir(kernel)


def next_even(size, offset, *, _semantic):
    """As programs for Triton mark functions of their own: what is known comes as a constexpr."""
    assert isinstance(size, tl.constexpr) and not isinstance(offset, tl.constexpr)
    return tl.constexpr(size.value + size.value % 2)


next_even.__triton_builtin__ = True


def test_functions_of_python_marked_as_triton_does(check_ir):
    @jit
    def kernel(n):
        # CHECK: end = 8
        tl.arange(0, next_even(7, n) + 0)

    check_ir(kernel, "i32")


def test_declared_constexprs(check_ir):
    @jit
    def kernel(n):
        # CHECK: end = 4
        # CHECK: end = 8
        m: tl.constexpr
        k: tl.constexpr
        _, m = n, 4
        tl.arange(0, m)
        if (k := 2 * m) == 8:
            tl.arange(0, k)

    check_ir(kernel, "i32")
