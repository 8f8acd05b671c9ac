"""The top level of PTX: directives, variables, functions with their parameters and performance directives.

    parse(".version 8.6 .target sm_90a .address_size 64 .visible .entry k(.param .u64 p) .reqntid 128 { ret; }")

Debug sections are skipped; `.file` is kept for `.loc`.
"""

from __future__ import annotations

import re

from deuteron.ptx.body import BodyParser
from deuteron.ptx.declarations import LINKAGE, parse_variable
from deuteron.ptx.syntax import Function, Module, Variable
from deuteron.ptx.tokens import Tokens, is_number

_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+(".*)$', re.MULTILINE)
_STRING = re.compile(r'"([^"]*)"')


def parse(text: str) -> Module:
    """The module; raises IRError, with the line, where the text is not PTX."""
    tokens = Tokens(text)
    # LLVM writes `.file` after the code that refers to it.
    files = {int(number): "/".join(_STRING.findall(paths)) for number, paths in _FILE.findall(text)}
    module = Module(files=files)
    while tokens.peek:
        _parse_item(tokens, module)
    return module


def _parse_item(tokens: Tokens, module: Module) -> None:
    line, word = tokens.line, tokens.peek
    if word == ".file":
        tokens.skip_line(line)
    elif word == ".version":
        tokens.next()
        module.version = tokens.next()
    elif word == ".target":
        tokens.next()
        module.target = tokens.skip_line(line)[0]
    elif word == ".section":
        while tokens.peek != "{":
            tokens.next()
        tokens.skip_braces()
    elif word == ".address_size":
        tokens.skip_line(line)
    elif word.startswith("."):
        _parse_declaration(tokens, module)
    else:
        raise tokens.error(f"expected a directive, found '{word}'")


def _parse_declaration(tokens: Tokens, module: Module) -> None:
    is_extern = False
    while tokens.peek in LINKAGE:
        is_extern |= tokens.next() == ".extern"
    if tokens.peek in (".entry", ".func"):
        _parse_function(tokens, module)
        return
    while True:
        variable = parse_variable(tokens, is_extern)
        module.variables[variable.name] = variable
        if not tokens.accept(","):
            break
    tokens.expect(";")


def _parse_function(tokens: Tokens, module: Module) -> None:
    is_entry = tokens.next() == ".entry"
    returns = _parse_params(tokens) if tokens.peek == "(" else []
    function = Function(tokens.next(), is_entry, returns=returns)
    if tokens.peek == "(":
        function.params = _parse_params(tokens)
    while tokens.peek.startswith("."):
        name = tokens.next()[1:]
        function.directives[name] = _parse_directive_numbers(tokens)
    if tokens.accept(";"):
        return
    BodyParser(tokens, module, function).parse()
    module.functions[function.name] = function


def _parse_params(tokens: Tokens) -> list[Variable]:
    tokens.expect("(")
    params = []
    while not tokens.accept(")"):
        params.append(parse_variable(tokens))
        tokens.accept(",")
    return params


def _parse_directive_numbers(tokens: Tokens) -> tuple[int, ...]:
    numbers = []
    while is_number(tokens.peek):
        numbers.append(int(tokens.next()))
        tokens.accept(",")
    return tuple(numbers)
