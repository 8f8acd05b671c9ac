"""ASTSource: Triton's constructor in all its spellings; fingerprints."""

from dataclasses import dataclass

import pytest

import deuteron
import deuteron.language as tl
from deuteron.compiler import ASTSource
from deuteron.errors import UsageError
from deuteron.language.functions.stable_text import stable_repr


@deuteron.jit
def scale(x_ptr, n, factor, BLOCK: tl.constexpr, KIND: tl.constexpr = None):
    pass


SIGNATURE = {"x_ptr": "*fp32", "n": "i32", "factor": "fp32", "BLOCK": "constexpr"}


@pytest.mark.parametrize("key", ["BLOCK", 3, (3,)])
def test_constexprs_by_name_index_or_path(key):
    source = ASTSource(scale, SIGNATURE, {key: 128})
    assert source.constexprs == {"BLOCK": 128, "KIND": None}
    assert source.signature == {**SIGNATURE, "KIND": "constexpr"}


def test_constexprs_by_their_older_name():
    source = ASTSource(fn=scale, signature=SIGNATURE, constants={"BLOCK": 128})
    assert source.constexprs == {"BLOCK": 128, "KIND": None}


def test_attributes_by_path_become_divisibility():
    source = ASTSource(scale, SIGNATURE, {"BLOCK": 128}, {(0,): [["tt.divisibility", 16]]})
    assert source.attrs == {"x_ptr": (("tt.divisibility", 16),)}
    assert [param.divisibility for param in source.params] == [16, 1, 1, 1, 1]
    assert [param.kind for param in source.params] == ["pointer", "scalar", "scalar", "constexpr", "constexpr"]


def test_a_constexpr_overrides_the_type_of_the_signature():
    assert ASTSource(scale, SIGNATURE, {"BLOCK": 128, "n": 1}).signature["n"] == "constexpr"


def test_a_parameter_without_type_is_named():
    with pytest.raises(UsageError, match="kernel 'scale' has no type for parameter 'n'"):
        ASTSource(scale, {"x_ptr": "*fp32", "factor": "fp32"}, {"BLOCK": 1})


def test_a_constexpr_without_value_is_named():
    with pytest.raises(UsageError, match="has no value for parameter 'BLOCK'"):
        ASTSource(scale, SIGNATURE)


@pytest.mark.parametrize("key", ["BLOK", 9, (9, 2)])
def test_an_unknown_parameter_is_named(key):
    with pytest.raises(UsageError, match="has no parameter .*it has x_ptr, n, factor, BLOCK, KIND"):
        ASTSource(scale, SIGNATURE, {key: 128})


def test_a_plain_function_is_not_a_kernel():
    with pytest.raises(UsageError, match="decorated with @jit"):
        ASTSource(len, {})


def test_the_fingerprint_tells_types_of_constants_apart():
    found = {
        ASTSource(scale, SIGNATURE, {"BLOCK": value}).hash()
        for value in (1, 1.0, True, "1", (1,), [1], None, tl.float32)
    }
    assert len(found) == 8


def test_the_fingerprint_has_no_addresses():
    assert stable_repr((tl.float16, scale, tl.constexpr(3), int)).count(" at 0x") == 0
    assert stable_repr(tl.constexpr(3)) == stable_repr(3)


class Sizes:
    def __init__(self, rows):
        self.rows = rows

    def twice(self):
        return 2 * self.rows


@dataclass(frozen=True)
class Shape:
    rows: int

    @property
    def half(self):
        return self.rows // 2


def fingerprint(value):
    return ASTSource(scale, SIGNATURE, {"BLOCK": value}).hash()


def test_objects_that_say_nothing_of_themselves_are_told_apart_also_where_one_takes_the_address_of_another():
    kept = Sizes(0)
    found = [fingerprint(Sizes(rows)) for rows in range(20)]
    assert len(set(found)) == 20
    assert fingerprint(kept) == fingerprint(kept) != fingerprint((kept,))


def test_the_fingerprint_has_the_methods_of_an_object(monkeypatch):
    before = fingerprint(Shape(3)), fingerprint((Shape(3),))
    assert before == (fingerprint(Shape(3)), fingerprint((Shape(3),)))
    monkeypatch.setattr(Shape, "half", property(Sizes.twice))
    assert not {fingerprint(Shape(3)), fingerprint((Shape(3),))} & set(before)


def test_paths_into_a_tuple():
    types = {"x_ptr": "*fp32", "n": ("i32", ("i32", "constexpr")), "factor": "fp32"}
    source = ASTSource(scale, types, {(1, 1, 1): 3, "BLOCK": 8, "n_0": 2}, {(1, 1, 0): [["tt.divisibility", 16]]})
    assert source.signature["n"] == ("constexpr", ("i32", "constexpr"))
    assert source.constexprs == {"n_1_1": 3, "BLOCK": 8, "n_0": 2, "KIND": source.constexprs["KIND"]}
    assert source.attrs == {"n_1_0": (("tt.divisibility", 16),)}
    assert [param.name for param in source.params][:4] == ["x_ptr", "n_0", "n_1_0", "n_1_1"]
    with pytest.raises(UsageError, match="has no item 2 of 'n'"):
        ASTSource(scale, types, {(1, 2): 3})


@deuteron.jit(repr=lambda given: f"scale_by_{given.constants['FACTOR']}_{given.signature['x'][1:]}")
def named(x, FACTOR: tl.constexpr):
    tl.store(x, FACTOR)


def test_repr_names_the_compiled_kernel():
    kernel = deuteron.compile(ASTSource(named, {"x": "*fp32"}, {"FACTOR": 3}), "cpu")
    assert kernel.name == kernel.metadata.symbol == "scale_by_3_fp32"
    assert "@scale_by_3_fp32" in kernel.asm["llir"] and "scale_by_3_fp32" in kernel.asm["ttir"]
    with pytest.raises(UsageError, match="gives the name 'scale_by_-1_fp32', expected letters"):
        ASTSource(named, {"x": "*fp32"}, {"FACTOR": -1})
