"""The cross product of a library: a Variant for each kernel that is compiled.

    for variant in variants_of(library):
        variant.function      "rms_norm_fp16"
        variant.types         {"X": "*fp16:16", "Y": "*fp16:16", "n": "i32"}
        variant.describe()    "rms_norm_fp16 (BLOCK = 1024, num_warps = 4) for cuda:90"

The types that a list gives are part of the function's name, without their hints: kernels for fp16 and for fp32 are two
functions in C. Hints beside each other in one text (`*fp16:16|*fp16`) change no name. All else tells the algorithms of
one function apart, or the targets of one algorithm.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from deuteron.aot.targets import c_target
from deuteron.cached_property import cached_property
from deuteron.library.declaration import Kernel, Library, bare_type, followed_by, hinted_types

MAX_VARIANTS = 20_000
# What a variant is not told apart by: files keep their names.
_OF_THE_BUILD = ("index", "is_checked", "has_lines")


@dataclass(frozen=True)
class Variant:
    """One kernel to be compiled: what is asked for, by values alone. `index` is that of the kernel in its library."""

    index: int
    source: str | None
    module: str | None
    name: str
    function: str
    overload: str
    grid: str
    types: Mapping[str, str]
    constexprs: Mapping[str, Any]
    options: Mapping[str, Any]
    host_parameters: Mapping[str, str]
    target: str
    objects: Sequence[str] = ()
    is_checked: bool = False
    has_lines: bool = False

    @cached_property
    def identity(self) -> str:
        """Hex digits that are equal for what is asked for alike, wherever it stands, and however it is built."""
        asked = {name: value for name, value in asdict(self).items() if name not in _OF_THE_BUILD}
        return hashlib.sha256(json.dumps(asked).encode()).hexdigest()

    @property
    def stem(self) -> str:
        """What its files are called: known without its source, so that a build tool can name them."""
        return f"{self.function}.{self.identity[:12]}"

    def describe(self) -> str:
        values = ", ".join(f"{name} = {value}" for name, value in {**self.constexprs, **self.options}.items())
        return f"{self.function} ({values}) for {self.target}" if values else f"{self.function} for {self.target}"


def variants_of(library: Library) -> list[Variant]:
    """All variants, in the order of the declaration; raises UsageError for none, too many, or equal ones."""
    kernels = enumerate(library.kernels)
    variants = [variant for index, kernel in kernels for variant in _of_kernel(library, index, kernel)]
    _check_repeated(library, variants)
    _check_parameters(library, variants)
    return variants


def _check_repeated(library: Library, variants: Sequence[Variant]) -> None:
    seen = set()
    for variant in variants:
        if variant.identity in seen:
            message = f"{variant.describe()} is declared twice, with equal types and options: leave one out"
            raise library.kernels[variant.index].error(message, "name")
        seen.add(variant.identity)


def _check_parameters(library: Library, variants: Sequence[Variant]) -> None:
    """Kernels of one function take the same arguments: their names are looked at before anything is compiled."""
    firsts: dict[str, Variant] = {}
    for variant in variants:
        first = firsts.setdefault(variant.function, variant)
        mine, others = ([*each.types, *each.host_parameters] for each in (variant, first))
        if set(mine) != set(others):
            takes = f"'{variant.function}' takes {', '.join(mine)}, and above {', '.join(others)}"
            message = f"{takes}: give one of the kernels an 'out_name'"
            raise library.kernels[variant.index].error(message, "name")


def source_names(library: Library) -> list[str]:
    """The C files that a build makes, relative to its folder."""
    return [f"{library.name}.c", *(f"kernels/{variant.stem}.c" for variant in variants_of(library))]


def _of_kernel(library: Library, index: int, kernel: Kernel) -> list[Variant]:
    count = math.prod(len(values) for values in kernel.axes.values()) * len(library.targets)
    if count > MAX_VARIANTS:
        raise kernel.error(f"kernel '{kernel.name}' comes to {count:,} variants, and the most is {MAX_VARIANTS:,}")
    found = list(_variants(library, index, kernel))
    if not found:
        raise kernel.error(f"all variants of kernel '{kernel.name}' are excluded", "exclude")
    return found


def _variants(library: Library, index: int, kernel: Kernel) -> Iterator[Variant]:
    types = {name: value if followed_by(value) else hinted_types(value) for name, value in kernel.types.items()}
    groups = (types, kernel.constexprs, kernel.options)
    for types, constexprs, options in itertools.product(*map(_choices, groups)):
        function = "_".join([kernel.function, *_type_names(kernel, types)])
        for target in library.targets:
            if _is_excluded(kernel, {**types, **constexprs, **options}, target):
                continue
            yield Variant(
                index=index,
                source=kernel.source,
                module=kernel.module,
                name=kernel.name,
                function=function,
                overload=kernel.function,
                grid=kernel.grid,
                types=types,
                constexprs=constexprs,
                options=options,
                host_parameters=kernel.host_parameters,
                target=target,
                objects=tuple(library.objects),
                is_checked=library.is_checked and c_target(target.partition(":")[0]).can_check,
                has_lines=library.has_lines,
            )


def _choices(group: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """One value for each name, in every combination; those that follow another have its value."""
    names = [name for name, value in group.items() if not followed_by(value)]
    values = [group[name] if isinstance(group[name], list) else [group[name]] for name in names]
    for chosen in itertools.product(*values):
        found = dict(zip(names, chosen, strict=True))
        yield {name: found[followed_by(value) or name] for name, value in group.items()}


def _type_names(kernel: Kernel, types: Mapping[str, str]) -> Iterator[str]:
    """`fp16` for each type that a list gives."""
    for name, value in kernel.types.items():
        if isinstance(value, list):
            bare = bare_type(types[name]).strip().lstrip("*")
            yield "".join(char if char.isalnum() else "_" for char in bare).strip("_")


def _is_excluded(kernel: Kernel, values: Mapping[str, Any], target: str) -> bool:
    return any(
        all(_matches(name, value, values, target) for name, value in excluded.items()) for excluded in kernel.exclude
    )


def _matches(name: str, value: Any, values: Mapping[str, Any], target: str) -> bool:
    """Whether a variant has a value; `cpu` is every target for the CPU."""
    asked = value if isinstance(value, list) else [value]
    return target in asked or target.partition(":")[0] in asked if name == "target" else values[name] in asked
