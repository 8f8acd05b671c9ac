"""The language: what a kernel may say. `import deuteron.language as tl`.

    types.py       dtypes, pointers, tiles            constant.py   constexpr
    tensor.py      what a runtime value can do        signature.py  types as text
    program.py creation.py shape.py convert.py memory.py atomic.py arithmetic.py select.py math.py reduce.py
    indexing.py inline_asm.py map_elementwise.py dot.py tensor_descriptor.py hints.py debug.py iterators.py
                                                      functions that the frontend knows: signatures, docstrings
    tuple.py       tuples                             aggregate.py  classes of values with methods
    target_info.py what a kernel is compiled for
    reductions.py  sorting.py  random.py  standard.py  functions written in the language itself
    functions/     functions of Python that are kernels: their source, what names mean in it, their key

Nothing here has logic or imports a compiler; what a call means is in `frontend/semantics`, a file of the same name.
"""

# ruff: noqa: F401 (all of it is for others)
# Submodules that share a name with a function (reduce, dot) are hidden by it: `tl.dot` is the function.
from deuteron.language import extra, math, random, target_info
from deuteron.language.aggregate import aggregate_replace
from deuteron.language.arithmetic import PropagateNan, add, clamp, maximum, minimum, mul, sub
from deuteron.language.atomic import (
    atomic_add,
    atomic_and,
    atomic_cas,
    atomic_load,
    atomic_max,
    atomic_min,
    atomic_or,
    atomic_poll,
    atomic_store,
    atomic_xchg,
    atomic_xor,
)
from deuteron.language.block_pointer import advance, make_block_ptr
from deuteron.language.constant import const, constexpr
from deuteron.language.convert import cast, to_tensor
from deuteron.language.creation import arange, full, zeros
from deuteron.language.debug import debug_barrier, device_assert, device_print, static_assert, static_print
from deuteron.language.dot import dot, dot_scaled
from deuteron.language.extra import libdevice
from deuteron.language.hints import assume, max_constancy, max_contiguous, multiple_of
from deuteron.language.indexing import gather, histogram
from deuteron.language.inline_asm import inline_asm_elementwise
from deuteron.language.iterators import condition, range, static_range
from deuteron.language.map_elementwise import map_elementwise
from deuteron.language.math import (
    abs,
    ceil,
    cos,
    div_rn,
    erf,
    exp,
    exp2,
    fdiv,
    floor,
    fma,
    log,
    log2,
    rsqrt,
    sin,
    sqrt,
    sqrt_rn,
    umulhi,
)
from deuteron.language.memory import load, store
from deuteron.language.program import num_programs, program_id
from deuteron.language.random import (
    pair_uniform_to_normal,
    philox,
    philox_impl,
    rand,
    rand4x,
    randint,
    randint4x,
    randn,
    randn4x,
    uint_to_uniform_float,
)
from deuteron.language.reduce import associative_scan, reduce
from deuteron.language.reductions import (
    argmax,
    argmin,
    cumprod,
    cumsum,
    max,
    min,
    reduce_or,
    sum,
    xor_sum,
)
from deuteron.language.select import where
from deuteron.language.shape import (
    broadcast,
    broadcast_to,
    cat,
    expand_dims,
    item,
    join,
    permute,
    reshape,
    split,
    trans,
    view,
)
from deuteron.language.signature import str_to_ty
from deuteron.language.sorting import bitonic_merge, flip, sort, topk
from deuteron.language.standard import (
    cdiv,
    expect_zero,
    interleave,
    ravel,
    sigmoid,
    softmax,
    squeeze,
    swizzle2d,
    unsqueeze,
    zeros_like,
)
from deuteron.language.tensor import tensor
from deuteron.language.tensor_descriptor import (
    _experimental_descriptor_load,
    _experimental_descriptor_store,
    _experimental_make_tensor_descriptor,
    load_tensor_descriptor,
    make_tensor_descriptor,
    store_tensor_descriptor,
    tensor_descriptor,
)
from deuteron.language.tuple import slice, tuple
from deuteron.language.types import (
    TRITON_MAX_TENSOR_NUMEL,
    bfloat16,
    block_type,
    constexpr_type,
    dtype,
    float8e4b8,
    float8e4b15,
    float8e4nv,
    float8e5,
    float8e5b16,
    float16,
    float32,
    float64,
    int1,
    int8,
    int16,
    int32,
    int64,
    pi32_t,
    pointer_type,
    tensor_descriptor_type,
    tuple_type,
    uint8,
    uint16,
    uint32,
    uint64,
    void,
)
