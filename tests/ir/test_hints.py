"""What is promised of a tile, and of parts of it."""

import numpy as np
import pytest

from deuteron.ir.hints import CONSTANCY, CONTIGUITY, DIVISIBILITY, hints_of_every, hints_of_part, promise, promised
from deuteron.ir.tt.shape import MakeRangeOp


def hinted(divisibility, contiguity, constancy):
    op = MakeRangeOp(0, 64)
    for name, number in ((DIVISIBILITY, divisibility), (CONTIGUITY, contiguity), (CONSTANCY, constancy)):
        promise(op, name, [number])
    return op


def numbers(attributes):
    op = MakeRangeOp(0, 64)
    op.attributes = attributes
    return [promised(op, name)[0] for name in (DIVISIBILITY, CONTIGUITY, CONSTANCY)]


def are_true(values, divisibility, contiguity, constancy):
    groups, equal = values.reshape(-1, min(contiguity, len(values))), values.reshape(-1, min(constancy, len(values)))
    return (np.diff(groups) == 1).all() and (groups[:, 0] % divisibility == 0).all() and (equal == equal[:, :1]).all()


@pytest.mark.parametrize(("contiguity", "constancy"), [(1, 1), (1, 4), (4, 1), (16, 1), (64, 1)])
@pytest.mark.parametrize("divisibility", [1, 8, 64, 256])
@pytest.mark.parametrize("step", [1, 2, 8, 32])
def test_what_is_kept_is_true(contiguity, constancy, divisibility, step):
    """Of numbers of which all is true that is promised."""
    begins = divisibility * contiguity * (np.arange(64 // contiguity) // constancy)
    whole, op = (begins[:, None] + np.arange(contiguity)).ravel(), hinted(divisibility, contiguity, constancy)
    assert are_true(whole, divisibility, contiguity, constancy)
    for part in whole.reshape(-1, step):
        assert are_true(part, *numbers(hints_of_part(op, 0, step)))
    assert are_true(whole[::step], *numbers(hints_of_every(op, 0, step)))
