"""A small use of every public name of Triton 3.9's `triton.language`: lines of a kernel.

    x, i, c       a tile of 16 floats, one of integers from 0 to 15, one of booleans
    x_ptr, i_ptr, lines(x, 16)     where they come from; `out(value)` stores a value of any shape and type

What the op computes is tested in tests/run; here it is that it compiles and runs, on each target (test_usages.py), and
the table of docs/language.md is made of it.
"""

from __future__ import annotations

USAGES: dict[str, str] = {
    # what a program is
    "program_id": "out(i + tl.program_id(0))",
    "num_programs": "out(i + tl.num_programs(0))",
    # making tiles
    "arange": "out(tl.arange(0, 16))",
    "full": "out(tl.full((4, 4), 2.5, tl.float16))",
    "zeros": "out(tl.zeros((16,), tl.int8))",
    "zeros_like": "out(tl.zeros_like(x))",
    "cat": "out(tl.cat(x, x, can_reorder=True))",
    "cast": "out(tl.cast(x, tl.float16))",
    "to_tensor": "out(i + tl.to_tensor(3))",
    "tensor": "y: tl.tensor = x\nout(y)",
    # shapes
    "broadcast": "a, b = tl.broadcast(x[:, None], x[None, :])\nout(a + b)",
    "broadcast_to": "out(tl.broadcast_to(x[None, :], (2, 16)))",
    "expand_dims": "out(tl.expand_dims(x, 1))",
    "interleave": "out(tl.interleave(x, x))",
    "join": "out(tl.join(x, x))",
    "split": "a, b = tl.split(tl.reshape(x, (8, 2)))\nout(a + b)",
    "permute": "out(tl.permute(tl.reshape(x, (2, 8)), (1, 0)))",
    "ravel": "out(tl.ravel(tl.reshape(x, (2, 8))))",
    "reshape": "out(tl.reshape(x, (4, 4)))",
    "view": "out(tl.view(x, (4, 4)))",
    "trans": "out(tl.trans(tl.reshape(x, (2, 8))))",
    "squeeze": "out(tl.squeeze(x[None, :], 0))",
    "unsqueeze": "out(tl.unsqueeze(x, 0))",
    "flip": "out(tl.flip(x))",
    "slice": "pair = (1, 2, 3)\nout(i + pair[tl.slice(1, 2)][0])",
    # arithmetic
    "add": "out(tl.add(x, x))",
    "sub": "out(tl.sub(x, 1.0))",
    "mul": "out(tl.mul(i, 3))",
    "maximum": "out(tl.maximum(x, 0.0))",
    "minimum": "out(tl.minimum(x, 0.0))",
    "clamp": "out(tl.clamp(x, -1.0, 1.0))",
    "PropagateNan": "out(tl.maximum(x, 0.0, propagate_nan=tl.PropagateNan.ALL))",
    "where": "out(tl.where(c, x, 0.0))",
    "cdiv": "out(tl.cdiv(i, 3))",
    "umulhi": "out(tl.umulhi(i, 1 << 30))",
    "abs": "out(tl.abs(x))",
    "ceil": "out(tl.ceil(x))",
    "floor": "out(tl.floor(x))",
    "cos": "out(tl.cos(x))",
    "sin": "out(tl.sin(x))",
    "exp": "out(tl.exp(x))",
    "exp2": "out(tl.exp2(x))",
    "log": "out(tl.log(tl.abs(x) + 1))",
    "log2": "out(tl.log2(tl.abs(x) + 1))",
    "erf": "out(tl.erf(x))",
    "sqrt": "out(tl.sqrt(tl.abs(x)))",
    "sqrt_rn": "out(tl.sqrt_rn(tl.abs(x)))",
    "rsqrt": "out(tl.rsqrt(tl.abs(x) + 1))",
    "fma": "out(tl.fma(x, x, x))",
    "fdiv": "out(tl.fdiv(x, 3.0))",
    "div_rn": "out(tl.div_rn(x, 3.0))",
    "sigmoid": "out(tl.sigmoid(x))",
    "softmax": "out(tl.softmax(x))",
    "math": "out(tl.math.exp(x))",
    # reductions and scans
    "sum": "out(i + tl.sum(i, 0))",
    "max": "out(x + tl.max(x, 0))",
    "min": "out(x + tl.min(x, 0))",
    "argmax": "out(i + tl.argmax(x, 0))",
    "argmin": "out(i + tl.argmin(x, 0))",
    "xor_sum": "out(i + tl.xor_sum(i, 0))",
    "reduce_or": "out(i + tl.reduce_or(i, 0))",
    "reduce": "out(x + tl.reduce(x, 0, larger))",
    "cumsum": "out(tl.cumsum(i, 0))",
    "cumprod": "out(tl.cumprod(x, 0))",
    "associative_scan": "out(tl.associative_scan(x, 0, larger))",
    "histogram": "out(tl.histogram(i, 16))",
    "sort": "out(tl.sort(x))",
    "topk": "out(tl.topk(x, 4))",
    "bitonic_merge": "out(tl.bitonic_merge(x))",
    "gather": "out(tl.gather(x, 15 - i, 0))",
    "map_elementwise": "out(tl.map_elementwise(larger, x, 0.0 * x))",
    "inline_asm_elementwise": (
        'out(tl.inline_asm_elementwise("add.s32 $0, $1, 1;", "=r,r", [i], dtype=tl.int32, is_pure=True, pack=1))'
    ),
    # dots
    "dot": "square = tl.broadcast_to(x[:, None], (16, 16)).to(tl.float16)\nout(tl.dot(square, square))",
    "dot_scaled": (
        "codes = tl.broadcast_to(x[:, None], (16, 32)).to(tl.float8e4nv)\n"
        "scales = tl.full((16, 1), 127, tl.uint8)\n"
        'out(tl.dot_scaled(codes, scales, "e4m3", tl.trans(codes), scales, "e4m3"))'
    ),
    # memory
    "load": "out(tl.load(x_ptr + i))",
    "store": "tl.store(i_ptr + i, i)",
    "make_block_ptr": "out(tl.load(tl.make_block_ptr(x_ptr, (16,), (1,), (0,), (16,), (0,))))",
    "advance": "block = tl.make_block_ptr(x_ptr, (16,), (1,), (0,), (8,), (0,))\nout(tl.load(tl.advance(block, (8,))))",
    "make_tensor_descriptor": "out(tl.make_tensor_descriptor(x_ptr, [4, 4], [4, 1], [4, 4]).load([0, 0]))",
    "load_tensor_descriptor": (
        "desc = tl.make_tensor_descriptor(x_ptr, [4, 4], [4, 1], [4, 4])\nout(tl.load_tensor_descriptor(desc, [0, 0]))"
    ),
    "store_tensor_descriptor": (
        "desc = tl.make_tensor_descriptor(x_ptr, [4, 4], [4, 1], [4, 4])\n"
        "tl.store_tensor_descriptor(desc, [0, 0], tl.reshape(x, (4, 4)))"
    ),
    "atomic_add": "out(tl.atomic_add(i_ptr + i, 1))",
    "atomic_and": "out(tl.atomic_and(i_ptr + i, 1))",
    "atomic_or": "out(tl.atomic_or(i_ptr + i, 1))",
    "atomic_xor": "out(tl.atomic_xor(i_ptr + i, 1))",
    "atomic_max": "out(tl.atomic_max(i_ptr + i, 1))",
    "atomic_min": "out(tl.atomic_min(i_ptr + i, 1))",
    "atomic_xchg": "out(tl.atomic_xchg(i_ptr + i, 1))",
    "atomic_cas": "out(tl.atomic_cas(i_ptr + i, 0, i))",
    "atomic_load": "out(i + tl.atomic_load(i_ptr))",
    "atomic_store": "tl.atomic_store(i_ptr, 5)",
    "atomic_poll": "tl.atomic_poll(i_ptr, 0)",
    # random numbers
    "rand": "out(tl.rand(7, i))",
    "randn": "out(tl.randn(7, i))",
    "randint": "out(tl.randint(7, i))",
    "rand4x": "a, b, _, _ = tl.rand4x(7, i)\nout(a + b)",
    "randn4x": "a, b, _, _ = tl.randn4x(7, i)\nout(a + b)",
    "randint4x": "a, b, _, _ = tl.randint4x(7, i)\nout(a + b)",
    "philox": "a, b, _, _ = tl.philox(7, i, i, i, i)\nout(a + b)",
    "philox_impl": "u = i.to(tl.uint32)\na, b, _, _ = tl.philox_impl(u, u, u, u, u, u)\nout(a + b)",
    "random": "out(tl.random.rand(7, i))",
    "uint_to_uniform_float": "out(tl.uint_to_uniform_float(i.to(tl.uint32)))",
    "pair_uniform_to_normal": "a, b = tl.pair_uniform_to_normal(tl.rand(1, i), tl.rand(2, i))\nout(a + b)",
    # hints and checks
    "multiple_of": "out(tl.multiple_of(i, 1))",
    "max_contiguous": "out(tl.max_contiguous(i, 16))",
    "max_constancy": "out(tl.max_constancy(i, 1))",
    "assume": "tl.assume(n > 0)\nout(i + n)",
    "expect_zero": "out(tl.expect_zero(i, i > 100))",
    "debug_barrier": "tl.debug_barrier()\nout(x)",
    "static_assert": "tl.static_assert(True)\nout(x)",
    "static_print": 'tl.static_print("compiled")\nout(x)',
    "device_assert": 'tl.device_assert(n > 0, "n")\nout(x)',
    "device_print": 'tl.device_print("n", n)\nout(x)',
    "target_info": "out(x if tl.target_info.is_cuda() else x + 1)",
    # loops
    "range": "for step in tl.range(0, n, num_stages=2):\n    x += step\nout(x)",
    "static_range": "for step in tl.static_range(3):\n    x += step\nout(x)",
    "condition": "while tl.condition(n > 100):\n    n -= 1\nout(i + n)",
    "swizzle2d": "a, b = tl.swizzle2d(n, n, 4, 4, 2)\nout(i + a + b)",
    # types and values of compile time
    "constexpr": "THREE: tl.constexpr = 3\nout(i + THREE)",
    "const": "out(x)",
    "dtype": 'out(x.to(tl.dtype("fp16")))',
    "str_to_ty": "tl.static_assert(FP32 == tl.float32)\nout(x)",
    "pointer_type": "p = x_ptr.to(tl.pointer_type(tl.int32))\nout(tl.load(p + i))",
    "block_type": "tl.static_assert(x.type == tl.block_type(tl.float32, [16]))\nout(x)",
    "constexpr_type": "tl.static_assert(tl.constexpr_type(3) == tl.constexpr_type(3))\nout(x)",
    "tuple_type": "tl.static_assert(tl.tuple_type([tl.int32]) == tl.tuple_type([tl.int32]))\nout(x)",
    "tuple": "pair = tl.tuple([x, i])\nout(pair[0] + pair[1])",
    "tensor_descriptor": "tl.static_assert(tl.tensor_descriptor is not None)\nout(x)",
    "tensor_descriptor_type": "tl.static_assert(tl.tensor_descriptor_type is not None)\nout(x)",
    "aggregate_replace": "out(tl.aggregate_replace(Pair(x, i), first=x + 1).first)",
    "void": "tl.static_assert(tl.void is not None)\nout(x)",
    "pi32_t": "tl.static_assert(tl.pi32_t == tl.pointer_type(tl.int32))\nout(x)",
    "TRITON_MAX_TENSOR_NUMEL": "tl.static_assert(tl.TRITON_MAX_TENSOR_NUMEL >= 131072)\nout(x)",
}

FLOATS = "float8e4nv float8e5 float8e4b15 float8e4b8 float8e5b16 float16 bfloat16 float32 float64"
INTEGERS = "int1 int8 int16 int32 int64 uint8 uint16 uint32 uint64"
USAGES |= {name: f"out(x.to(tl.{name}).to(tl.float32))" for name in FLOATS.split()}
USAGES |= {name: f"out(i.to(tl.{name}))" for name in INTEGERS.split()}
