"""What Triton's ttir says of a loop in the words of LLVM's dialect: that nothing is to be hoisted out of it.

#loop_licm = #llvm.loop_licm<disable = true, versioningDisable = true>
#loop_annotation = #llvm.loop_annotation<licm = #loop_licm>
scf.for ... {llvm.loop_annotation = #loop_annotation}         ->         scf.for ... {tt.disable_licm}
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp, StringAttr, UnitAttr
from xdsl.ir import Attribute, Dialect, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.parser import AttrParser

_NAME = "llvm.loop_annotation"


def _fields(parser: AttrParser) -> Sequence[Attribute]:
    """`<name = value, ...>`: a truth value, or another attribute, by its text or by the names in it."""

    def field() -> str:
        name = parser.parse_identifier()
        parser.parse_punctuation("=")
        value = parser.parse_optional_boolean()
        if value is None:
            value = _words_of(parser.parse_attribute())
        return f"{name}={value}"

    return [StringAttr(" ".join(parser.parse_comma_separated_list(parser.Delimiter.ANGLE, field)))]


def _words_of(attribute: Attribute) -> str:
    return attribute.fields.data if isinstance(attribute, LoopLICMAttr) else str(attribute)


@irdl_attr_definition
class LoopLICMAttr(ParametrizedAttribute):
    """Whether loop invariants are hoisted."""

    name = "llvm.loop_licm"
    fields: StringAttr = param_def()

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        return _fields(parser)


@irdl_attr_definition
class LoopAnnotationAttr(ParametrizedAttribute):
    """What LLVM is told of a loop."""

    name = _NAME
    fields: StringAttr = param_def()

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        return _fields(parser)


LLVM_HINTS = Dialect("llvm", [], [LoopLICMAttr, LoopAnnotationAttr])


def take_hints(module: ModuleOp) -> None:
    """Give loops our names of hints, in place; what else LLVM is told of them is its own affair."""
    for op in module.walk():
        annotation = op.attributes.pop(_NAME, None)
        if isinstance(annotation, LoopAnnotationAttr) and "licm=disable=True" in annotation.fields.data:
            op.attributes["tt.disable_licm"] = UnitAttr()
