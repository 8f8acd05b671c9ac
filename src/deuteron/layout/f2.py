"""Vectors and matrices over F2. A vector is an int (bit i is coordinate i); a matrix is a sequence of column vectors.

>>> apply([0b01, 0b11], 0b10)        # the second column
3
>>> solve([0b01, 0b11], 0b10)        # column 0 + column 1 = 0b10
3
>>> rank([1, 2, 3])
2
"""

from __future__ import annotations

from collections.abc import Sequence


def apply(columns: Sequence[int], vector: int) -> int:
    """The product of a matrix with a vector."""
    result = 0
    for index, column in enumerate(columns):
        if vector >> index & 1:
            result ^= column
    return result


def transpose(columns: Sequence[int], rows: int) -> list[int]:
    """The rows of a matrix as columns."""
    return [sum((column >> row & 1) << index for index, column in enumerate(columns)) for row in range(rows)]


def is_odd(vector: int) -> bool:
    """Whether an odd number of its coordinates are 1."""
    return vector.bit_count() % 2 == 1


def ones(vector: int) -> list[int]:
    """The coordinates that are 1, from the lowest."""
    return [index for index in range(vector.bit_length()) if vector >> index & 1]


class Span:
    """The span of vectors added one after another, in echelon form, remembering how each is made from those added."""

    def __init__(self, vectors: Sequence[int] = ()):
        self._rows: dict[int, tuple[int, int]] = {}
        self._count = 0
        for vector in vectors:
            self.add(vector)

    def __len__(self) -> int:
        """The dimension."""
        return len(self._rows)

    def add(self, vector: int) -> bool:
        """Add a vector; returns whether it was independent of those before."""
        remainder, combination = self.reduce(vector)
        index, self._count = self._count, self._count + 1
        if remainder:
            self._rows[remainder.bit_length() - 1] = (remainder, combination ^ 1 << index)
        return remainder != 0

    def reduce(self, vector: int) -> tuple[int, int]:
        """What remains of a vector outside the span, and the combination of added vectors that was taken away."""
        combination = 0
        for pivot in sorted(self._rows, reverse=True):
            if vector >> pivot & 1:
                row, made_from = self._rows[pivot]
                vector ^= row
                combination ^= made_from
        return vector, combination

    def __contains__(self, vector: int) -> bool:
        return self.reduce(vector)[0] == 0


def rank(vectors: Sequence[int]) -> int:
    return len(Span(vectors))


def solve(columns: Sequence[int], vector: int) -> int | None:
    """An x with columns @ x == vector, using the earliest independent columns; None if there is none."""
    remainder, combination = Span(columns).reduce(vector)
    return None if remainder else combination


def independent(vectors: Sequence[int], given: Sequence[int] = ()) -> list[int]:
    """Those vectors, in order, that are independent of `given` and of the ones before them."""
    span = Span(given)
    return [vector for vector in vectors if span.add(vector)]


def complement(vectors: Sequence[int], dimension: int) -> list[int]:
    """Unit vectors, lowest first, that complete `vectors` to a basis of the whole space."""
    return independent([1 << bit for bit in range(dimension)], vectors)


def kernel(columns: Sequence[int]) -> list[int]:
    """A basis of the x with columns @ x == 0."""
    span, basis = Span(), []
    for index, column in enumerate(columns):
        remainder, combination = span.reduce(column)
        if not remainder:
            basis.append(combination ^ 1 << index)
        span.add(column)
    return basis


def intersection(left: Sequence[int], right: Sequence[int]) -> list[int]:
    """A basis of the vectors that are in both spans."""
    left, right = independent(left), independent(right)
    mask = (1 << len(left)) - 1
    return [apply(left, dependency & mask) for dependency in kernel([*left, *right])]


def inverse(columns: Sequence[int]) -> list[int]:
    """The inverse of a square matrix of full rank."""
    span = Span(columns)
    assert len(span) == len(columns), "the matrix is singular"
    return [span.reduce(1 << bit)[1] for bit in range(len(columns))]
