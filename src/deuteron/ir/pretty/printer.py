"""Prints tile IR as Triton does: ops without quotes where they have a form, locations once, below the module.

    %x = tt.load %p, %mask : tensor<64x!tt.ptr<f32>> loc(#loc1)
    ...
    #loc = loc("k.py":7:9)
    #loc1 = loc("x"(#loc))

An op without a form is printed in the generic one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, get_args

from xdsl.dialects import scf
from xdsl.dialects.builtin import CallSiteLoc, DictionaryAttr, FileLineColLoc, LocationAttr, ModuleOp, NameLoc
from xdsl.ir import Attribute, Operation, SSAValue

from deuteron.ir.generic_printer import GenericPrinter, quoted
from deuteron.ir.pretty.elements import dictionary_text
from deuteron.ir.pretty.forms import form_of
from deuteron.ir.pretty.regions import WRITERS
from deuteron.ir.tt.function import FuncOp

_LOCATIONS = frozenset(get_args(LocationAttr))


class PrettyPrinter(GenericPrinter):
    """`definitions` are the layouts, which come before the module, `locations` come after it."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self._locations: dict[str, str] = {}

    def print_op(self, op: Operation) -> None:
        kind = type(op)
        form = form_of(kind)
        if kind in self._WITH_REGIONS:
            self._print_results(op)
            self._WITH_REGIONS[kind](self, op)
        elif kind in WRITERS:
            self._print_results(op)
            self.stream.write(WRITERS[kind](op, self._name, self.text))
        elif form is not None and form.fits(op):
            self._print_results(op)
            self.stream.write(f"{op.name}{form.write(op, self._name, self.text)}")
        else:
            super().print_op(op)
            return
        if self.print_debuginfo:
            self.stream.write(f" {self.text(op.location)}")

    def _name(self, value: SSAValue) -> str:
        """A value that is printed already; only in IR that is wrong it may not be."""
        known = self._ssa_values.get(value)
        return f"%{known}" if known is not None else f"%{value.name_hint or ''}undefined"

    def _make_text(self, attribute: Attribute) -> str:
        if type(attribute) in _LOCATIONS:
            body = self._location_body(attribute)
            alias = self._locations.setdefault(body, f"#loc{len(self._locations) or ''}")
            return f"loc({alias})"
        return super()._make_text(attribute)

    def _inner(self, location: LocationAttr) -> str:
        """The alias of a location, as it is written within another one."""
        return self.text(location)[len("loc(") : -1]

    def _location_body(self, location: LocationAttr) -> str:
        if isinstance(location, FileLineColLoc):
            return f"{quoted(location.filename.data.encode())}:{location.line.data}:{location.column.data}"
        if isinstance(location, NameLoc) and type(location.location) in _LOCATIONS:
            return f"{quoted(location.desc.data.encode())}({self._inner(location.location)})"
        if isinstance(location, CallSiteLoc):
            return f"callsite({self._inner(location.callee)} at {self._inner(location.caller)})"
        return super()._make_text(location).removeprefix("loc(").removesuffix(")")

    def locations(self) -> str:
        return "".join(f"{alias} = loc({body})\n" for body, alias in self._locations.items())

    def _print_module(self, op: ModuleOp) -> None:
        self.enter_scope()
        self.stream.write(f"module{self._attributes(' attributes ', op.attributes)} ")
        self.print_region(op.body)
        self.exit_scope()

    def _attributes(self, before: str, attributes: dict[str, Attribute]) -> str:
        return f"{before}{dictionary_text(attributes, self.text)}" if attributes else ""

    def _print_function(self, op: FuncOp) -> None:
        self.enter_scope()
        self.stream.write(f"tt.func {op.sym_visibility.data} @" if op.sym_visibility is not None else "tt.func @")
        self.print_identifier_or_string_literal(op.sym_name.data)
        given = op.arg_attrs.data if op.arg_attrs is not None else [DictionaryAttr({})] * len(op.args)
        self.stream.write("(")
        self.print_list(list(zip(op.args, given, strict=True)), self._print_parameter)
        outputs = op.function_type.outputs.data
        attributes = op.res_attrs.data if op.res_attrs is not None else [DictionaryAttr({})] * len(outputs)
        results = [self.text(type) + self._attributes(" ", a.data) for type, a in zip(outputs, attributes, strict=True)]
        is_bare = len(results) == 1 and op.res_attrs is None
        arrow = f" -> {results[0] if is_bare else _in_parentheses(results)}" if results else ""
        self.stream.write(f"){arrow}{self._attributes(' attributes ', op.attributes)} ")
        self.print_region(op.body, print_entry_block_args=False)
        self.exit_scope()

    def _print_parameter(self, described: tuple[SSAValue, DictionaryAttr]) -> None:
        argument, attributes = described
        self.print_ssa_value(argument)
        location = f" {self.text(argument.location)}" if self.print_debuginfo else ""
        self.stream.write(f": {self.text(argument.type)}{self._attributes(' ', attributes.data)}{location}")

    def _print_for(self, op: scf.ForOp) -> None:
        variable, *carried = op.body.block.args
        bounds = [self._name(value) for value in (op.lb, op.ub, op.step)]
        self.stream.write("scf.for ")
        self.print_ssa_value(variable)
        self.stream.write(" = {} to {} step {}".format(*bounds))
        if carried:
            self._print_carried(" iter_args", carried, op.iter_args)
            self.stream.write(f" -> {_in_parentheses([self.text(argument.type) for argument in carried])}")
        self.stream.write(f" : {self.text(variable.type)} ")
        self.print_region(op.body, print_entry_block_args=False)
        self.stream.write(self._attributes(" ", op.attributes))

    def _print_carried(self, before: str, arguments: Sequence[SSAValue], values: Sequence[SSAValue]) -> None:
        """`iter_args(%a = %b, ...)`"""
        self.stream.write(f"{before}(")
        for index, (argument, value) in enumerate(zip(arguments, values, strict=True)):
            self.stream.write(", " if index else "")
            self.print_ssa_value(argument)
            self.stream.write(f" = {self._name(value)}")
        self.stream.write(")")

    def _print_if(self, op: scf.IfOp) -> None:
        types = _in_parentheses([self.text(result.type) for result in op.results])
        self.stream.write(f"scf.if {self._name(op.cond)} {f'-> {types} ' if op.results else ''}")
        self.print_region(op.true_region)
        if op.false_region.blocks:
            self.stream.write(" else ")
            self.print_region(op.false_region)
        self.stream.write(self._attributes(" ", op.attributes))

    def _print_while(self, op: scf.WhileOp) -> None:
        self.stream.write("scf.while")
        arguments = op.before_region.block.args
        if arguments:
            self._print_carried(" ", arguments, op.arguments)
        inputs = _in_parentheses([self.text(argument.type) for argument in op.arguments])
        outputs = [self.text(result.type) for result in op.results]
        self.stream.write(f" : {inputs} -> {outputs[0] if len(outputs) == 1 else _in_parentheses(outputs)} ")
        self.print_region(op.before_region, print_entry_block_args=False)
        self.stream.write(" do ")
        self.print_region(op.after_region)
        self.stream.write(self._attributes(" attributes ", op.attributes))

    _WITH_REGIONS: ClassVar = {
        ModuleOp: _print_module,
        FuncOp: _print_function,
        scf.ForOp: _print_for,
        scf.IfOp: _print_if,
        scf.WhileOp: _print_while,
    }


def _in_parentheses(texts: Sequence[str]) -> str:
    return f"({', '.join(texts)})"
