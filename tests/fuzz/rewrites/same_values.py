"""Functions of the language that give back what they are given, by a long way round: `same(x, two, scratch)`.

    FUNCTIONS["by_halves"]      split into what has even and odd places, and joined

`x` is a number or a tile of any type, pointers included; what a function has no way for it gives back at once. `two` is
the number 2, which only the running program knows. `scratch` points to integers of 64 bits, `SCRATCH_BYTES` for
each program; what stays there is nobody's.
"""

from __future__ import annotations

import textwrap

SCRATCH_BYTES = 1 << 14
MOST_ELEMENTS = SCRATCH_BYTES // 8

HEAD = f"""
@triton.jit
def own(scratch):
    number = tl.program_id(0) + tl.num_programs(0) * (tl.program_id(1) + tl.num_programs(1) * tl.program_id(2))
    return scratch + number * {SCRATCH_BYTES // 8}

@triton.jit
def is_plain(x):
    return not isinstance(x, tl.constexpr) and not x.dtype.is_ptr()

@triton.jit
def is_whole(x):
    return is_plain(x) and not x.dtype.is_floating()

@triton.jit
def is_tile(x, least: tl.constexpr, most: tl.constexpr = {MOST_ELEMENTS}):
    return not isinstance(x, tl.constexpr) and x.numel >= least and x.numel <= most
"""

OF_TILES = {
    "by_halves": """
        a, b = tl.split(tl.reshape(x, (x.numel // 2, 2)))
        return tl.reshape(tl.join(a, b), x.shape)
    """,
    "by_interleaving": """
        a, b = tl.split(tl.reshape(x, (x.numel // 2, 2)))
        return tl.reshape(tl.interleave(a, b), x.shape)
    """,
    "by_exchanged_halves": """
        a, b = tl.split(tl.trans(tl.reshape(x, (2, x.numel // 2))))
        for i in range(two):
            a, b = b, a
        return tl.reshape(tl.trans(tl.join(a, b)), x.shape)
    """,
    "by_halves_in_a_branch": """
        a, b = tl.split(tl.reshape(x, (x.numel // 2, 2)))
        if two == 2:
            c, d = a, b
        else:
            c, d = b, a
        return tl.reshape(tl.join(c, d), x.shape)
    """,
    "by_one_long_row": """
        return tl.reshape(tl.ravel(tl.reshape(x, (1, x.numel, 1))), x.shape)
    """,
    "turned": """
        return tl.reshape(tl.trans(tl.trans(tl.reshape(x, (x.numel // 2, 2)))), x.shape)
    """,
    "turned_in_a_loop": """
        y = tl.reshape(x, (x.numel // 2, 2))
        for i in range(two):
            y = tl.reshape(tl.trans(y), (x.numel // 2, 2))
        for i in range(two):
            y = tl.trans(tl.reshape(y, (2, x.numel // 2)))
        return tl.reshape(y, x.shape)
    """,
    "flipped": """
        return tl.reshape(tl.flip(tl.flip(tl.ravel(x), 0), 0), x.shape)
    """,
    "flipped_in_a_loop": """
        y = tl.reshape(x, (x.numel // 2, 2))
        for i in range(two):
            y = tl.flip(y, 0)
        return tl.reshape(y, x.shape)
    """,
    "in_two_orders": """
        a, b = tl.split(tl.reshape(x, (x.numel // 2, 2)))
        return tl.reshape(tl.trans(tl.reshape(tl.cat(a, b), (2, x.numel // 2))), x.shape)
    """,
}

OF_FOUR = {
    "permuted": """
        y = tl.permute(tl.reshape(x, (2, x.numel // 4, 2)), (2, 0, 1))
        return tl.reshape(tl.permute(y, (1, 2, 0)), x.shape)
    """,
    "permuted_of_four": """
        y = tl.permute(tl.reshape(x, (2, 1, x.numel // 4, 2)), (3, 2, 0, 1))
        return tl.reshape(tl.permute(y, (2, 3, 1, 0)), x.shape)
    """,
    "by_quarters": """
        a, b = tl.split(tl.reshape(x, (x.numel // 4, 2, 2)))
        a0, a1 = tl.split(a)
        b0, b1 = tl.split(b)
        k = 0
        while k < two:
            a0, b0, a1, b1 = b0, a0, b1, a1
            k += 1
        return tl.reshape(tl.join(tl.join(a0, a1), tl.join(b0, b1)), x.shape)
    """,
}

OF_NUMBERS = {
    "gathered": """
        i = tl.arange(0, x.numel) ^ (x.numel // 2 + 1)
        return tl.reshape(tl.gather(tl.gather(tl.ravel(x), i, 0), i, 0), x.shape)
    """,
    "gathered_in_columns": """
        i = (tl.arange(0, x.numel // 2) ^ (x.numel // 4))[:, None] + tl.zeros((1, 2), tl.int32)
        y = tl.reshape(x, (x.numel // 2, 2))
        for k in range(two):
            y = tl.gather(y, i, 0)
        return tl.reshape(y, x.shape)
    """,
    "stored_and_loaded": """
        p = own(scratch).to(tl.pointer_type(x.dtype)) + tl.arange(0, x.numel)
        tl.debug_barrier()
        tl.store(p, tl.ravel(x))
        tl.debug_barrier()
        return tl.reshape(tl.load(p), x.shape)
    """,
    "stored_turned": """
        p = own(scratch).to(tl.pointer_type(x.dtype))
        i = tl.arange(0, x.numel // 2)[:, None]
        j = tl.arange(0, 2)[None, :]
        tl.debug_barrier()
        tl.store(p + i + j * (x.numel // 2), tl.reshape(x, (x.numel // 2, 2)))
        tl.debug_barrier()
        a = tl.load(p + tl.arange(0, x.numel // 2))
        b = tl.load(p + x.numel // 2 + tl.arange(0, x.numel // 2))
        return tl.reshape(tl.join(a, b), x.shape)
    """,
    "stored_by_masks": """
        p = own(scratch).to(tl.pointer_type(x.dtype)) + tl.arange(0, x.numel)
        tl.debug_barrier()
        for k in range(two):
            tl.store(p, tl.ravel(x), mask=tl.arange(0, x.numel) % two == k)
        tl.debug_barrier()
        return tl.reshape(tl.load(p, mask=tl.arange(0, x.numel) * two < 2 * x.numel), x.shape)
    """,
    "stored_through_a_tile_of_pointers": """
        p = own(scratch).to(tl.pointer_type(x.dtype)) + tl.arange(0, x.numel)
        q, r = tl.split(tl.reshape(p, (x.numel // 2, 2)))
        a, b = tl.split(tl.reshape(x, (x.numel // 2, 2)))
        tl.debug_barrier()
        tl.store(q, a)
        tl.store(r, b)
        tl.debug_barrier()
        return tl.reshape(tl.load(tl.reshape(tl.join(q, r), (x.numel,))), x.shape)
    """,
    "stored_by_a_block_pointer": """
        p = own(scratch).to(tl.pointer_type(x.dtype))
        block = tl.make_block_ptr(p, (x.numel // 2, 2), (2, 1), (0, 0), (x.numel // 2, 2), (1, 0))
        tl.debug_barrier()
        tl.store(block, tl.reshape(x, (x.numel // 2, 2)))
        tl.debug_barrier()
        return tl.reshape(tl.load(p + tl.arange(0, x.numel)), x.shape)
    """,
    "chosen": """
        m = tl.reshape(tl.arange(0, x.numel) % 3 == 0, x.shape)
        zero = tl.zeros(x.shape, x.dtype)
        return tl.where(m, tl.where(m, x, zero), tl.where(m, zero, x))
    """,
    "sorted_places": """
        places = tl.arange(0, x.numel)
        i = tl.sort(places ^ (x.numel - 1))
        return tl.reshape(tl.gather(tl.ravel(x), i, 0), x.shape)
    """,
}

OF_DESCRIBED = {
    "stored_by_a_descriptor": """
        p = own(scratch).to(tl.pointer_type(x.dtype))
        block = tl.make_tensor_descriptor(p, (x.numel // 16, 16), (16, 1), (x.numel // 16, 16))
        tl.debug_barrier()
        block.store([0, 0], tl.reshape(x, (x.numel // 16, 16)))
        tl.debug_barrier()
        return tl.reshape(block.load([0, 0]), x.shape)
    """,
    "stored_by_a_descriptor_loaded_by_pointers": """
        p = own(scratch).to(tl.pointer_type(x.dtype))
        block = tl.make_tensor_descriptor(p, (2, x.numel // 2), (x.numel // 2, 1), (1, x.numel // 2))
        a, b = tl.split(tl.trans(tl.reshape(x, (2, x.numel // 2))))
        tl.debug_barrier()
        block.store([0, 0], tl.reshape(a, (1, x.numel // 2)))
        block.store([1, 0], tl.reshape(b, (1, x.numel // 2)))
        tl.debug_barrier()
        return tl.reshape(tl.load(p + tl.arange(0, x.numel)), x.shape)
    """,
}

OF_WHOLE_NUMBERS = {
    "mapped": """
        return tl.map_elementwise(first_of_two, x, tl.zeros_like(x))
    """,
    "of_sums": """
        i = tl.arange(0, x.numel)
        s = tl.cumsum(tl.ravel(x).to(tl.int64), 0)
        before = tl.where(i > 0, tl.gather(s, tl.maximum(i - 1, 0), 0), 0)
        return tl.reshape(s - before, x.shape).to(x.dtype)
    """,
    "of_sums_from_the_end": """
        y = tl.reshape(x, (2, x.numel // 2)).to(tl.int64)
        s = tl.cumsum(y, 1, reverse=True)
        t = s - y
        return tl.reshape(s - t, x.shape).to(x.dtype)
    """,
    "of_one_of_two": """
        y = tl.reshape(x, (x.numel // 2, 2)).to(tl.int64)
        j = tl.arange(0, 2)[None, :]
        a = tl.sum(tl.where(j == 0, y, 0), 1)
        b = tl.xor_sum(tl.where(j == 0, 0, y), 1)
        return tl.reshape(tl.join(a, b), x.shape).to(x.dtype)
    """,
    "of_the_largest": """
        y = tl.ravel(x)[None, :] + tl.zeros((2, 1), x.dtype)
        return tl.reshape(tl.maximum(tl.max(y, 0), tl.min(y, 0)), x.shape).to(x.dtype)
    """,
    "exchanged": """
        y = tl.ravel(x).to(tl.int64)
        p = own(scratch).to(tl.pointer_type(tl.int64)) + tl.arange(0, x.numel)
        tl.debug_barrier()
        tl.store(p, tl.zeros((x.numel,), tl.int64))
        tl.debug_barrier()
        tl.atomic_add(p, y)
        tl.debug_barrier()
        return tl.reshape(tl.atomic_xchg(p, y), x.shape).to(x.dtype)
    """,
    "exchanged_of_32_bits": """
        if x.dtype.primitive_bitwidth > 32:
            return x
        y = tl.ravel(x).to(tl.int32)
        p = own(scratch).to(tl.pointer_type(tl.int32)) + tl.arange(0, x.numel)
        tl.debug_barrier()
        tl.store(p, y)
        tl.debug_barrier()
        z = tl.atomic_xor(p, y)
        tl.debug_barrier()
        return tl.reshape(z + tl.load(p), x.shape).to(x.dtype)
    """,
}

OF_ANY_NUMBERS = {
    "in_a_branch": """
        if two == 2:
            y = x
        else:
            y = tl.zeros(x.shape, x.dtype) if len(x.shape) else x.to(tl.int8).to(x.dtype)
        return y
    """,
    "in_a_loop_with_a_way_out": """
        y = x
        for k in range(0, 100, 1):
            if k == two:
                break
            y = tl.where(k < two, y, tl.zeros_like(y))
        return y
    """,
    "in_a_loop_that_goes_on": """
        y = tl.zeros_like(x)
        k = 0
        while k < 5:
            k += 1
            if k != two:
                continue
            y = x
        return y
    """,
    "in_loops": """
        y = x
        for i in range(two):
            for j in range(i, two):
                y = tl.where(i + j > 2, tl.zeros_like(y), y)
        return y
    """,
    "returned_early": """
        if two != 2:
            return tl.zeros_like(x)
        return x
    """,
}

OF_ANY_WHOLE_NUMBERS = {
    "of_its_bits": """
        low = x & 21
        return (x ^ low) | low
    """,
    "negated_twice": """
        y = x
        for k in range(two):
            y = ~y
        return y
    """,
    "wide": """
        return ((x.to(tl.int64) * 5 - x.to(tl.int64)) >> two).to(x.dtype) if x.dtype.primitive_bitwidth <= 32 else x
    """,
    "as_bits_of_a_float": """
        if x.dtype == tl.int32:
            return x.to(tl.float32, bitcast=True).to(tl.int32, bitcast=True)
        if x.dtype == tl.int16:
            return x.to(tl.bfloat16, bitcast=True).to(tl.int16, bitcast=True)
        return x
    """,
    "as_double": """
        return x.to(tl.float64).to(x.dtype) if x.dtype.primitive_bitwidth <= 32 else x
    """,
}

OF_PRODUCTS = {
    "multiplied_by_one": """
        one = (tl.arange(0, 32)[:, None] == tl.arange(0, 32)[None, :]).to(x.dtype)
        if x.dtype == tl.int8:
            return tl.reshape(tl.dot(one, tl.reshape(x, (32, x.numel // 32))), x.shape).to(x.dtype)
        if x.dtype == tl.float16 or x.dtype == tl.bfloat16 or x.dtype == tl.float32 or x.dtype == tl.float64:
            is_usual = (tl.abs(x) > 0.001) & (tl.abs(x) < 1000)
            y = tl.reshape(tl.where(is_usual, x, 0), (x.numel // 32, 32))
            for k in range(two):
                y = tl.dot(y, one, input_precision="ieee").to(x.dtype)
            return tl.where(is_usual, tl.reshape(y, x.shape), x)
        return x
    """,
    "multiplied_by_one_from_both_sides": """
        one = (tl.arange(0, 16)[:, None] == tl.arange(0, 16)[None, :]).to(x.dtype)
        if x.dtype == tl.float16 or x.dtype == tl.bfloat16 or x.dtype == tl.float32:
            is_usual = (tl.abs(x) > 0.001) & (tl.abs(x) < 1000)
            y = tl.reshape(tl.where(is_usual, x, 0), (x.numel // 256, 16, 16))
            one = one[None, :, :] + tl.zeros((x.numel // 256, 1, 1), x.dtype)
            z = tl.dot(y, one, input_precision="ieee").to(x.dtype)
            z = tl.permute(tl.dot(one, z, input_precision="ieee").to(x.dtype), (0, 2, 1))
            return tl.where(is_usual, tl.reshape(tl.permute(z, (0, 2, 1)), x.shape), x)
        return x
    """,
}

MAPPED = """
@triton.jit
def first_of_two(x, y):
    if x == y:
        return y
    return x
"""


def _function(name: str, body: str, guard: str) -> str:
    lines = textwrap.dedent(body).strip()
    return f"@triton.jit\ndef {name}(x, two, scratch):\n    if not ({guard}):\n        return x\n" + textwrap.indent(
        lines, "    "
    )


_GUARDS = (
    (OF_TILES, "is_tile(x, 2, 8192)"),
    (OF_FOUR, "is_tile(x, 4, 8192)"),
    (OF_NUMBERS, "is_tile(x, 4) and is_plain(x)"),
    (OF_DESCRIBED, "is_tile(x, 64) and is_plain(x)"),
    (OF_PRODUCTS, "is_tile(x, 1024, 4096) and is_plain(x)"),
    (OF_WHOLE_NUMBERS, "is_tile(x, 2) and is_whole(x)"),
    (OF_ANY_NUMBERS, "is_plain(x)"),
    (OF_ANY_WHOLE_NUMBERS, "is_whole(x)"),
)

FUNCTIONS = {name: _function(name, body, guard) for bodies, guard in _GUARDS for name, body in bodies.items()}
