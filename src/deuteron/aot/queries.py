"""What can be asked of a function's algorithms, in C: which one has given values, whether one takes given arguments.

    int fmha_select(int64_t BLOCK_M, const char *ACTIVATION, double EPS, int64_t num_warps, int64_t num_stages);
    deuteron_status fmha_supports(deuteron_stream stream, int32_t n, ..., int algo_id, const char **reason);

A constexpr whose values are numbers, or True and False, is a number; any other is a text, as Python writes the value,
strings without quotes. DEUTERON_ANY and NULL stand for any value.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from deuteron.aot.c_text import c_string
from deuteron.aot.c_types import declaration
from deuteron.aot.grid import Scope, parse_grid
from deuteron.aot.grid_code import MAX_PARTS, Variable, node_code
from deuteron.aot.metadata import KernelRecord
from deuteron.aot.naming import parameter_names
from deuteron.aot.targets import c_target
from deuteron.aot.templates import render
from deuteron.aot.tensor_map_code import demands
from deuteron.backend.tensor_map import arguments_of

Algos = Sequence[Sequence[KernelRecord]]
REASON = "const char **reason"


@dataclass(frozen=True)
class Value:
    """What algorithms differ in: its name in C, and the value of each as Python writes it."""

    c_name: str
    texts: tuple[str, ...]

    @property
    def c_type(self) -> str:
        kinds = {type(_value(text)) for text in self.texts}
        if kinds <= {int, bool}:
            return "int64_t "
        return "double " if kinds <= {int, bool, float} else "const char *"

    @property
    def is_text(self) -> bool:
        return self.c_type == "const char *"

    @property
    def c_parameter(self) -> str:
        return f"{self.c_type}{self.c_name}"

    @property
    def condition(self) -> str:
        """C: whether row `deuteron_i` of a table of the values is asked for."""
        name, field = self.c_name, f"deuteron_rows[deuteron_i].{self.c_name}"
        if self.is_text:
            return f"(!{name} || !strcmp({name}, {field}))"
        any_value = "DEUTERON_ANY" if self.c_type == "int64_t " else "(double)DEUTERON_ANY"
        return f"({name} == {any_value} || {name} == {field})"

    def field(self, index: int) -> str:
        """C: the value of an algorithm."""
        text = self.texts[index]
        value = _value(text)
        if self.is_text:
            return c_string(value if isinstance(value, str) else text)
        return f"INT64_C({int(value)})" if self.c_type == "int64_t " else repr(float(value))


def _value(text: str) -> object:
    """The value of a text that Python reads as a constant; else the text."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def values_of(algos: Algos) -> list[Value]:
    """The constexprs, in the kernel's order, then warps and stages; clusters and other options where there are any."""
    records = [kernels[0] for kernels in algos]
    names = [param.name for param in records[0].constexprs]
    found = {name: [record.constexprs[i].value or "" for record in records] for i, name in enumerate(names)}
    for name in ("num_warps", "num_stages", "num_ctas"):
        texts = [str(getattr(record, name)) for record in records]
        if name not in found and (name != "num_ctas" or set(texts) != {"1"}):
            found[name] = texts
    options = [dict(option.split("=", 1) for option in record.options if "=" in option) for record in records]
    for name in dict.fromkeys(name for given in options for name in given):
        found.setdefault(name, [given.get(name, "default") for given in options])
    c_names = parameter_names(list(found), [])
    return [Value(c_name, tuple(texts)) for c_name, texts in zip(c_names, found.values(), strict=True)]


def select_head(name: str, algos: Algos) -> str:
    return declaration("int", f"{name}_select", [value.c_parameter for value in values_of(algos)])


def select_source(name: str, algos: Algos) -> str:
    values = values_of(algos)
    rows = [f"      {{{', '.join(value.field(i) for value in values)}}}," for i in range(len(algos))]
    return render(
        "link_select.c",
        head=select_head(name, algos),
        fields="\n".join(f"    {value.c_parameter};" for value in values),
        rows="\n".join(rows),
        num_algos=len(algos),
        condition=" &&\n        ".join(value.condition for value in values),
    )


def conditions(record: KernelRecord) -> Iterator[tuple[str, str]]:
    """What a kernel was promised of its arguments: in C, and in words what is wrong where it does not hold."""
    strides = [stride for described in record.tensor_maps for stride in described.strides]
    used = {record.runtime_params[index].c_name for stride in strides for index in arguments_of(stride)}
    for param in record.c_params:
        if param.hint == 1:
            yield f"{param.c_name} == 1", f"{param.name} is not 1"
        elif param.hint == 16:
            value = f"(uintptr_t){param.c_name}" if param.type.startswith("*") else param.c_name
            yield f"{value} % 16 == 0", f"{param.name} is not divisible by 16"
            if param.c_name in used and param.type.startswith("i"):
                yield f"{param.c_name} >= 0", f"{param.name} is negative, and TMA copies along it"


def question(record: KernelRecord, *device: str) -> str:
    """C that is true once it is known whether this kernel takes the arguments, so that no other is asked."""
    wrong = _first_fault(conditions(record), _grid_fault(record))
    asked = f"deuteron_asked(supports_{record.function}(), {wrong}, &deuteron_result, reason)"
    return " && ".join([*device, asked])


def _first_fault(demanded: Iterable[tuple[str, str]], otherwise: str) -> str:
    """C: in words the first condition that does not hold."""
    return "".join(f"!({condition}) ? {c_string(text)} : " for condition, text in dict.fromkeys(demanded)) + otherwise


def _grid_fault(record: KernelRecord) -> str:
    """C: in words what is wrong with the grid of a call, and with the tensors of one that is not empty; else NULL."""
    variables = {param.name: Variable(param.c_name, param.type) for param in record.runtime_params}
    ones = {param.name: 1 for param in record.c_params if param.hint == 1}
    values = {param.name: _value(param.value) for param in record.constexprs}
    whole = {name: int(value) for name, value in values.items() if isinstance(value, int)}
    parts = parse_grid(record.grid, Scope(set(variables), {**whole, **ones}))
    most, large = _largest_grid(record)
    grid = ", ".join(node_code(part, variables) for part in parts)
    tensors = _first_fault(demands(record.tensor_maps, record.runtime_params), "NULL")
    return f"deuteron_grid_fault({grid}, INT64_C({most}), {c_string(large)}, {tensors}, &deuteron_bad)"


def _largest_grid(record: KernelRecord) -> tuple[int, str]:
    """How many programs a launch may have along x, and what is said of a grid that is larger."""
    most_x, most_y, most_z = MAX_PARTS
    most = c_target(record.backend).most_programs(record)
    way_out = "" if record.most_programs is None else f"; compiled with many_programs=True it takes {most_x} along x"
    return most, f"the grid is larger than {most} x {most_y} x {most_z}{way_out}"
