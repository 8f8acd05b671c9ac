"""What holds in all solutions of a linear equation, beside all that there are."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deuteron.analysis.addresses.bounded_solutions import Bounded, NoSolution, fixed_values
from deuteron.analysis.addresses.polynomial import Atom, Polynomial

X, Y, Q = (Atom(number) for number in range(3))


def _form(*terms, number=0):
    return Polynomial({(): number} | {(atom,): factor for atom, factor in terms})


def _within(atom, low, high):
    return Bounded(_form((atom, 1)), low, high)


def test_mixed_radix_has_one_way():
    assert fixed_values(_form((X, 1), (Y, 64)), [_within(X, -63, 63)]) == {X: 0, Y: 0}
    assert fixed_values(_form((X, 1), (Y, 64)), [_within(X, -64, 64)]) == {}
    assert fixed_values(_form((X, 1), (Y, 64), number=-32), [_within(X, -63, 63)]) == {}
    assert fixed_values(_form((X, 1), (Y, 64), number=-70), [_within(X, 0, 63)]) == {X: 6, Y: 1}


def test_no_solution():
    with pytest.raises(NoSolution):
        fixed_values(_form((X, 1), (Y, 64), number=-32), [_within(X, 0, 31)])
    with pytest.raises(NoSolution):
        fixed_values(_form((X, 2), (Y, 64), number=-31), [])


def test_remainders_that_are_forms():
    """Rows of 50 elements at a pitch of 52."""
    bounds = [_within(X, -255, 255), _within(Q, -6, 6), Bounded(_form((X, 1), (Q, -50)), -49, 49)]
    assert fixed_values(_form((X, 1), (Q, 2)), bounds) == {X: 0, Q: 0}
    assert fixed_values(_form((X, 1), (Q, -2)), bounds) == {}


def test_multiples_of_what_was_cut_out_are_not_cut_out_again():
    """They came back with larger and larger factors, and there was no end."""
    known = [Bounded(_form((X, -2), (Y, 3), (Q, -1)), -4, -4), Bounded(_form((X, 1), (Y, -7), (Q, 9)), 0, 0)]
    ranges = [_within(X, -5, 5), _within(Y, -2, 7), _within(Q, 0, 4)]
    assert fixed_values(_form((X, 8), (Y, 2), (Q, -9), number=11), known + ranges) == {}


_factors = st.integers(-9, 9)
_forms = st.builds(lambda a, b, c: _form((X, a), (Y, b), (Q, c)), _factors, _factors, _factors)
_bounds = st.builds(
    lambda form, low, more: Bounded(form, low, low + more), _forms, st.integers(-9, 3), st.integers(0, 9)
)
_numbers = st.sampled_from([(0, 0), (-1, 1), (-3, 3), (-5, 5), (0, 4), (-2, 7)])


@settings(max_examples=400, deadline=None)
@given(_forms, st.integers(-12, 12), st.lists(_bounds, max_size=3), st.tuples(_numbers, _numbers, _numbers))
def test_beside_all_solutions(form, number, bounds, ranges):
    """Every solution has the values that were found, and there is none where none was."""
    places = list(product(*(range(low, high + 1) for low, high in ranges)))
    solutions = [
        at for at in places if _at(form, at) == -number and all(o.low <= _at(o.form, at) <= o.high for o in bounds)
    ]
    of_atoms = [_within(atom, *limits) for atom, limits in zip((X, Y, Q), ranges, strict=True)]
    try:
        found = fixed_values(form + Polynomial.constant(number), bounds + of_atoms)
    except NoSolution:
        assert not solutions
        return
    assert all(at[atom.number] == value for at in solutions for atom, value in found.items())


def _at(form, place):
    return sum(factor * place[monomial[0].number] for monomial, factor in form)
