"""The body of a function: labels, declarations, guarded instructions, call sequences, nested scopes.

    { .reg .pred P; W: mbarrier.try_wait... P, [%r16], %r17; @P bra D; bra W; D: }

Scopes are flattened: `P` becomes a register of its own number, `W` a label with a name of its own. Labels are resolved
when the function is complete, since branches go forward. A jump by an index is given the labels of its table:

    T: .branchtargets A, B;  brx.idx %r1, T;        Instruction("brx.idx", (Register(1), Vector((A, B))), ...)
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping

from deuteron.errors import Location
from deuteron.ptx.declarations import SPACES, parse_variable
from deuteron.ptx.operands import parse_operand
from deuteron.ptx.syntax import Function, Instruction, Module, Negated, Operand, Register, Symbol, Vector
from deuteron.ptx.tokens import Tokens

_BRANCHES = ("bra", "brx", "call")


class BodyParser:
    """Fills `function` from the tokens between its braces."""

    def __init__(self, tokens: Tokens, module: Module, function: Function):
        self.tokens = tokens
        self.module = module
        self.function = function
        self.names: ChainMap[str, Register] = ChainMap()
        self.labels: ChainMap[str, str] = ChainMap()
        self.source: Location | None = None
        self.pending: list[tuple[int, str, ChainMap[str, str]]] = []
        self.tables: dict[str, tuple[str, ...]] = {}

    def parse(self) -> None:
        self.tokens.expect("{")
        self._parse_scope()
        self._resolve_labels()

    def _parse_scope(self) -> None:
        self._define_labels_of_scope()
        while not self.tokens.accept("}"):
            self._parse_statement()

    def _parse_nested_scope(self) -> None:
        self.names, self.labels = self.names.new_child(), self.labels.new_child()
        self._parse_scope()
        self.names, self.labels = self.names.parents, self.labels.parents

    def _define_labels_of_scope(self) -> None:
        """Labels of this scope, found by looking ahead, so that a branch sees those that come after it."""
        texts, index, depth = self.tokens.texts, self.tokens.index, 1
        while depth and texts[index]:
            text = texts[index]
            depth += (text == "{") - (text == "}")
            if depth == 1 and texts[index + 1] == ":":
                self.labels.maps[0][text] = f"{text}@{index}"
            index += 1

    def _parse_statement(self) -> None:
        tokens = self.tokens
        word = tokens.peek
        if word == "{":
            tokens.next()
            self._parse_nested_scope()
        elif word == "@":
            self._parse_instruction()
        elif word.startswith("."):
            self._parse_directive()
        elif not word:
            tokens.next()
        elif tokens.texts[tokens.index + 1] == ":":
            self._parse_label()
        elif not tokens.accept(";"):
            self._parse_instruction()

    def _parse_label(self) -> None:
        """A label; before `.branchtargets` it is the name of a table, up to the semicolon."""
        label = self.labels[self.tokens.next()]
        self.tokens.expect(":")
        if not self.tokens.accept(".branchtargets"):
            self.function.labels[label] = len(self.function.instructions)
            return
        targets = []
        while not self.tokens.accept(";"):
            targets.append(self.tokens.next())
            self.tokens.accept(",")
        self.tables[label] = tuple(targets)

    def _parse_directive(self) -> None:
        word = self.tokens.peek[1:]
        if word == "loc":
            self._parse_location()
        elif word == "reg":
            self._parse_registers()
        elif word in SPACES:
            self._parse_variable()
        else:
            self._skip_directive()

    def _parse_variable(self) -> None:
        """A variable of the function; parameters of calls reuse names, and the largest of a name serves all."""
        variable = parse_variable(self.tokens)
        known = self.function.variables.get(variable.name)
        if known is None or known.size < variable.size:
            self.function.variables[variable.name] = variable
        self.tokens.expect(";")

    def _skip_directive(self) -> None:
        """`.pragma "nounroll";`, `.callprototype ...;`."""
        while self.tokens.next() != ";":
            pass

    def _parse_location(self) -> None:
        line = self.tokens.line
        words = self.tokens.skip_line(line)
        file = self.module.files.get(int(words[1]), "?")
        self.source = Location(file, int(words[2]), max(int(words[3]), 1)) if int(words[2]) else None

    def _parse_registers(self) -> None:
        tokens = self.tokens
        tokens.next()
        type = tokens.next()[1:]
        if type in ("v2", "v4"):
            raise tokens.error("vector registers are not supported")
        while not tokens.accept(";"):
            name = tokens.next()
            if tokens.accept("<"):
                for number in range(int(tokens.next())):
                    self._define_register(f"{name}{number}", type)
                tokens.expect(">")
            else:
                self._define_register(name, type)
            tokens.accept(",")

    def _define_register(self, name: str, type: str) -> None:
        self.names.maps[0][name] = Register(len(self.function.registers))
        self.function.registers.append(type)
        self.function.register_names.append(name)

    def _parse_instruction(self) -> None:
        tokens = self.tokens
        line, start = tokens.line, tokens.index
        guard, negated = self._parse_guard()
        opcode = tokens.next()
        operands = []
        while not tokens.accept(";"):
            operands.append(parse_operand(tokens, self.names))
            if tokens.peek not in (",", ";"):
                raise tokens.error(f"expected ',' or ';', found '{tokens.peek}'")
            tokens.accept(",")
        words = tuple(tokens.texts[start : tokens.index])
        instruction = Instruction(opcode, tuple(operands), line, guard, negated, self.source, words)
        if opcode.split(".")[0] in _BRANCHES:
            self.pending.append((len(self.function.instructions), opcode, self.labels))
        self.function.instructions.append(instruction)

    def _parse_guard(self) -> tuple[Register | None, bool]:
        if not self.tokens.accept("@"):
            return None, False
        operand = parse_operand(self.tokens, self.names)
        return (operand.operand, True) if isinstance(operand, Negated) else (operand, False)

    def _resolve_labels(self) -> None:
        for index, opcode, labels in self.pending:
            instruction = self.function.instructions[index]
            if opcode.startswith("bra"):
                instruction.operands = (self._label(instruction, labels, instruction.operands[0]),)
            elif opcode.startswith("brx"):
                number, table = instruction.operands
                names = self.tables.get(self._label(instruction, labels, table).name, ())
                targets = tuple(self._label(instruction, labels, Symbol(name)) for name in names)
                instruction.operands = (number, Vector(targets))

    def _label(self, instruction: Instruction, labels: Mapping[str, str], operand: Operand) -> Symbol:
        """A label under its own name in the function."""
        if not isinstance(operand, Symbol) or operand.name not in labels:
            raise self.tokens.error(f"unknown label in '{instruction.text}'")
        return Symbol(labels[operand.name])
