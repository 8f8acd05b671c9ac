"""Inline assembly: a template whose operands are `$0`, `$1` ..., and constraints that say which registers they are.

    template("add.u32 $0, $1, $2;", parse_constraints("=r,r,r"))

    h 16 bits    r 32 bits    l 64 bits    f a float    d a double        =r is written        ~{memory} is clobbered

An input of constraint `n` or `i` is a number of the text (`with_immediates`), and no operand then.
Narrow elements of a pack share a register of 32 bits, the first in the lowest bits. Messages of ValueError say what is
wrong, and what would be right.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deuteron.errors import IRError, counted

if TYPE_CHECKING:
    from deuteron.ptx.syntax import Function

REGISTER_BITS = {"h": 16, "r": 32, "l": 64, "f": 32, "d": 64}
_REGISTER_TYPES = {"h": "b16", "r": "b32", "l": "b64", "f": "f32", "d": "f64"}
_FLOATS = "fd"
_IMMEDIATES = ("n", "i")
_LETTERS = ", ".join(REGISTER_BITS)
_OPERAND = re.compile(r"\$(\$|\d+|\{\d+\})?")


@dataclass(frozen=True)
class Constraints:
    """The kind of register of each operand, outputs first; `written_early` are outputs written before inputs are read;
    `tied` says which output an input shares its register with.
    """

    outputs: tuple[str, ...]
    inputs: tuple[str, ...]
    written_early: frozenset[int]
    tied: tuple[tuple[int, int], ...]
    touches_memory: bool

    @property
    def operands(self) -> tuple[str, ...]:
        return (*self.outputs, *self.inputs)

    @property
    def text(self) -> str:
        """As LLVM wants them, without the memory clobber."""
        outputs = [f"=&{o}" if n in self.written_early else f"={o}" for n, o in enumerate(self.outputs)]
        tied = dict(self.tied)
        return ",".join([*outputs, *(str(tied.get(n, letter)) for n, letter in enumerate(self.inputs))])


def parse_constraints(text: str) -> Constraints:
    """Raises ValueError for what is no list of constraints that registers of PTX have."""
    outputs: list[str] = []
    inputs: list[str] = []
    early, tied, memory = set(), [], False
    for part in filter(None, ("".join(item.split()) for item in text.split(","))):
        if part.startswith("~"):
            memory |= part == "~{memory}"
        elif part.startswith("="):
            if inputs:
                raise ValueError(f"the output {part!r} comes after inputs. Outputs come first.")
            early |= {len(outputs)} if part.startswith("=&") else set()
            outputs.append(_letter(part.removeprefix("=").removeprefix("&"), part))
        elif part.isdigit():
            if int(part) >= len(outputs):
                raise ValueError(f"the input {part!r} is tied to an output that is not there: {len(outputs)} are.")
            tied.append((len(inputs), int(part)))
            inputs.append(outputs[int(part)])
        else:
            inputs.append(_letter(part, part))
    return Constraints(tuple(outputs), tuple(inputs), frozenset(early), tuple(tied), memory)


def with_immediates(asm: str, constraints: str, numbers: Sequence[int | None]) -> tuple[str, str, list[int]]:
    """Template and constraints without the inputs that are immediates, whose numbers are in the text instead, and which
    inputs are left. `numbers` has those of the inputs that are known. Raises ValueError for one that is not.

        ("lop3.b32 $0, $1, $2, $3;", "=r,r,n,r", [None, 15, None])     "lop3.b32 $0, $1, 15, $2;", "=r,r,r", [0, 2]
    """
    parts = ["".join(part.split()) for part in constraints.split(",")]
    inputs = [part for part in parts if part and part[0] not in "=~"]
    if not set(inputs) & set(_IMMEDIATES):
        return asm, constraints, list(range(len(numbers)))
    if len(inputs) != len(numbers):
        arguments = counted(len(numbers), "argument")
        raise ValueError(f"immediates take one constraint an argument: there are {len(inputs)}, and {arguments}.")
    first = sum(part.startswith("=") for part in parts)
    kept = [index for index, letter in enumerate(inputs) if letter not in _IMMEDIATES]
    texts = {n: f"${n}" for n in range(first)} | {first + index: f"${first + n}" for n, index in enumerate(kept)}
    for index, letter in enumerate(inputs):
        if letter in _IMMEDIATES:
            if numbers[index] is None:
                raise ValueError(f"argument {index} is no integer known at compile time, as {letter!r} wants. Use 'r'.")
            texts[first + index] = str(numbers[index])
    check_template(asm, len(texts))
    body = _OPERAND.sub(lambda match: "$$" if match[1] == "$" else texts[int(match[1].strip("{}"))], asm)
    return body, ",".join(part for part in parts if part not in _IMMEDIATES), kept


def _letter(letter: str, part: str) -> str:
    if letter not in REGISTER_BITS:
        raise ValueError(f"{part!r} is no constraint of a register of PTX. Use one of {_LETTERS}, outputs as '=r'.")
    return letter


def per_register(bits: int, pack: int) -> int:
    """How many elements of so many bits of a pack share a register."""
    return min(max(32 // bits, 1), pack)


def num_registers(bits: int, pack: int) -> int:
    """How many registers a pack of elements takes."""
    return -(-pack // per_register(bits, pack))


def check_registers(kind: str, what: str, letters: tuple[str, ...], bits: list[int], pack: int) -> None:
    """Raise ValueError unless there is a register of the right size for every pack of elements of so many bits."""
    counts = [num_registers(width, pack) for width in bits]
    if sum(counts) != len(letters):
        raise ValueError(
            f"there are {len(letters)} {kind}s, and {what} need {sum(counts)} with pack={pack}. "
            f"Give a constraint for each of them, such as {'=r' if kind == 'output' else 'r'!r}."
        )
    widths = [
        width * per_register(width, pack) for width, count in zip(bits, counts, strict=True) for _ in range(count)
    ]
    for number, (letter, width) in enumerate(zip(letters, widths, strict=True)):
        size = REGISTER_BITS[letter]
        if width > size or (letter in _FLOATS and width != size):
            fitting = next(name for name in "hrl" if REGISTER_BITS[name] >= width)
            raise ValueError(
                f"{kind} {number} has {width} bits, and {letter!r} is a register of {size}. Use {fitting!r}."
            )


def check_template(text: str, num_operands: int) -> None:
    """Raise ValueError for an operand that is not there."""
    for match in _OPERAND.finditer(text):
        named = match[1]
        if named is None:
            raise ValueError("a '$' is followed by no number. Operands are $0, $1 ...; a dollar sign is '$$'.")
        if named != "$" and int(named.strip("{}")) >= num_operands:
            raise ValueError(f"it names operand ${named}, and the constraints have {num_operands}, $0 the first.")


def template(text: str, constraints: Constraints) -> Function:
    """The instructions of a template; operand i is register i, but of an input that is tied to an output it is that
    one's. Raises ValueError where they cannot be parsed.
    """
    from deuteron.ptx.module import parse  # deferred: tile IR knows the operands of a template, and reads none

    kinds = (f".reg .{_REGISTER_TYPES[letter]} %o{n};" for n, letter in enumerate(constraints.operands))
    tied = {len(constraints.outputs) + number: output for number, output in constraints.tied}

    def register(match: re.Match) -> str:
        number = match[1].strip("{}")
        return "$" if number == "$" else f"%o{tied.get(int(number), int(number))}"

    body = _OPERAND.sub(register, text)
    try:
        return parse(f".visible .entry f() {{ {' '.join(kinds)} {body}\n }}").functions["f"]
    except (IRError, ValueError, KeyError, IndexError) as error:
        raise ValueError(f"it cannot be read: {getattr(error, 'message', error)}") from error
