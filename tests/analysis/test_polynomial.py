"""Polynomials: sums and products are those of the numbers, quotients are exact or none."""

from hypothesis import given
from hypothesis import strategies as st

from deuteron.analysis.addresses.polynomial import Atom, Polynomial, coordinate

ATOMS = [Atom(0), Atom(1), coordinate(0), coordinate(1)]
monomials = st.lists(st.sampled_from(ATOMS), max_size=3).map(lambda atoms: tuple(sorted(atoms)))
polynomials = st.dictionaries(monomials, st.integers(-8, 8), max_size=4).map(Polynomial)
points = st.fixed_dictionaries({atom: st.integers(-5, 5) for atom in ATOMS})


def value_at(polynomial: Polynomial, point: dict[Atom, int]) -> int:
    total = 0
    for monomial, factor in polynomial:
        for atom in monomial:
            factor *= point[atom]
        total += factor
    return total


@given(polynomials, polynomials, points)
def test_arithmetic_is_that_of_values(p, q, at):
    assert value_at(p + q, at) == value_at(p, at) + value_at(q, at)
    assert value_at(p - q, at) == value_at(p, at) - value_at(q, at)
    assert value_at(p * q, at) == value_at(p, at) * value_at(q, at)


@given(polynomials, monomials, st.integers(-8, 8).filter(bool))
def test_a_quotient_times_the_divisor_is_the_dividend(p, monomial, factor):
    divisor = Polynomial({monomial: factor})
    assert (p * divisor).over(divisor) == p
    quotient = p.over(divisor)
    assert quotient is None or quotient * divisor == p


@given(polynomials)
def test_only_what_has_no_atom_is_a_number(p):
    assert (p.number is None) == bool(p.atoms)
    assert Polynomial.constant(-3).number == -3 and (p - p).number == 0


@given(polynomials)
def test_a_split_has_every_term_once(p):
    along, rest = p.split(lambda monomial: coordinate(0) in monomial)
    assert along + rest == p and coordinate(0) not in rest.atoms


@given(polynomials, points)
def test_atoms_that_get_one_name_are_added_up(p, at):
    same = {**at, ATOMS[1]: at[ATOMS[0]]}
    assert value_at(p.renamed(lambda atom: ATOMS[0] if atom == ATOMS[1] else atom), at) == value_at(p, same)


def test_nothing_is_divided_by_a_sum_or_by_zero():
    one = Polynomial.constant(1)
    assert one.over(one + Polynomial.of(ATOMS[0])) is None and one.over(Polynomial({})) is None


@given(polynomials, points)
def test_integers_of_few_bits_are_the_same_with_other_factors(p, at):
    wrapped = p.wrapped(4)
    assert (value_at(wrapped, at) - value_at(p, at)) % 16 == 0
    assert all(-8 <= factor < 8 for _, factor in wrapped)
