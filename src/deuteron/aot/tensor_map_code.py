"""C that encodes a kernel's tensor maps before a launch: what `backend.tensor_map` says of them, as expressions.

    expression_code(("mul", 64, ("argument", 1, 32), ("constant", 2)), params)
        (int64_t)((uint64_t)(int64_t)(int32_t)n * (uint64_t)INT64_C(2))
    encoding_code(maps, params)       the statements; `deuteron_map0` ... are the maps
    demands(maps, params)             what has to hold for that, "deuteron_is_size(...)", and in words what does not

Sums wrap as they do in the kernel. What cannot be copied by TMA is refused by runtime/cuda_tensor_maps.c with
DEUTERON_ERROR_INVALID_VALUE, as the driver does it; a map that a branch makes is all zeros then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from deuteron.aot.metadata import ParamRecord
from deuteron.backend.tensor_map import (
    ALIGNMENT,
    DATA_TYPES,
    OTHERWISE,
    SIZE,
    SWIZZLES,
    Expression,
    TensorMap,
    arguments_of,
)

_OPERATORS = {"add": "+", "sub": "-", "mul": "*"}
_COMPARISONS = {"max": ">", "min": "<"}
_FILLS = {"zero": 0, "nan": 1}


def expression_code(expression: Expression, params: Sequence[ParamRecord]) -> str:
    """An expression of type int64_t, without overflow of signed numbers."""
    name, *parts = expression
    if name == "constant":
        return f"INT64_C({parts[0]})" if parts[0] >= 0 else f"(-INT64_C({-parts[0]}))"
    if name == "argument":
        cast = "(int64_t)" if parts[1] == 64 else f"(int64_t)(int{parts[1]}_t)"
        return f"{cast}{params[parts[0]].c_name}"
    x, y = (expression_code(part, params) for part in parts[1:])
    if name in _COMPARISONS:
        return f"({x} {_COMPARISONS[name]} {y} ? {x} : {y})"
    wrapped = "(int64_t)" if parts[0] == 64 else f"(int64_t)(int{parts[0]}_t)"
    return f"{wrapped}((uint64_t){x} {_OPERATORS[name]} (uint64_t){y})"


def encoding_code(maps: Sequence[TensorMap], params: Sequence[ParamRecord]) -> str:
    """The statements that encode all maps, and return where one cannot be; empty without maps."""
    return "".join(_map_code(index, described, params) for index, described in enumerate(maps))


def declaration_code(maps: Sequence[TensorMap]) -> str:
    """The variables that hold the maps."""
    lines = (
        f"  unsigned char deuteron_map{index}[{SIZE}] __attribute__((aligned({ALIGNMENT})));\n"
        for index in range(len(maps))
    )
    return "".join(lines)


def demands(maps: Sequence[TensorMap], params: Sequence[ParamRecord]) -> Iterator[tuple[str, str]]:
    """What TMA asks of the tensors that every launch encodes: in C, and in words what is wrong where it does not hold.

    The same as deuteron_cuda_encode of runtime/cuda_tensor_maps.c, by functions of runtime/tensors.c. Constants have
    been looked at when the kernel was compiled.
    """
    for described in maps:
        if not described.is_conditional:
            yield from _demands_of(described, params)


def _demands_of(described: TensorMap, params: Sequence[ParamRecord]) -> Iterator[tuple[str, str]]:
    name = _array(described, params)
    yield f"deuteron_is_address((uint64_t){expression_code(described.base, params)})", f"{name} is not divisible by 16"
    for dim, size in enumerate(described.sizes):
        if arguments_of(size):
            text = f"size {dim} of {name} is not from 1 to 2**32"
            yield f"deuteron_is_size({expression_code(size, params)})", text
    for dim, stride in enumerate(described.strides):
        if arguments_of(stride):
            text = f"stride {dim} of {name} is not a multiple of 16 bytes from 0 to 2**40{_way_out(described)}"
            yield f"deuteron_is_stride({_stride_code(described, stride, params)})", text


def _way_out(described: TensorMap) -> str:
    return f"; {OTHERWISE}" if described.is_inferred else ""


def _array(described: TensorMap, params: Sequence[ParamRecord]) -> str:
    """The name of the array that a map is of."""
    pointers = [params[index] for index in arguments_of(described.base) if (params[index].type or "").startswith("*")]
    return pointers[0].name if pointers else "an array"


def _stride_code(described: TensorMap, stride: Expression, params: Sequence[ParamRecord]) -> str:
    """A stride in bytes."""
    return expression_code(("mul", 64, stride, ("constant", described.element_bytes)), params)


def _map_code(index: int, described: TensorMap, params: Sequence[ParamRecord]) -> str:
    sizes = [expression_code(extent, params) for extent in reversed(described.sizes)]
    strides = [_stride_code(described, stride, params) for stride in reversed(described.strides)]
    element, swizzle = DATA_TYPES[described.element][1], SWIZZLES[described.swizzle][1]
    box = ", ".join(map(str, reversed(described.box)))
    return (
        "  {\n"
        f"    static const deuteron_tensor_box box = "
        f"{{{element}, {len(described.box)}, {swizzle}, {_FILLS[described.padding]}, {{{box}}}}};\n"
        f"    const int64_t sizes[] = {{{', '.join(sizes)}}};\n"
        f"    const int64_t strides[] = {{{', '.join([*strides, '0'])}}};\n"
        f"    const uint64_t address = (uint64_t){expression_code(described.base, params)};\n"
        f"    deuteron_result =\n"
        f"        (deuteron_status)deuteron_cuda_encode_v5(&box, address, sizes, strides, deuteron_map{index});\n"
        f"{_unusable_code(index) if described.is_conditional else ''}"
        "    if (deuteron_result != DEUTERON_SUCCESS)\n"
        "      return deuteron_result;\n"
        "  }\n"
    )


def _unusable_code(index: int) -> str:
    """What becomes of a map that a branch makes, where it cannot be encoded: the branch is not taken."""
    return (
        "    if (deuteron_result == DEUTERON_ERROR_INVALID_VALUE) {\n"
        "      size_t i;\n"
        f"      for (i = 0; i < sizeof deuteron_map{index}; i++)\n"
        f"        deuteron_map{index}[i] = 0;\n"
        "      deuteron_result = DEUTERON_SUCCESS;\n"
        "    }\n"
    )
