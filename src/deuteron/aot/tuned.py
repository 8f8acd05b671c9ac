"""Which algorithm a function takes by default: the one that was fastest for the nearest sizes, by a file of timings.

    table = tuned_table(algos, read_tuned(Path("tuned/rms_norm.json")))
    table.keys          ("n",)
    table.rows          (Row(target=90, sizes=(4096,), algo_id=1), ...)       target 0 is the processor

Of a choice in the file the fastest configuration counts that an algorithm has the values of. The distance of two sizes
is that of their logarithms (`logarithm`), of several sizes the sum; equal ones are nearest, then the first row.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from deuteron.aot.metadata import KernelRecord
from deuteron.errors import UsageError
from deuteron.runtime.autotuning.tuned_file import Choice, Tuned

_FRACTION_BITS = 16
_LAUNCH = ("num_warps", "num_stages", "num_ctas")


@dataclass(frozen=True)
class Row:
    """A choice on a target, 90 for compute capability 9.0 and 0 for the processor, for the sizes that the keys have."""

    target: int
    sizes: tuple[int, ...]
    algo_id: int


@dataclass(frozen=True)
class Table:
    """What a function chooses by. `keys` are whole parameters of it."""

    keys: tuple[str, ...]
    rows: tuple[Row, ...]

    @property
    def capabilities(self) -> list[int]:
        """Of GPUs that there are rows for."""
        return sorted({row.target for row in self.rows if row.target})


def logarithm(size: int) -> int:
    """The binary logarithm times 65536, linear between powers of two; that of what is less than 1 is 0.

    `runtime/tuned.c` computes the same, in whole numbers, so that every machine chooses alike.
    """
    if size <= 1:
        return 0
    exponent = size.bit_length() - 1
    fraction = size - (1 << exponent)
    shift = exponent - _FRACTION_BITS
    return (exponent << _FRACTION_BITS) + (fraction >> shift if shift > 0 else fraction << -shift)


def tables_of(functions: Mapping[str, Sequence[Sequence[KernelRecord]]], tuned: Iterable[Tuned]) -> dict[str, Table]:
    """The tables of the functions that something was measured for; raises UsageError for timings of none of them."""
    found: dict[str, Table] = {}
    for timings in tuned:
        tables = {name: tuned_table(name, algos, timings) for name, algos in functions.items()}
        if not any(tables.values()):
            types = ", ".join(
                f"{name}: {type}" for name, type in (timings.choices[0].types if timings.choices else {}).items()
            )
            measured = f"with {types}" if timings.choices else "with nothing"
            raise UsageError(
                f"the timings of {timings.kernel}, {measured}, are not for the types of {', '.join(functions)}"
            )
        found |= {name: table for name, table in tables.items() if table is not None}
    return found


def tuned_table(function: str, algos: Sequence[Sequence[KernelRecord]], tuned: Tuned) -> Table | None:
    """The table of a function; None where nothing was measured for its types.

    Raises UsageError where what was measured for them is of no algorithm, or by other keys.
    """
    first = algos[0][0]
    choices = [choice for choice in tuned.choices if _is_for(choice, first)]
    if not choices:
        return None
    known = [_values(kernels[0]) for kernels in algos]
    rows = {(row.target, row.sizes): row for choice in choices for row in _rows(function, choice, first, known)}
    if not rows:
        raise UsageError(_no_algorithm(function, tuned.kernel, choices))
    return Table(tuple(_keys(function, choices, first)), tuple(rows.values()))


def _is_for(choice: Choice, record: KernelRecord) -> bool:
    """Whether it was measured with arrays of the types that a kernel takes."""
    types = {param.name: param.type[1:] for param in record.c_params if param.type.startswith("*")}
    return dict(choice.types) == types


def _keys(function: str, choices: Iterable[Choice], record: KernelRecord) -> list[str]:
    """The parameters among the keys: those of all choices, which are the same."""
    params = {param.name: param for param in record.c_params}
    constexprs = {param.name for param in record.constexprs}
    found = None
    for choice in choices:
        for name, value in choice.key.items():
            if name in constexprs:
                continue
            if name not in params or not params[name].type.startswith(("i", "u")) or not isinstance(value, int):
                raise UsageError(f"'{name}' of the tuned key is no whole parameter of {function}, or is {value!r}")
        names = sorted(name for name in choice.key if name in params)
        if found not in (None, names):
            raise UsageError(f"{function} is tuned by {_listed(found)} and by {_listed(names)}: it needs one key")
        found = names
    return found or []


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "nothing"


def _rows(function: str, choice: Choice, record: KernelRecord, known: Sequence[Mapping[str, str]]) -> Iterator[Row]:
    """One row, or none where no algorithm was measured."""
    keys = _keys(function, [choice], record)
    constants = {name: value for name, value in choice.key.items() if name not in keys}
    ordered = sorted(choice.outcomes, key=lambda text: choice.outcomes[text].time)
    for text in ordered:
        algo_id = _algorithm({**constants, **json.loads(text)}, known)
        if algo_id is not None and choice.outcomes[text].ms is not None:
            yield Row(_target(choice), tuple(int(choice.key[name]) for name in keys), algo_id)
            return


def _target(choice: Choice) -> int:
    backend, _, arch = choice.target.partition(":")
    if backend == "cpu":
        return 0
    if backend != "cuda" or not arch.isdigit():
        raise UsageError(f"timings of '{choice.device}' are of no device that is known")
    return int(arch)


def _algorithm(config: Mapping[str, Any], known: Sequence[Mapping[str, str]]) -> int | None:
    """The first algorithm that has all values of a configuration."""
    wanted = {name: repr(value) for name, value in config.items()}
    matching = (i for i, values in enumerate(known) if all(values.get(name) == text for name, text in wanted.items()))
    return next(matching, None)


def _values(record: KernelRecord) -> dict[str, str]:
    """The constexprs and options of an algorithm, as Python writes them."""
    constexprs = {param.name: param.value or "" for param in record.constexprs}
    options = dict(option.split("=", 1) for option in record.options if "=" in option)
    return {**{name: repr(getattr(record, name)) for name in _LAUNCH}, **options, **constexprs}


def _no_algorithm(function: str, kernel: str, choices: Sequence[Choice]) -> str:
    configs = list(dict.fromkeys(text for choice in choices for text in choice.outcomes))
    more = f" and {len(configs) - 3} more" if len(configs) > 3 else ""
    return (
        f"none of the configurations that were measured of {kernel} is an algorithm of {function}: they are "
        f"{'; '.join(configs[:3])}{more}. Compile it for these values, warps and stages"
    )
