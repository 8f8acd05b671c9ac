"""Which registers one load fills: each address once, whatever the order."""

from __future__ import annotations

import pytest
from analysis.test_axis_info import infos_of

import deuteron as triton
import deuteron.language as tl
from deuteron.analysis.addresses.load_accesses import load_accesses
from deuteron.layout.distributed import blocked
from deuteron.layout.linear import LinearLayout


@triton.jit
def loaded(x_ptr, out_ptr, n, KIND: tl.constexpr, MASK: tl.constexpr, OTHER: tl.constexpr, VOLATILE: tl.constexpr):
    i = tl.program_id(0) * 64 + tl.arange(0, 64)
    if KIND == "half":
        place = i // 2
    elif KIND == "swapped":
        place = i ^ 1
    elif KIND == "shuffled":
        place = i % 2 * 100 + i // 2
    elif KIND == "next":
        place = i + 1
    elif KIND == "holes":
        place = i * 2
    else:
        place = i
    mask = i < n if MASK == "bound" else i % 2 == 0
    if MASK == "none":
        x = tl.load(x_ptr + place, volatile=VOLATILE)
    elif OTHER:
        x = tl.load(x_ptr + place, mask=mask, other=i.to(tl.float32))
    else:
        x = tl.load(x_ptr + place, mask=mask, other=0.0)
    tl.store(out_ptr + i, x)


def accesses(layout, kind, mask="none", other=False, volatile=False):
    infos, (load, _) = infos_of(loaded, ["x_ptr", "n"], KIND=kind, MASK=mask, OTHER=other, VOLATILE=volatile)
    return load_accesses(load, layout, infos)


EIGHT = blocked((64,), (8,), (8,), (1,), (0,))
FOUR = blocked((64,), (4,), (16,), (1,), (0,))


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("half", [(0, {0: 0, 1: 0, 2: 1, 3: 1, 4: 2, 5: 2, 6: 3, 7: 3})]),
        ("swapped", [(1, {0: 1, 1: 0, 2: 3, 3: 2}), (5, {4: 1, 5: 0, 6: 3, 7: 2})]),
        ("shuffled", [(0, {0: 0, 2: 1, 4: 2, 6: 3}), (1, {1: 0, 3: 1, 5: 2, 7: 3})]),
        ("next", [(0, {0: 0}), (1, {1: 0, 2: 1}), (3, {3: 0, 4: 1, 5: 2, 6: 3}), (7, {7: 0})]),
    ],
)
def test_each_address_is_loaded_once(kind, expected):
    assert sorted(accesses(EIGHT, kind)) == expected


def test_what_is_no_element_is_not_loaded():
    assert [dict(one.elements) for one in accesses(EIGHT, "holes")] == [{register: 0} for register in range(8)]


def test_neighbours_in_other_threads_are_loaded_by_these():
    """A thread that holds every eighth element has none that share an address."""
    apart = LinearLayout.make({"register": [(8,), (16,), (32,)], "lane": [(1,), (2,), (4,)], "warp": []}, {"dim0": 64})
    assert len(accesses(apart.with_ins(("register", "lane", "warp", "block")), "half")) == 8
    assert len(accesses(FOUR, "half")) == 1


@pytest.mark.parametrize(("mask", "other", "count"), [
    ("bound", False, 1),
    ("bound", True, 8),
    ("even", False, 8),
])  # fmt: skip
def test_masks_and_other_values_must_be_the_same(mask, other, count):
    assert len(accesses(EIGHT, "half", mask, other)) == count


def test_volatile_loads_are_as_many_as_elements():
    assert len(accesses(EIGHT, "half", volatile=True)) == 8


def test_of_neighbours_as_they_are_nothing_else_is_known():
    assert sorted(accesses(EIGHT, "plain")) == [(0, {0: 0, 1: 1, 2: 2, 3: 3}), (4, {4: 0, 5: 1, 6: 2, 7: 3})]
