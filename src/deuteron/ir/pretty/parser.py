"""Reads tile IR in both of its forms, as Triton writes it: locations may be defined below their uses.

%x = tt.load %p : tensor<64x!tt.ptr<f32>> loc(#loc3)
...
#loc3 = loc("k.py":7:9)
"""

from __future__ import annotations

import re

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Operation
from xdsl.parser import Parser
from xdsl.utils.mlir_lexer import MLIRTokenKind

from deuteron.ir.pretty.forms import form_of
from deuteron.ir.pretty.regions import PARSERS

_LOCATION_ALIAS = re.compile(r"^(#loc\d*) = (?=loc\()", re.MULTILINE)
# What other ops are here.
_RENAMED = {"gpu.barrier": "ttg.barrier", "arith.bitcast": "tt.bitcast", "ub.poison": "arith.constant"}


class PrettyParser(Parser):
    """A parser of both forms."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        text = self.lexer.input.content
        self._locations = {found[1]: found.end() for found in _LOCATION_ALIAS.finditer(text)}

    def parse_operation(self) -> Operation:
        """As xDSL's, with our forms for ops that are not in quotes."""
        place = self._current_token.span
        bound = self._parse_op_result_list()
        name = self._parse_optional_token(MLIRTokenKind.BARE_IDENT)
        written = name.text if name else self.parse_str_literal()
        op_type = self._get_op_by_name(_RENAMED.get(written, written))
        self._parser_state.dialect_stack.append(op_type.dialect_name())
        op = self._parse_named(written, op_type) if name else self._parse_generic_operation(op_type)
        self._parser_state.dialect_stack.pop()
        if sum(count for _, count in bound) not in (0, len(op.results)):
            self.raise_error(f"{op.name} has {len(op.results)} results", place)
        first = 0
        for span, count in bound:
            self._register_ssa_definition(span.text[1:], op.results[first : first + count], span)
            first += count
        return op

    def _parse_named(self, name: str, op_type: type[Operation]) -> Operation:
        """An op in its own form, with its location."""
        parse, form = PARSERS.get(name, PARSERS.get(op_type.name)), form_of(op_type)
        if parse is not None:
            op = parse(self, op_type)
        else:
            op = form.parse(self, op_type) if form is not None else op_type.parse(self)
        location = self.parse_optional_location()
        op.location = op.location if location is None else location
        return op

    def _parse_location(self) -> LocationAttr:
        if self._current_token.text in self._locations:
            return self._aliased_location()
        return super()._parse_location()

    def _aliased_location(self) -> LocationAttr:
        """The location of an alias, which is read where it is defined when it is first used."""
        alias = self._consume_token().text
        if alias not in self.attribute_aliases:
            state = self._parser_state
            after = state.current_token, state.lexer.pos
            self._resume_from(self._locations[alias])
            self.attribute_aliases[alias] = self.parse_optional_location()
            state.current_token, state.lexer.pos = after
        return self.attribute_aliases[alias]

    def _parse_alias_def(self) -> None:
        """The definition of a location is read where it is used."""
        if self._current_token.text not in self._locations:
            super()._parse_alias_def()
            return
        end = self.lexer.input.content.find("\n", self.pos)
        self._resume_from(end if end >= 0 else self.lexer.input.len)
