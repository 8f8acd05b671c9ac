"""A layout as a linear map over F2, from bits of named hardware indices to coordinates of a tile.

Each bit of an input index has a basis vector: the coordinates that it contributes; contributions are XORed. Sizes are
powers of two. A 2x8 tile over 2 registers, 4 lanes and 2 warps, registers along the row:

    LinearLayout.make({"register": [(0, 1)], "lane": [(0, 2), (0, 4)], "warp": [(1, 0)]}, {"dim0": 2, "dim1": 8})

    column         0   1   2   3   4   5   6   7
    row 0, warp 0  0:0 0:1 1:0 1:1 2:0 2:1 3:0 3:1       (lane:register)
    row 1, warp 1  0:0 0:1 1:0 1:1 2:0 2:1 3:0 3:1

A zero basis vector means that the bit does not matter: both values of it hold the same element (replication).
Literature: "Linear Layouts: Robust Code Generation of Efficient Tensor Computation Using F2" (Zhou et al., 2025).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, wraps
from math import prod

from deuteron.cached_property import cached_property
from deuteron.layout import f2

Basis = tuple[int, ...]
REGISTER, LANE, WARP, BLOCK, OFFSET = "register", "lane", "warp", "block", "offset"


def remembered(constructor: Callable[..., LinearLayout]) -> Callable[..., LinearLayout]:
    """Decorator: for equal arguments, of which lists count as tuples, a constructor gives the same layout.

    Layouts are asked for again and again, and equal ones that are one object are compared and hashed at no cost.
    """
    kept = lru_cache(maxsize=1024)(constructor)

    @wraps(constructor)
    def construct(*args, **keywords):
        args = (tuple(argument) if isinstance(argument, list) else argument for argument in args)
        return kept(*args, **{k: tuple(v) if isinstance(v, list) else v for k, v in keywords.items()})

    return construct


def log2(size: int) -> int:
    """The exponent of a power of two."""
    assert size > 0 and size & (size - 1) == 0, f"{size} is no power of two"
    return size.bit_length() - 1


def dim_names(rank: int) -> tuple[str, ...]:
    """The names of a tile's dimensions: dim0, dim1, ..."""
    return tuple(f"dim{axis}" for axis in range(rank))


@dataclass(frozen=True)
class LinearLayout:
    """A linear map over F2. `bases` has, per input, one basis vector for each bit, lowest first; `outs` names and sizes
    the outputs, in the order of entries. Flattened, outputs are row-major: the last one is the lowest bits.
    """

    bases: tuple[tuple[str, tuple[Basis, ...]], ...]
    outs: tuple[tuple[str, int], ...]

    @staticmethod
    def make(bases: Mapping[str, Sequence[Sequence[int]]], outs: Mapping[str, int]) -> LinearLayout:
        """A layout from plain dictionaries."""
        items = tuple((name, tuple(tuple(basis) for basis in vectors)) for name, vectors in bases.items())
        return LinearLayout(items, tuple(outs.items()))

    @staticmethod
    def identity(size: int, in_name: str, out_name: str) -> LinearLayout:
        """The input is the output."""
        return LinearLayout.make({in_name: [(1 << bit,) for bit in range(log2(size))]}, {out_name: size})

    @staticmethod
    def zeros(size: int, in_name: str, out_name: str) -> LinearLayout:
        """Every input gives output 0: replication."""
        return LinearLayout.make({in_name: [(0,)] * log2(size)}, {out_name: 1})

    def __post_init__(self) -> None:
        for name, size in self.outs:
            if size < 1 or size & (size - 1):
                raise ValueError(f"The size of an output must be a power of two, got {name} = {size}.")
        sizes = self.shape
        for name, vectors in self.bases:
            for vector in vectors:
                if len(vector) != len(sizes):
                    raise ValueError(f"A basis vector of {name} needs {len(sizes)} entries, got {vector}.")
                for entry, size in zip(vector, sizes, strict=True):
                    if not 0 <= entry < size:
                        raise ValueError(f"The basis vector {vector} of {name} leaves the outputs {self.outs}.")

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.bases, self.outs))

    # -- sizes ---

    @cached_property
    def _by_name(self) -> dict[str, tuple[Basis, ...]]:
        return dict(self.bases)

    @cached_property
    def in_names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.bases)

    @cached_property
    def out_names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.outs)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        return tuple(size for _, size in self.outs)

    def of(self, in_name: str) -> tuple[Basis, ...]:
        """The basis vectors of an input; none if the layout does not have it."""
        return self._by_name.get(in_name, ())

    def in_bits(self, in_name: str) -> int:
        return len(self.of(in_name))

    def in_size(self, in_name: str) -> int:
        return 1 << self.in_bits(in_name)

    @property
    def total_in_bits(self) -> int:
        return sum(len(vectors) for _, vectors in self.bases)

    @cached_property
    def total_out_bits(self) -> int:
        return log2(prod(self.shape))

    # -- evaluation ---

    def __call__(self, **inputs):
        """The coordinates of inputs (ints or integer NumPy arrays; an input that is left out is 0)."""
        result = [0] * len(self.outs)
        for name, value in inputs.items():
            for bit, basis in enumerate(self.of(name)):
                for axis, entry in enumerate(basis):
                    if entry:
                        result[axis] = result[axis] ^ (value >> bit & 1) * entry
        return tuple(result)

    def flatten_basis(self, basis: Basis) -> int:
        """A vector of coordinates as one row-major index."""
        index = 0
        for entry, (_, size) in zip(basis, self.outs, strict=True):
            index = index * size + entry
        return index

    def unflatten(self, index: int) -> Basis:
        """A row-major index as a vector of coordinates."""
        entries = []
        for size in reversed(self.shape):
            entries.append(index % size)
            index //= size
        return tuple(reversed(entries))

    def columns(self, *in_names: str) -> list[int]:
        """The matrix: one flattened basis vector per input bit, of the inputs named (default: all, in order)."""
        return [column for name in in_names or self.in_names for column in self._columns.get(name, ())]

    @cached_property
    def _columns(self) -> dict[str, list[int]]:
        return {name: [self.flatten_basis(basis) for basis in vectors] for name, vectors in self.bases}

    # -- questions ---

    @cached_property
    def is_surjective(self) -> bool:
        return f2.rank(self.columns()) == self.total_out_bits

    @property
    def is_injective(self) -> bool:
        return f2.rank(self.columns()) == self.total_in_bits

    def free_bits(self) -> dict[str, int]:
        """Per input, a mask of the bits that hold replicas: a bit is free if it depends on the inputs' bits before it.

        Inputs are taken in the order warp-last, so that of two equal places the one with the lower block, warp, lane,
        register counts as the owner.
        """
        span = f2.Span()
        free = {}
        for name, vectors in self.bases:
            mask = 0
            for bit, basis in enumerate(vectors):
                if not span.add(self.flatten_basis(basis)):
                    mask |= 1 << bit
            free[name] = mask
        return free

    # -- building ---

    def __mul__(self, other: LinearLayout) -> LinearLayout:
        """The product: `other` repeats `self`; its bits come above those of `self`, in inputs and in outputs."""
        sizes = dict(self.outs)
        outs = {**sizes, **{name: sizes.get(name, 1) * size for name, size in other.outs}}
        bases = {name: [self._named(basis, outs) for basis in vectors] for name, vectors in self.bases}
        for name, vectors in other.bases:
            shifted = [
                tuple(dict(zip(other.out_names, basis, strict=True)).get(out, 0) * sizes.get(out, 1) for out in outs)
                for basis in vectors
            ]
            bases[name] = [*bases.get(name, []), *shifted]
        return LinearLayout.make(bases, outs)

    def _named(self, basis: Basis, outs: Mapping[str, int]) -> Basis:
        entries = dict(zip(self.out_names, basis, strict=True))
        return tuple(entries.get(out, 0) for out in outs)

    def with_outs(self, order: Sequence[str]) -> LinearLayout:
        """The same map with its outputs in another order."""
        sizes = dict(self.outs)
        outs = {name: sizes[name] for name in order}
        return LinearLayout.make({n: [self._named(basis, outs) for basis in v] for n, v in self.bases}, outs)

    def with_ins(self, order: Sequence[str]) -> LinearLayout:
        """The same map with its inputs in another order; an input that it does not have is added with no bits."""
        return LinearLayout(tuple((name, self.of(name)) for name in order), self.outs)

    def map_columns(self, outs: Mapping[str, int], change) -> LinearLayout:
        """Another layout over the same inputs, each basis vector replaced by `change(vector)`."""
        return LinearLayout.make({name: [change(basis) for basis in vectors] for name, vectors in self.bases}, outs)

    def transpose(self, order: Sequence[int]) -> LinearLayout:
        """The layout of `tt.trans`: dimension i of the result is dimension order[i] of the source."""
        shape = [self.shape[axis] for axis in order]
        outs = dict(zip(dim_names(len(shape)), shape, strict=True))
        return self.map_columns(outs, lambda basis: tuple(basis[axis] for axis in order))

    def reshape(self, shape: Sequence[int]) -> LinearLayout:
        """The layout of a row-major `tt.reshape`: elements stay where they are."""
        outs = dict(zip(dim_names(len(shape)), shape, strict=True))
        target = LinearLayout.make({}, outs)
        return self.map_columns(outs, lambda basis: target.unflatten(self.flatten_basis(basis)))

    def without_axis(self, axis: int) -> LinearLayout:
        """The layout after a reduction along `axis`: what differed only there is replicated."""
        shape = (*self.shape[:axis], *self.shape[axis + 1 :])
        outs = dict(zip(dim_names(len(shape)), shape, strict=True))
        return self.map_columns(outs, lambda basis: (*basis[:axis], *basis[axis + 1 :]))

    def with_axis(self, axis: int) -> LinearLayout:
        """The layout after `tt.expand_dims`: a dimension of extent 1 at `axis`."""
        shape = (*self.shape[:axis], 1, *self.shape[axis:])
        outs = dict(zip(dim_names(len(shape)), shape, strict=True))
        return self.map_columns(outs, lambda basis: (*basis[:axis], 0, *basis[axis:]))

    def without_replicated_registers(self) -> LinearLayout:
        """The same layout without the register bits that repeat elements within a thread."""
        span = f2.Span()
        kept = tuple(basis for basis in self.of(REGISTER) if span.add(self.flatten_basis(basis)))
        return LinearLayout(tuple((n, kept if n == REGISTER else v) for n, v in self.bases), self.outs)

    def fit(self, shape: Sequence[int], order: Sequence[int]) -> LinearLayout:
        """The layout for a tile of that shape: replicated where it is larger, repeated in registers where smaller.

        `order` lists the dimensions from the fastest to the slowest; registers are added in this order.
        """
        outs = dict(zip(self.out_names, shape, strict=True))
        cut = self.map_columns(
            {name: min(size, outs[name]) for name, size in self.outs},
            lambda basis: tuple(e if e < size else 0 for e, size in zip(basis, shape, strict=True)),
        )
        for axis in order:
            name = self.out_names[axis]
            repeats = shape[axis] // dict(cut.outs)[name]
            cut = cut * LinearLayout.identity(repeats, REGISTER, name)
        return cut.with_outs(self.out_names)

    # -- algebra ---

    @remembered
    def compose(self, outer: LinearLayout) -> LinearLayout:
        """`outer` after `self`; the outputs of `self` are the inputs of `outer`."""
        if tuple((name, outer.in_size(name)) for name in self.out_names) != self.outs:
            raise ValueError(f"Cannot compose: outputs {self.outs} are not the inputs of {outer.bases}.")

        def through(basis: Basis) -> Basis:
            return outer(**dict(zip(self.out_names, basis, strict=True)))

        return self.map_columns(dict(outer.outs), through)

    @remembered
    def right_inverse(self) -> LinearLayout:
        """From coordinates to inputs: one place for each element, replicas taken at 0. Needs a surjective layout."""
        columns = self.columns()
        span = f2.Span(columns)
        if len(span) != self.total_out_bits:
            raise ValueError(f"The layout does not reach every element of {self.shape}.")
        outs = {name: self.in_size(name) for name in self.in_names}
        bases = {}
        for axis, (name, size) in enumerate(self.outs):
            vectors = []
            for bit in range(log2(size)):
                unit = [0] * len(self.outs)
                unit[axis] = 1 << bit
                vectors.append(self._split_bits(span.reduce(self.flatten_basis(tuple(unit)))[1]))
            bases[name] = vectors
        return LinearLayout.make(bases, outs)

    def _split_bits(self, bits: int) -> Basis:
        entries = []
        for _, vectors in self.bases:
            entries.append(bits & (1 << len(vectors)) - 1)
            bits >>= len(vectors)
        return tuple(entries)
