"""The forms of ops without regions, as Triton 3.4 to 3.9 print them."""

from __future__ import annotations

import re
from enum import IntEnum
from functools import cache

from xdsl.dialects.arith import CMPF_COMPARISON_OPERATIONS, CMPI_COMPARISON_OPERATIONS
from xdsl.dialects.builtin import DenseArrayBase, IntAttr, IntegerAttr, i64
from xdsl.ir import Attribute, Operation

from deuteron.ir.pretty.elements import Keywords
from deuteron.ir.pretty.form import Form, Inference
from deuteron.ir.tt.atomic import AtomicKind, MemoryScope, MemorySemantic
from deuteron.ir.tt.convert import PropagateNan, RoundingMode
from deuteron.ir.tt.descriptor import DescriptorReduceKind, TensorDescType
from deuteron.ir.tt.dot import InputPrecision, ScaledFormat
from deuteron.ir.tt.memory import CacheModifier, CachePolicyAttr, EvictionPolicy
from deuteron.ir.ttg.barrier import BarrierOp
from deuteron.ir.types import (
    PointerType,
    i1,
    i32,
    is_block_pointer,
    is_pointer,
    pointee_of,
    with_element_type,
)


def _same(type: Attribute) -> Attribute:
    return type


def _mask(type: Attribute) -> Attribute:
    return with_element_type(type, i1)


def _loaded(pointer: Attribute) -> Attribute:
    """What is loaded through pointers; of what is none the verifier says so."""
    if is_block_pointer(pointer) or not is_pointer(pointer):
        return getattr(pointer, "pointee", pointer)
    return with_element_type(pointer, pointee_of(pointer))


def _element(type: Attribute) -> Attribute:
    return getattr(type, "element_type", type)


def _i32(_: Attribute) -> Attribute:
    return i32


def _i64(_: Attribute) -> Attribute:
    return i64


def _words(enumeration: type[IntEnum], **spelled: str) -> Keywords:
    """The names of an enumeration in small letters, some spelled otherwise."""
    return Keywords({spelled.get(member.name, member.name.lower()): member.value for member in enumeration})


def _number(value: int, type: Attribute = i32) -> Attribute:
    return IntegerAttr(value, type)


def _all_like(source: str, *names: str) -> Inference:
    return {name: (source, _same) for name in names}


def _has_narrow_offsets(op: Operation) -> bool:
    """Triton's have 32 bits."""
    return all(offset.type == i32 for offset in op.offsets)


def _split_policy(attributes: dict[str, Attribute]) -> dict[str, Attribute]:
    """Triton has one attribute from 3.9 on for what are two words before the others."""
    policy = attributes.pop("cachePolicy", None)
    if not isinstance(policy, CachePolicyAttr):
        return attributes
    return attributes | {"cache": _number(policy.cache.data), "evict": _number(policy.evict.data)}


def _join_policy(properties: dict[str, Attribute]) -> dict[str, Attribute]:
    others = {name: value for name, value in properties.items() if name not in ("cache", "evict")}
    cache, evict = (properties[name].value.data for name in ("cache", "evict"))
    if (cache, evict) == (CacheModifier.NONE, EvictionPolicy.NORMAL):
        return others
    return others | {"cachePolicy": CachePolicyAttr(IntAttr(cache), IntAttr(evict))}


CACHE = _words(CacheModifier)
EVICT = _words(EvictionPolicy, NORMAL="evict_normal")
AXES = Keywords({"x": 0, "y": 1, "z": 2})
ORDER = {
    "sem": _words(MemorySemantic, ACQUIRE_RELEASE="acq_rel"),
    "scope": _words(MemoryScope, SYSTEM="sys"),
}
ACCESS = "(`cacheModifier` `=` $cache)? (`evictionPolicy` `=` $evict)?"
HOW = {"cache": CACHE, "evict": EVICT}
PLAIN = {
    "cache": _number(CacheModifier.NONE),
    "evict": _number(EvictionPolicy.NORMAL),
    "boundaryCheck": DenseArrayBase.from_list(i32, []),
    "isVolatile": _number(0, i1),
}
FORMATS = _words(ScaledFormat)
ADDRESS_SPACES = Keywords({"all": BarrierOp.ALL_ADDRESS_SPACES})

CAST = Form("$input promises attr-dict `:` type($input) `to` type($result)")
SHAPED = Form("$src attr-dict `:` type($src) `->` type($result)")
COMBINED = Form("$lhs `,` $rhs attr-dict `:` type($lhs) `->` type($result)", _all_like("lhs", "rhs"))
SAME = Form("operands attr-dict `:` type($result)", _all_like("result", "x", "y"))
PLACE = Form("$axis attr-dict `:` type($result)", keywords={"axis": AXES})
RETURNED = Form("$arguments attr-dict `:` type($arguments)")
MAYBE_RETURNED = Form("attr-dict ($arguments `:` type($arguments))?")
# Of `arith` and `math`, what is not in FORMS: one type, and maybe flags.
ELEMENTWISE = Form(
    "operands promises overflow fastmath attr-dict `:` type($result)",
    _all_like("result", "lhs", "rhs", "operand", "a", "b", "c"),
)


def _comparison(names: list[str]) -> Form:
    return Form(
        "$predicate `,` $lhs `,` $rhs fastmath attr-dict `:` type($lhs)",
        {"rhs": ("lhs", _same), "result": ("lhs", _mask)},
        {"predicate": Keywords({name: value for value, name in enumerate(names)}, i64)},
    )


_TYPES = re.compile(r"type\(\$(\w+)\)")  # in xDSL's forms
FORMS: dict[str, Form] = {
    "arith.cmpi": _comparison(CMPI_COMPARISON_OPERATIONS),
    "arith.cmpf": _comparison(CMPF_COMPARISON_OPERATIONS),
    **{
        f"arith.{name}": CAST
        for name in ("extsi", "extui", "trunci", "extf", "truncf", "sitofp", "uitofp", "fptosi", "fptoui")
    },
    "tt.return": MAYBE_RETURNED,
    "tt.reduce.return": RETURNED,
    "tt.scan.return": RETURNED,
    "tt.map_elementwise.return": RETURNED,
    "tt.call": Form("$callee `(` $arguments `)` attr-dict `:` signature"),
    "tt.get_program_id": PLACE,
    "tt.get_num_programs": PLACE,
    "tt.global_timer": Form("attr-dict `:` type($result)"),
    "tt.make_range": Form("attr-dict `:` type($result)"),
    "tt.splat": SHAPED,
    "tt.unsplat": Form("$src attr-dict `:` type($src)", {"result": ("src", _element)}),
    "tt.expand_dims": SHAPED,
    "tt.broadcast": SHAPED,
    "tt.trans": SHAPED,
    "tt.reshape": Form("$src flag(allow_reorder) flag(efficient_layout) attr-dict `:` type($src) `->` type($result)"),
    "tt.bitcast": SHAPED,
    "tt.ptr_to_int": SHAPED,
    "tt.int_to_ptr": SHAPED,
    "tt.fp_to_fp": Form(
        "$src (`,` `rounding` `=` $rounding)? attr-dict `:` type($src) `->` type($result)",
        keywords={"rounding": _words(RoundingMode)},
    ),
    "tt.join": COMBINED,
    "tt.cat": COMBINED,
    "tt.split": Form("$src attr-dict `:` type($src) `->` type($lhs)", {"rhs": ("lhs", _same)}),
    "tt.precise_sqrt": SAME,
    "tt.precise_divf": SAME,
    "tt.mulhiui": SAME,
    "tt.clampf": Form(
        "$x `,` $min `,` $max `,` `propagateNan` `=` $propagateNan attr-dict `:` type($result)",
        _all_like("result", "x", "min", "max"),
        {"propagateNan": _words(PropagateNan)},
    ),
    "tt.extern_elementwise": Form("$srcs attr-dict `:` signature"),
    "tt.elementwise_inline_asm": Form("$asm_string attr-dict ($args `:` type($args))? `->` type($res)"),
    "tt.gather": Form("$src `[` $indices `]` flag(efficient_layout) attr-dict `:` signature"),
    "tt.histogram": Form("$src (`,` $mask)? attr-dict `:` type($src) `->` type($result)", {"mask": ("src", _mask)}),
    "tt.addptr": Form("$ptr `,` $offset attr-dict `:` type($result) `,` type($offset)", _all_like("result", "ptr")),
    "tt.load": Form(
        f"$ptr (`,` $mask)? (`,` $other)? {ACCESS} attr-dict `:` type($ptr)",
        {"mask": ("ptr", _mask), "other": ("ptr", _loaded), "result": ("ptr", _loaded)},
        HOW,
        PLAIN,
        after_reading=_split_policy,
        before_writing=_join_policy,
    ),
    "tt.store": Form(
        f"$ptr `,` $value (`,` $mask)? {ACCESS} attr-dict `:` type($ptr)",
        {"mask": ("ptr", _mask), "value": ("ptr", _loaded)},
        HOW,
        PLAIN,
        after_reading=_split_policy,
        before_writing=_join_policy,
    ),
    "tt.make_tensor_ptr": Form(
        "$base `,` `[` $shape `]` `,` `[` $strides `]` `,` `[` $offsets `]` attr-dict `:` short-type($result)",
        {
            "base": ("result", lambda type: PointerType(_element(_loaded(type)))),
            "shape": ("result", _i64),
            "strides": ("result", _i64),
            "offsets": ("result", _i32),
        },
        short={"result": PointerType},
        fits=_has_narrow_offsets,
    ),
    "tt.advance": Form(
        "$ptr `,` `[` $offsets `]` attr-dict `:` short-type($result)",
        {"ptr": ("result", _same), "offsets": ("result", _i32)},
        short={"result": PointerType},
        fits=_has_narrow_offsets,
    ),
    "tt.atomic_rmw": Form(
        "$atomic_rmw_op `,` $sem `,` $scope `,` $ptr `,` $value (`,` $mask)? attr-dict `:` signature",
        keywords={**ORDER, "atomic_rmw_op": _words(AtomicKind, XCHG="exch")},
    ),
    "tt.atomic_cas": Form("$sem `,` $scope `,` $ptr `,` $compare `,` $value attr-dict `:` signature", keywords=ORDER),
    "tt.atomic_load": Form("$sem `,` $scope `,` $ptr (`,` $mask)? attr-dict `:` signature", keywords=ORDER),
    "tt.atomic_store": Form(
        "$sem `,` $scope `,` $ptr `,` $value (`,` $mask)? attr-dict `:` type($ptr)",
        {"mask": ("ptr", _mask), "value": ("ptr", _loaded)},
        ORDER,
    ),
    "tt.atomic_poll": Form(
        "$sem `,` $scope `,` $ptr `,` $expected (`timeout` $timeout)? attr-dict `:` type($ptr) `,` type($expected) `->`"
        " type($result)",
        {"timeout": ("ptr", _i64)},
        ORDER,
    ),
    "tt.make_tensor_descriptor": Form(
        "$base `,` `[` $shape `]` `,` `[` $strides `]` attr-dict `:` short-type($base) `,` short-type($result)",
        {"shape": ("base", _i32), "strides": ("base", _i64)},
        defaults={"padding": _number(1)},
        short={"base": PointerType, "result": TensorDescType},
    ),
    "tt.descriptor_load": Form(
        f"$desc `[` $indices `]` {ACCESS} attr-dict `:` type($desc) `->` type($result)",
        {"indices": ("desc", _i32)},
        HOW,
        PLAIN,
        after_reading=_split_policy,
        before_writing=_join_policy,
    ),
    "tt.descriptor_store": Form(
        "$desc `[` $indices `]` `,` $src attr-dict `:` type($desc) `,` type($src)", {"indices": ("desc", _i32)}
    ),
    "tt.descriptor_reduce": Form(
        "$kind `,` $desc `[` $indices `]` `,` $src attr-dict `:` type($desc) `,` type($src)",
        {"indices": ("desc", _i32)},
        {"kind": _words(DescriptorReduceKind)},
    ),
    "tt.descriptor_gather": Form("$desc `[` $x_offsets `,` $y_offset `]` attr-dict `:` signature"),
    "tt.descriptor_scatter": Form(
        "$desc `[` $x_offsets `,` $y_offset `]` `,` $src attr-dict "
        "`:` type($desc) `,` type($x_offsets) `,` type($y_offset) `,` type($src)"
    ),
    "tt.dot": Form(
        "$a `,` $b `,` $c (`,` `inputPrecision` `=` $inputPrecision)? attr-dict "
        "`:` type($a) `*` type($b) `->` type($result)",
        {"c": ("result", _same)},
        {"inputPrecision": _words(InputPrecision)},
        {"inputPrecision": _number(InputPrecision.IEEE), "maxNumImpreciseAcc": _number(0)},
    ),
    "tt.dot_scaled": Form(
        "$a (`scale` $a_scale)? `,` $b (`scale` $b_scale)? `,` $c `lhs` `=` $a_elem_type `rhs` `=` $b_elem_type "
        "attr-dict `:` type($a) (`,` type($a_scale))? `*` type($b) (`,` type($b_scale))? `->` type($result)",
        {"c": ("result", _same)},
        {"a_elem_type": FORMATS, "b_elem_type": FORMATS},
        {"lhs_k_pack": _number(1, i1), "rhs_k_pack": _number(1, i1)},
    ),
    "tt.print": Form("$prefix attr-dict (`:` $values `:` type($values))?"),
    "tt.assert": Form("$condition `,` $message attr-dict `:` type($condition)"),
    "ttg.fence": Form("$scope attr-dict", keywords=ORDER),
    "ttg.barrier": Form("$addrSpace attr-dict", keywords={"addrSpace": ADDRESS_SPACES}),
}


@cache
def form_of(op_type: type[Operation]) -> Form | None:
    """The form of an op; None where it has none. Elementwise ops of `arith` and `math` are those of one type."""
    if op_type.name in FORMS or not op_type.name.startswith(("arith.", "math.")):
        return FORMS.get(op_type.name)
    types = _TYPES.findall(getattr(op_type, "assembly_format", None) or "")
    return ELEMENTWISE if types == ["result"] else None
