"""The C++17 functions of a library: overloads on the types of their arguments, in a namespace, over those of C.

    library_cxx(chooser, "acme", overloads)        the text of norms.hpp

    [[nodiscard]] inline deuteron_status rms_norm(deuteron::stream stream, const float *X, ..., int algo_id = any_algo)

Every function has its own name, `rms_norm_fp16`, and that of its overload set. Two that would have the same parameters,
as the kernels for fp16 and bf16 have where both are uint16_t, are no overloads: they have their own names only.

Whole numbers may be of any type, `deuteron::whole<int32_t> n`; one that the parameter's type does not have is refused.
Overloads that pointers do not tell apart take the types themselves, by which C++ then chooses.

The functions of C are called by their symbols, so that one C++ file may use libraries whose functions have equal
names. An inline namespace of the library's own keeps functions of C++ apart that have their namespace in common, too:
the linker takes one of those of equal names for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from deuteron.aot.c_types import c_type, declaration, is_read
from deuteron.aot.checked_code import is_checked as has_checks
from deuteron.aot.checked_params import checked_params
from deuteron.aot.dispatch import Chooser, Functions, algo_constants, records_of
from deuteron.aot.metadata import ParamRecord
from deuteron.aot.queries import REASON, values_of
from deuteron.aot.symbols import symbol
from deuteron.aot.targets.target import LIBRARY_TYPES
from deuteron.aot.templates import render, runtime_source
from deuteron.dtypes import FLOATS, INTEGERS

_STREAM = "deuteron::stream stream"
_ANY_ALGO = "int algo_id = deuteron::any_algo"
_POINTEES = {
    **{type.signature: c_type(type.signature) for type in INTEGERS},
    **{type.signature: c_type(type.signature) for type in FLOATS if type.bits >= 32},
    **{type.signature: f"deuteron::{type.signature}" for type in FLOATS if type.bits == 16},
}
_WHOLE = {c_type(type.signature) for type in INTEGERS} - {"bool"}
_IS_UINT16 = {"deuteron::fp16": "uint16_t", "deuteron::bf16": "uint16_t"}


def library_cxx(chooser: Chooser, namespace: str, overloads: Mapping[str, str]) -> str:
    """The text; `overloads` is the name of each function's overload set."""
    functions = chooser.functions
    names = _Names(functions, overloads, chooser.digest)
    constants = (constant for name, algos in functions.items() for constant in enumerate(algo_constants(name, algos)))
    definitions = [*names.definitions(is_checked=False), *map(names.select, functions), *map(names.others, functions)]
    return render(
        "library.hpp",
        name=chooser.file_name,
        namespace=namespace,
        digest=chooser.digest,
        example=overloads[next(iter(functions))],
        types=runtime_source(*LIBRARY_TYPES, "any.h"),
        symbols=chooser.symbols(),
        constants="\n".join(f"inline constexpr int {constant} = {i};" for i, constant in constants),
        functions="\n".join(definitions),
        checked="\n".join(names.definitions(is_checked=True)),
    )


class _Names:
    """The names of all functions, and which of them can be told apart by their parameters."""

    def __init__(self, functions: Functions, overloads: Mapping[str, str], digest: str):
        self.functions, self.overloads, self.digest = functions, overloads, digest
        self.types = {function: self._types(function) for function in functions}

    def definitions(self, is_checked: bool) -> list[str]:
        return [text for function in self.functions for text in self._of(function, is_checked)]

    def _of(self, function: str, is_checked: bool) -> list[str]:
        overload = self.overloads[function]
        texts = [self._definition(function, function, is_checked)]
        if overload == function:
            return texts
        others = [other for other in self.functions if other != function and self.overloads[other] == overload]
        text = self._definition(overload, function, is_checked)
        if any(self.types[other] == self.types[function] for other in others):
            return texts
        if any(_as_integers(self.types[other]) == _as_integers(self.types[function]) for other in others):
            text = f"#if defined(DEUTERON_FP16) && defined(DEUTERON_BF16)\n{text}#endif\n"
        return [*texts, text]

    def select(self, function: str) -> str:
        """The function that finds an algorithm by its values."""
        values = values_of(self.functions[function])
        declared = [f"{value.c_parameter} = {'nullptr' if value.is_text else 'deuteron::any'}" for value in values]
        head = declaration("[[nodiscard]] inline int", f"{function}_select", declared)
        given = ", ".join(value.c_name for value in values)
        return f"{head} noexcept {{\n  return {self._symbol(f'{function}_select')}({given});\n}}\n"

    def others(self, function: str) -> str:
        """How many algorithms there are, and what loads and unloads them."""
        count = f"{function}_get_num_algos"
        texts = [f"[[nodiscard]] inline int {count}() noexcept {{ return {self._symbol(count)}(); }}"]
        for name in (f"load_{function}", f"unload_{function}"):
            body = f"{{\n  return {self._symbol(name)}(stream.handle());\n}}\n"
            texts.append(f"[[nodiscard]] inline deuteron_status {name}({_STREAM}) noexcept {body}")
        return "\n\n".join(texts)

    def _symbol(self, function: str) -> str:
        return f"::{symbol(self.digest, function)}"

    def _definition(self, name: str, function: str, is_checked: bool) -> str:
        texts = [self._launch(name, function, is_checked)]
        if has_checks(records_of(self.functions[function])):
            texts.append(self._bounded(name, function, is_checked))
        return "\n".join(texts if is_checked else [*texts, self._supports(name, function)])

    def _launch(self, name: str, function: str, is_checked: bool) -> str:
        result = "inline void" if is_checked else "[[nodiscard]] inline deuteron_status"
        params = self._parameters(name, function)
        head = declaration(result, name, [_STREAM, *params.declared, _ANY_ALGO])
        arguments = params.given
        default, chosen = self._symbol(f"{function}_default"), self._symbol(function)
        call = f"algo_id == deuteron::any_algo ? {default}({arguments})\n      : {chosen}({arguments}, algo_id)"
        if not is_checked:
            return f"{head} noexcept {{\n{params.refusing_misfits(_fails)}  return {call};\n}}\n"
        asked = f"{self._symbol(f'{function}_supports')}({arguments}, deuteron_algo, deuteron_why)"
        why = f"[&](int deuteron_algo, const char **deuteron_why) {{ return {asked}; }}"
        return f"{head} {{\n{params.refusing_misfits(_throws)}  deuteron_check({call},\n      algo_id, {why});\n}}\n"

    def _bounded(self, name: str, function: str, is_checked: bool) -> str:
        """The function that checks what kernels access; the exception has its text, the status gives it away."""
        more, params = checked_params(self._params(function)), self._parameters(name, function)
        result = "inline void" if is_checked else "[[nodiscard]] inline deuteron_status"
        sizes = [f"std::uint64_t {size}" for size in more.sizes]
        told = [] if is_checked else [f"std::string *{more.message} = nullptr"]
        head = declaration(result, f"{name}_checked", [_STREAM, *params.declared, *sizes, _ANY_ALGO, *told])
        given = ", ".join([params.given, *more.sizes, "algo_id", "deuteron_text", "sizeof deuteron_text"])
        called = self._symbol(f"{function}_checked")
        then, refused = "deuteron::check(deuteron_result, deuteron_text);", _throws
        if not is_checked:
            then = f"if ({more.message})\n    *{more.message} = deuteron_text;\n  return deuteron_result;"
            refused = _says(more.message)
        return (
            f'{head} {{\n{params.refusing_misfits(refused)}  char deuteron_text[1024] = "";\n'
            f"  const deuteron_status deuteron_result = {called}({given});\n  {then}\n}}\n"
        )

    def _supports(self, name: str, function: str) -> str:
        called, params = self._symbol(f"{function}_supports"), self._parameters(name, function)
        declared = [_STREAM, *params.declared, _ANY_ALGO, f"{REASON} = nullptr"]
        head = declaration("[[nodiscard]] inline deuteron_status", f"{name}_supports", declared)
        refused = params.refusing_misfits(_says("reason"))
        return f"{head} noexcept {{\n{refused}  return {called}({params.given}, algo_id, reason);\n}}\n"

    def _parameters(self, name: str, function: str) -> _Parameters:
        others = [other for other in self.functions if other != function and name in (other, self.overloads[other])]
        are_apart = all(_differ_by_pointers(self.types[function], self.types[other]) for other in others)
        params = zip(self.types[function], self._params(function), strict=True)
        return _Parameters([_Parameter(param.c_name, type, are_apart and type in _WHOLE) for type, param in params])

    def _params(self, function: str) -> Sequence[ParamRecord]:
        return records_of(self.functions[function])[0].c_params

    def _types(self, function: str) -> list[str]:
        records = records_of(self.functions[function])
        return [_type(param, is_read(param, records)) for param in records[0].c_params]


@dataclass(frozen=True)
class _Parameter:
    """One of a function of C++; `is_any`: given as a whole number of any type."""

    name: str
    type: str
    is_any: bool

    @property
    def declared(self) -> str:
        if self.is_any:
            return f"deuteron::whole<{self.type}> {self.name}"
        return f"{self.type}{self.name}" if self.type.endswith("*") else f"{self.type} {self.name}"

    @property
    def given(self) -> str:
        return f"{self.name}.value()" if self.is_any else self.name


@dataclass(frozen=True)
class _Parameters:
    """All but the stream, which is given first."""

    of: Sequence[_Parameter]

    @property
    def declared(self) -> list[str]:
        return [param.declared for param in self.of]

    @property
    def given(self) -> str:
        """The arguments of the function of C."""
        return ", ".join(["stream.handle()", *(param.given for param in self.of)])

    def refusing_misfits(self, refused: Callable[[str], str]) -> str:
        """C++: what is done where a parameter's type does not have a number, given the text that says so."""
        return "".join(
            f"  if (!{param.name}.fits())\n    {refused(f'{param.name}: {param.type} does not have this number')}\n"
            for param in self.of
            if param.is_any
        )


def _fails(text: str) -> str:
    return "return DEUTERON_ERROR_INVALID_VALUE;"


def _throws(text: str) -> str:
    return f'throw deuteron::error(DEUTERON_ERROR_INVALID_VALUE, "{text}");'


def _says(where: str) -> Callable[[str], str]:
    return lambda text: f'return deuteron::invalid({where}, "{text}");'


def _differ_by_pointers(first: Sequence[str], second: Sequence[str]) -> bool:
    """Whether arguments that are numbers need not be looked at to tell which of two functions is called."""
    pairs = zip(first, second, strict=False)  # algo_id may follow
    return any(one != other and "*" in one + other for one, other in pairs)


def _type(param: ParamRecord, is_read: bool) -> str:
    if not param.type.startswith("*"):
        return c_type(param.type)
    pointee = _POINTEES.get(param.type[1:], "std::uint8_t")
    return f"{'const ' if is_read else ''}{pointee} *"


def _as_integers(types: Sequence[str]) -> list[str]:
    """The types where 16-bit floats are integers."""
    return [" ".join(_IS_UINT16.get(word, word) for word in type.split(" ")) for type in types]
