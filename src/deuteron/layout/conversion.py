"""How a tile gets from one distributed layout into another, computed from the algebra.

Each bit of the destination's (register, lane) needs a source: the map `M = src^-1 o dst`. What M looks like decides:

    registers    M keeps lanes and warps: a thread's registers are renamed
    shuffles     M keeps warps: destination registers are fetched from other lanes
    shared       otherwise: through shared memory in a layout that both sides access in wide vectors without conflicts

`plan` takes the cheapest of those that work. Layouts across blocks must agree on the block bits.
"""

from __future__ import annotations

from dataclasses import dataclass

from deuteron.layout import f2
from deuteron.layout.linear import BLOCK, LANE, OFFSET, REGISTER, WARP, LinearLayout, log2

BANK_PHASE_BITS = 128 * 8
VECTOR_BITS = 128
WORD_BITS = 32


@dataclass(frozen=True)
class RegisterRoute:
    """Destination register r is source register `sources[r]` of the same thread."""

    sources: tuple[int, ...]


@dataclass(frozen=True)
class Exchange:
    """Lanes with and without the bit `lane` give each other what they do not keep: what those without it take for their
    register r are registers with the bits `register` of those with it. `pair` is the bit in which two registers of the
    destination differ, of which each lane keeps one.
    """

    register: int
    lane: int
    pair: int


@dataclass(frozen=True)
class Turns:
    """Two registers of the destination, which differ in the bit `pair`, are fetched by two shuffles. Lanes with an odd
    number of the bits `choosing`, which want their registers with the bits `register`, fetch the other of both first.
    So every lane gives one register to a shuffle: that of those which choose if it has an odd number of `asked`.

    Turn t of lane l is fetched from lane `lanes` @ l, with the lane of register t of the pair.
    """

    register: int
    pair: int
    choosing: int
    asked: int
    lanes: tuple[int, ...]


@dataclass(frozen=True)
class ShuffleRoute:
    """Destination register r of lane l is register R of lane L of the source, with (R, L) = the XOR of the entries of
    `register_bits` for the bits of r and of `lane_bits` for the bits of l; an entry is a pair (R, L).

    Lanes that hold the same may offer different registers: for each pair (R, L) of `offers` those with the bit L offer
    register x ^ R in the place of x. So a lane that wants another register asks another lane, by the same shuffle.
    """

    register_bits: tuple[tuple[int, int], ...]
    lane_bits: tuple[tuple[int, int], ...]
    offers: tuple[tuple[int, int], ...] = ()

    @property
    def exchange(self) -> Exchange | None:
        """Where a bit of the register and one of the lane change places: each lane gives half of what it holds."""
        chosen = [(register, 1 << bit) for bit, (register, _) in enumerate(self.lane_bits) if register]
        if len(chosen) != 1 or self.offers:
            return None
        register, lane = chosen[0]
        stays = all(pair in ((0, 1 << bit), (register, 0)) for bit, pair in enumerate(self.lane_bits))
        asked = [bit for bit, (_, other) in enumerate(self.register_bits) if other == lane]
        is_one = all(other in (0, lane) for _, other in self.register_bits)
        return Exchange(register, lane, 1 << asked[0]) if stays and asked and is_one else None

    @property
    def turns(self) -> Turns | None:
        """Where the lane decides between two registers, and those who ask a lane can take turns."""
        choices = f2.independent([register for register, _ in self.lane_bits])
        if len(choices) != 1 or self.offers:
            return None
        choosing = sum(1 << bit for bit, (register, _) in enumerate(self.lane_bits) if register)
        pairs = (1 << bit for bit, (_, lane) in enumerate(self.register_bits) if lane)
        found = (self._turns(choices[0], choosing, pair) for pair in pairs)
        return next((turns for turns in found if turns), None)

    def _turns(self, register: int, choosing: int, pair: int) -> Turns | None:
        """If a lane knows by its own number whether who asks it is one that chooses."""
        _, other = self.register_bits[f2.ones(pair)[0]]
        lanes = tuple(lane ^ (other if choosing >> bit & 1 else 0) for bit, (_, lane) in enumerate(self.lane_bits))
        asked = f2.solve(f2.transpose(lanes, len(lanes)), choosing)
        return None if asked is None else Turns(register, pair, choosing, asked, lanes)

    @property
    def num_shuffles(self) -> int:
        """Shuffles needed: for each destination register one for each source register that some lane wants, or one if
        lanes take turns; of an exchange one for two registers.
        """
        if self.exchange is not None:
            return (1 << len(self.register_bits)) // 2
        choices = f2.rank([register for register, _ in self.lane_bits])
        return 1 << len(self.register_bits) << (0 if self.turns else choices)

    @property
    def num_offered(self) -> int:
        """Selections of what lanes offer: for each register that is offered one for each other in its place; where they
        take turns one for each shuffle.
        """
        if self.exchange is None and self.turns:
            return self.num_shuffles
        registers = f2.rank([register for register, _ in self.register_bits])
        return ((1 << len(self.offers)) - 1) << registers


@dataclass(frozen=True)
class SharedRoute:
    """Through shared memory in the layout `scratch` (offset in elements -> coordinates). One side may have the vectors
    spread over four lanes, as stmatrix and ldmatrix want them; the other then over eight, if ldmatrix transposes.
    """

    scratch: LinearLayout
    vector_elements: int


Route = RegisterRoute | ShuffleRoute | SharedRoute


def plan(src: LinearLayout, dst: LinearLayout, element_bits: int, max_shuffles: int | None = None) -> Route:
    """The cheapest route; shuffles, and what they select before, are taken up to `max_shuffles` (default: two for each
    destination register).
    """
    if src.shape != dst.shape:
        raise ValueError(f"A conversion keeps the shape, got {src.shape} and {dst.shape}.")
    if src.of(BLOCK) != dst.of(BLOCK):
        raise ValueError("A conversion between blocks of a cluster needs distributed shared memory.")
    route = plan_registers(src, dst) or plan_shuffles(src, dst)
    if isinstance(route, RegisterRoute):
        return route
    limit = 2 * dst.in_size(REGISTER) if max_shuffles is None else max_shuffles
    if isinstance(route, ShuffleRoute) and route.num_shuffles + route.num_offered <= limit:
        return route
    return plan_shared(src, dst, element_bits)


def plan_registers(src: LinearLayout, dst: LinearLayout) -> RegisterRoute | None:
    """A renaming of registers, or None."""
    if any(src.of(name) != dst.of(name) for name in (LANE, WARP)):
        return None
    bits = [f2.solve(src.columns(REGISTER), column) for column in dst.columns(REGISTER)]
    if any(bit is None for bit in bits):
        return None
    return RegisterRoute(tuple(f2.apply(bits, register) for register in range(dst.in_size(REGISTER))))


def plan_shuffles(src: LinearLayout, dst: LinearLayout) -> ShuffleRoute | None:
    """Shuffles within warps, or None."""
    if src.of(WARP) != dst.of(WARP):
        return None
    registers, lanes = src.columns(REGISTER), src.columns(LANE)
    register_bits = [_source(registers, lanes, column, 0) for column in dst.columns(REGISTER)]
    lane_bits = [_source(registers, lanes, column, 1 << bit) for bit, column in enumerate(dst.columns(LANE))]
    if None in register_bits or None in lane_bits:
        return None
    replicas = [1 << bit for bit, column in enumerate(lanes) if not column]
    return _with_offers(ShuffleRoute(tuple(register_bits), tuple(lane_bits)), replicas)


def _with_offers(route: ShuffleRoute, replicas: list[int]) -> ShuffleRoute:
    """The registers that lanes choose are offered by lanes that hold the same, as far as there are such lanes."""
    choices = f2.independent([register for register, _ in route.lane_bits])
    offers = tuple(zip(choices, replicas, strict=False))
    kept, offering = ~sum(lane for _, lane in offers), [lane for _, lane in offers]

    def asked(register: int, lane: int) -> tuple[int, int]:
        chosen = f2.solve(choices, register) & (1 << len(offers)) - 1
        return register ^ f2.apply(choices, chosen), lane & kept ^ f2.apply(offering, chosen)

    register_bits = tuple((register, lane & kept) for register, lane in route.register_bits)
    return ShuffleRoute(register_bits, tuple(asked(*pair) for pair in route.lane_bits), offers)


def _source(registers: list[int], lanes: list[int], column: int, own_lane: int) -> tuple[int, int] | None:
    """A (register, lane) of the source that holds `column`, in lane `own_lane` if possible."""
    in_lane = f2.solve(registers, column ^ f2.apply(lanes, own_lane))
    if in_lane is not None:
        return in_lane, own_lane
    found = f2.solve([*registers, *lanes], column)
    if found is None:
        return None
    return found & (1 << len(registers)) - 1, found >> len(registers)


def plan_shared(src: LinearLayout, dst: LinearLayout, element_bits: int) -> SharedRoute:
    """A layout of shared memory that both sides access in vectors, with as few bank conflicts as possible.

    Vectors are what both sides hold in registers, or what one holds in registers and the other in a row of a matrix,
    where these are longer; or a row of a matrix that the result has as a column. The rest of the 128 bytes of a
    phase ("bank") must separate the lanes of a phase on both sides; so the bits above ("segment") are chosen outside
    the spans of both sides' lanes, and where that is not possible as XORs of a lane of one side with a lane of the
    other: this is the swizzle.
    """
    dimension = src.total_out_bits
    vector, stores, loads = _vector(src, dst, element_bits)
    phase = min(log2(BANK_PHASE_BITS // element_bits), dimension)
    ours = src.columns(LANE)[2:] if stores else _phase_lanes(src, vector, element_bits)
    theirs = _loading_lanes(dst, vector) if loads else _phase_lanes(dst, vector, element_bits)
    segment = _segment([*vector, *ours], [*vector, *theirs], vector, dimension)[: dimension - max(phase, len(vector))]
    bank = f2.complement([*vector, *segment], dimension)
    bases = [src.unflatten(column) for column in (*vector, *bank, *segment)]
    scratch = LinearLayout.make({OFFSET: bases}, dict(src.outs))
    return SharedRoute(scratch, 1 << len(vector))


def _vector(src: LinearLayout, dst: LinearLayout, element_bits: int) -> tuple[list[int], bool, bool]:
    """What is side by side in shared memory, and whether it is a row of a matrix that is stored, and loaded."""
    if _is_transposed(src, dst, element_bits):
        return dst.columns(LANE)[2:], True, True
    common = f2.intersection(src.columns(REGISTER), dst.columns(REGISTER))
    vector = common[: log2(VECTOR_BITS // element_bits)]
    stored, loaded = _matrix_row(src, dst, element_bits), _matrix_row(dst, src, element_bits)
    loaded = max(loaded, _matrix_column(dst, src, element_bits), key=len)
    if len(loaded) > max(len(vector), len(stored)):
        return loaded, False, True
    if len(stored) > len(vector):
        return stored, True, False
    return vector, False, False


def _is_transposed(src: LinearLayout, dst: LinearLayout, element_bits: int) -> bool:
    """Whether the source has rows of 8x8 matrices where the destination has their columns: two elements in each of four
    lanes, which become eight lanes, as of the sums of a dot that are an operand of the next, transposed.
    """
    registers, lanes, row = src.columns(REGISTER), src.columns(LANE), dst.columns(LANE)[2:]
    is_row = element_bits == 16 and row[0] in registers and row[1:] == lanes[:2] and f2.rank(row) == len(row)
    columns = [*dst.columns(REGISTER)[:1], *dst.columns(LANE)[:2]]
    return is_row and f2.rank([*row, *columns]) == 2 * len(row)


def _loading_lanes(dst: LinearLayout, vector: list[int]) -> list[int]:
    """The rows of a matrix: those of eight lanes, or of the words of four where it is transposed."""
    if vector == dst.columns(LANE)[2:]:
        return [*dst.columns(REGISTER)[:1], *dst.columns(LANE)[:2]]
    return dst.columns(LANE)[2:]


def _matrix_row(layout: LinearLayout, other: LinearLayout, element_bits: int) -> list[int]:
    """16 bytes that four lanes of a layout hold, a word each, and the other layout in registers; [] if none are."""
    lanes, registers = layout.columns(LANE)[:2], other.columns(REGISTER)
    both = f2.intersection(layout.columns(REGISTER), registers)
    word = [column for column in layout.columns(REGISTER) if f2.solve(both, column) is not None]
    row = [*word[: log2(max(WORD_BITS // element_bits, 1))], *lanes]
    is_row = element_bits << len(row) == VECTOR_BITS and f2.rank(row) == len(row)
    return row if is_row and all(f2.solve(registers, column) is not None for column in lanes) else []


def _matrix_column(layout: LinearLayout, other: LinearLayout, element_bits: int) -> list[int]:
    """16 bytes of which eight lanes of a layout have an element each, and the other layout all in registers: rows of
    matrices that ldmatrix transposes, between loads and stores of 16 bytes; [] if none are.
    """
    registers, lanes, row = layout.columns(REGISTER)[:1], layout.columns(LANE)[:2], layout.columns(LANE)[2:]
    is_column = element_bits == 16 and f2.rank([*row, *registers, *lanes]) == 2 * len(row)
    held = f2.Span(other.columns(REGISTER))
    return row if is_column and all(column in held for column in row) else []


def _phase_lanes(layout: LinearLayout, vector: list[int], element_bits: int) -> list[int]:
    """The lanes that access shared memory together in one phase of 128 bytes, apart from the vector."""
    words = max((element_bits << len(vector)) // WORD_BITS, 1)
    lanes = layout.columns(LANE)
    return f2.independent(lanes[: len(lanes) - log2(words)], vector)


def _segment(ours: list[int], theirs: list[int], vector: list[int], dimension: int) -> list[int]:
    """Independent vectors for the bits above a phase, the best first."""
    both = f2.intersection(ours, theirs)
    outside = f2.complement([*ours, *theirs], dimension)
    only_ours, only_theirs = f2.independent(ours, both), f2.independent(theirs, both)
    mixed = [a ^ b for a, b in zip(only_ours, only_theirs, strict=False)]
    rest = [*only_ours, *only_theirs, *both]
    return f2.independent([*outside, *mixed, *rest], vector)
