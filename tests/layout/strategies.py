"""Random legal layouts for the property tests."""

from hypothesis import strategies as st

from deuteron.layout.distributed import HARDWARE, blocked, default_blocked, mma_v2_accumulator, mma_v2_operand
from deuteron.layout.linear import BLOCK, LANE, REGISTER, WARP, LinearLayout, dim_names


@st.composite
def shapes(draw, max_rank=3, max_bits=11):
    rank = draw(st.integers(1, max_rank))
    bits = [draw(st.integers(0, max_bits // rank)) for _ in range(rank)]
    return tuple(1 << b for b in bits)


@st.composite
def blocked_layouts(draw, shape, num_warps):
    order = draw(st.permutations(range(len(shape))))
    return default_blocked(shape, num_warps, order, draw(st.sampled_from([1, 2, 4, 8])))


@st.composite
def random_layouts(draw, shape, num_warps):
    """Any surjective layout: the bits of the tile and some zeros, shuffled over registers, lanes and warps."""
    warp_bits = num_warps.bit_length() - 1
    empty = LinearLayout.make({}, dict(zip(dim_names(len(shape)), shape, strict=True)))
    tile_bits = empty.total_out_bits
    columns = [1 << bit for bit in range(tile_bits)]
    for _ in range(draw(st.integers(0, 4))):
        if tile_bits > 1:
            i, j = draw(st.permutations(range(tile_bits)))[:2]
            columns[i] ^= columns[j]
    replicas = max(5 + warp_bits - tile_bits, 0) + draw(st.integers(0, 2))
    columns = draw(st.permutations([*columns, *[0] * replicas]))
    bases = [empty.unflatten(column) for column in columns]
    lane, warp, register = bases[:5], bases[5 : 5 + warp_bits], bases[5 + warp_bits :]
    return LinearLayout.make({REGISTER: register, LANE: lane, WARP: warp, BLOCK: []}, dict(empty.outs))


@st.composite
def layouts(draw, shape, num_warps):
    kinds = [blocked_layouts(shape, num_warps), random_layouts(shape, num_warps)]
    if len(shape) == 2:
        warps = draw(st.sampled_from([[1 << i, num_warps >> i] for i in range(num_warps.bit_length())]))
        kinds.append(st.just(mma_v2_accumulator(shape, warps)))
        kinds.append(st.just(mma_v2_operand(shape, warps, draw(st.sampled_from([0, 1])), 16)))
    return draw(st.one_of(kinds))


__all__ = ["HARDWARE", "blocked", "layouts", "random_layouts", "shapes"]
