"""By how much neighbours differ, of numbers that are computed in many ways: as it is, or not known."""

from __future__ import annotations

import numpy as np
import pytest
from analysis.test_axis_info import infos_of

import deuteron as triton
import deuteron.language as tl
from deuteron.analysis.axis.distances import Distances

COUNT = 8


@triton.jit
def at(x_ptr, n, KIND: tl.constexpr, START: tl.constexpr):
    i = tl.program_id(0) * 64 + tl.arange(0, 64) + START
    if KIND == "half":
        place = i // 2
    elif KIND == "swapped":
        place = i ^ 1
    elif KIND == "pairs":
        place = i // 2 % 4096 * 2
    elif KIND == "shuffled":
        place = i % 2 * 100 + i // 2
    elif KIND == "reversed":
        place = i // 64 * 64 + (63 - i % 64)
    elif KIND == "two levels":
        place = i // 8 * 4 + i % 4
    elif KIND == "bits":
        place = (i | 3) + (i & 4) - (i >> 1)
    elif KIND == "twice":
        place = (i + i).to(tl.int64) * 3
    else:
        place = i // 3
    tl.store(x_ptr + place, 0.0)


KNOWN = {
    "half": (16, (0, 0, 4, 4, 8, 8, 12, 12)),
    "swapped": (16, (4, 0, 12, 8, 20, 16, 28, 24)),
    "pairs": (16, (0, 0, 8, 8, 16, 16, 24, 24)),
    "shuffled": (16, (0, 400, 4, 404, 8, 408, 12, 412)),
    "reversed": (16, tuple(range(63 * 4, 55 * 4, -4))),
    "two levels": (16, (0, 4, 8, 12, 0, 4, 8, 12)),
    "bits": (16, (12, 12, 8, 8, 36, 36, 32, 32)),
    "twice": (16, tuple(range(0, 24 * 8, 24))),
}


@pytest.mark.parametrize("kind", [*KNOWN, "thirds"])
def test_what_is_known(kind):
    infos, (store,) = infos_of(at, ["x_ptr"], KIND=kind, START=0)
    known = infos.distances(store.ptr, 0, COUNT)
    assert known == (Distances(*KNOWN[kind]) if kind in KNOWN else None)


@pytest.mark.parametrize("kind", ["half", "swapped", "pairs", "two levels", "reversed"])
@pytest.mark.parametrize("start", [1, 4, 6])
def test_neighbours_that_do_not_begin_at_a_multiple(kind, start):
    """Eight from 4 on are in two groups of eight: of four it is known, of which none begin at 1 or 6."""
    infos, (store,) = infos_of(at, ["x_ptr"], KIND=kind, START=start)
    assert infos.distances(store.ptr, 0, COUNT) is None
    assert (infos.distances(store.ptr, 0, 4) is None) == (start != 4)


@triton.jit
def signed(x_ptr, n, BY: tl.constexpr, UNSIGNED: tl.constexpr):
    i = (n // 64) * 64 + tl.arange(0, 64)
    if UNSIGNED:
        i = i.to(tl.uint32)
    tl.store(x_ptr + i // BY + i % BY, 0.0)


@pytest.mark.parametrize("unsigned", [False, True])
def test_what_may_be_negative_is_not_rounded_down(unsigned):
    """-3 // 2 is -1, as -2 // 2 is."""
    infos, (store,) = infos_of(signed, ["x_ptr", "n"], BY=2, UNSIGNED=unsigned)
    assert (infos.distances(store.ptr, 0, COUNT) is not None) == unsigned


OPS = ("+", "-", "*", "//", "%", "^", "|", "&", "<<", ">>", "both", "wide")


@triton.jit
def computed(x_ptr, out_ptr, n, STEPS: tl.constexpr, NUMBERS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    place = i
    for step in tl.static_range(len(STEPS)):
        number: tl.constexpr = NUMBERS[step]
        if STEPS[step] == "+":
            place = place + number
        elif STEPS[step] == "-":
            place = number * 16 - place
        elif STEPS[step] == "*":
            place = place * number
        elif STEPS[step] == "//":
            place = place // number
        elif STEPS[step] == "%":
            place = place % number
        elif STEPS[step] == "^":
            place = place ^ number
        elif STEPS[step] == "|":
            place = place | number
        elif STEPS[step] == "&":
            place = place & (64 * number - 1 - number)
        elif STEPS[step] == "<<":
            place = place << (number % 4)
        elif STEPS[step] == ">>":
            place = place >> (number % 4)
        elif STEPS[step] == "both":
            place = place + i // number
        else:
            place = place.to(tl.int64)
    place = place.to(tl.int64) & 1023
    tl.store(out_ptr + i, tl.load(x_ptr + place))


def numbers_of(steps, numbers, size):
    """As the kernel computes them: quotients are rounded towards zero."""
    i = np.arange(size, dtype=np.int64)
    place = i
    for step, number in zip(steps, numbers, strict=True):
        rounded = np.trunc(place / number).astype(np.int64)
        place = {
            "+": place + number,
            "-": number * 16 - place,
            "*": place * number,
            "//": rounded,
            "%": place - rounded * number,
            "^": place ^ number,
            "|": place | number,
            "&": place & (64 * number - 1 - number),
            "<<": place << number % 4,
            ">>": place >> number % 4,
            "both": place + i // number,
            "wide": place,
        }[step]
    return place


@pytest.mark.share(3)
@pytest.mark.parametrize("count", [2, 4, 8])
def test_numbers_of_any_computation(rng, count):
    """What is known of the addresses of a load holds for those that NumPy computes."""
    known_ones = 0
    for _ in range(60):
        length = rng.integers(1, 5)
        steps = tuple(rng.choice(OPS, length))
        numbers = tuple(int(number) for number in rng.choice([1, 2, 3, 4, 6, 8, 12, 16, 64], length))
        infos, (load, _) = infos_of(computed, ["x_ptr", "out_ptr"], STEPS=steps, NUMBERS=numbers, BLOCK=64)
        known = infos.distances(load.ptr, 0, count)
        if known is None:
            continue
        known_ones += 1
        groups = 4 * (numbers_of(steps, numbers, 256) & 1023).reshape(-1, count)
        unknown = groups - np.array(known.distances)
        assert (unknown == unknown[:, :1]).all(), (steps, numbers)
        assert not (unknown % known.step if known.step else unknown).any(), (steps, numbers)
    assert known_ones > 10
