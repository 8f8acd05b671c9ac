"""No public name of Triton 3.9's `triton.language` is missing; each function is in a numeric test on every executor."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from deuteron import language as tl
from deuteron.frontend.semantics import ATTRIBUTES, METHODS
from deuteron.language.builtin import Builtin
from deuteron.language.functions.function import Function

NAMES = """
    PropagateNan TRITON_MAX_TENSOR_NUMEL abs add advance aggregate_replace arange argmax argmin associative_scan assume
    atomic_add atomic_and atomic_cas atomic_load atomic_max atomic_min atomic_or atomic_poll atomic_store atomic_xchg
    atomic_xor bfloat16 bitonic_merge block_type broadcast broadcast_to cast cat cdiv ceil clamp condition const
    constexpr constexpr_type cos cumprod cumsum debug_barrier device_assert device_print div_rn dot dot_scaled dtype erf
    exp exp2 expand_dims expect_zero fdiv flip float16 float32 float64 float8e4b15 float8e4b8 float8e4nv float8e5
    float8e5b16 floor fma full gather histogram inline_asm_elementwise int1 int16 int32 int64 int8 interleave join load
    load_tensor_descriptor log log2 make_block_ptr make_tensor_descriptor map_elementwise math max max_constancy
    max_contiguous maximum min minimum mul multiple_of num_programs pair_uniform_to_normal permute philox philox_impl
    pi32_t pointer_type program_id rand rand4x randint randint4x randn randn4x random range ravel reduce reduce_or
    reshape rsqrt sigmoid sin slice softmax sort split sqrt sqrt_rn squeeze static_assert static_print static_range
    store store_tensor_descriptor str_to_ty sub sum swizzle2d target_info tensor tensor_descriptor
    tensor_descriptor_type to_tensor topk trans tuple tuple_type uint16 uint32 uint64 uint8 uint_to_uniform_float umulhi
    unsqueeze view void where xor_sum zeros zeros_like
"""

METHOD_NAMES = """
    T abs advance argmax argmin associative_scan atomic_add atomic_and atomic_cas atomic_load atomic_max atomic_min
    atomic_or atomic_poll atomic_store atomic_xchg atomic_xor broadcast_to cast cdiv ceil cos cumprod cumsum erf exp
    exp2 expand_dims flip floor gather histogram item log log2 logical_and logical_or max min permute ravel reduce
    reduce_or reshape rsqrt sigmoid sin softmax sort split sqrt sqrt_rn store sum to trans view xor_sum
"""


NUMERIC = [Path(__file__).parents[1] / folder for folder in ("run", "kernels")]  # all in them runs on every executor


@pytest.mark.parametrize("name", NAMES.split())
def test_name(name: str):
    assert hasattr(tl, name)


@pytest.mark.parametrize("name", METHOD_NAMES.split())
def test_method(name: str):
    assert name in METHODS or name in ATTRIBUTES


@cache
def attributes_in_numeric_tests() -> frozenset[str]:
    sources = [path.read_text() for folder in NUMERIC for path in folder.rglob("*.py")]
    nodes = [node for source in sources for node in ast.walk(ast.parse(source))]
    return frozenset(node.attr for node in nodes if isinstance(node, ast.Attribute))


FUNCTIONS = [name for name in NAMES.split() if isinstance(getattr(tl, name, None), Builtin | Function)]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function_is_in_a_numeric_test(name: str):
    assert name in attributes_in_numeric_tests()
