"""What is known of a compiled kernel besides its code, as a frozen dataclass and as versioned JSON.

    KernelMetadata(name="add", symbol="add", target=Target("cpu", "native", 1), options={"num_warps": 4, ...},
                   params=(Param("x", "*fp32", "pointer", 16), Param("n", "i32", "scalar"),
                           Param("BLOCK", "constexpr", "constexpr")),
                   scratch_bytes=0, ...)

`Facts` are what the stages found out, each field by the one stage that gives it. The metadata lists every parameter of
the Python function in order, a descriptor of a tensor as its base, sizes and strides; those that are not constexpr (or
folded to one) are the kernel's arguments, in that order.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from deuteron.backend.assertion import Assertion
from deuteron.backend.checked_access import CheckedAccess
from deuteron.backend.tensor_map import TensorMap
from deuteron.errors import UsageError
from deuteron.language.signature import DESCRIPTOR, descriptor_arguments, parse_type, type_text
from deuteron.options import Target
from deuteron.settings import BOUNDS

VERSION = 1
# Begins the comment in which the text of a stage carries its metadata.
METADATA_MARK = "deuteron kernel "


@dataclass(frozen=True)
class Param:
    """A parameter: its signature type (`*fp32`, `i32`, `constexpr`), its kind, and what its value is a multiple of.

    `kind` is `pointer`, `scalar` or `constexpr`; `divisibility` is 16 where the compiler was promised that, else 1.
    The integers of a kernel that came as text have no sign (`is_signless`): `*i8` is a pointer to any of 8 bits.
    """

    name: str
    type: str
    kind: str
    divisibility: int = 1
    is_signless: bool = False

    def accepts(self, type: str) -> bool:
        """Whether an array of a type, `*fp32`, may be passed."""
        expected = self.type.replace("*k", "*")
        return type == expected or (self.is_signless and type.replace("*u", "*i") == expected)

    def is_read_as(self, other: Param) -> bool:
        """Whether code for the other, which may be signless and constant, takes what is passed for this."""
        types = (param.type.replace("*k", "*") for param in (self, other))
        passed, read = (type.replace("u", "i", 1) if other.is_signless else type for type in types)
        return passed == read and self.divisibility % other.divisibility == 0

    @property
    def in_words(self) -> str:
        """Its type, and what is promised of it."""
        return self.type if self.divisibility == 1 else f"{self.type}, divisible by {self.divisibility}"


def make_param(name: str, type: str, divisibility: int = 1) -> Param:
    """The parameter with the kind that its signature type says."""
    if type == "constexpr":
        return Param(name, type, "constexpr")
    return Param(name, type, "pointer" if type.startswith("*") else "scalar", divisibility)


def make_params(name: str, type: str, divisibility: int = 1) -> list[Param]:
    """The parameters that one of the Python function becomes: several for a descriptor."""
    if not type.startswith(DESCRIPTOR):
        return [make_param(name, type, divisibility)]
    arguments = descriptor_arguments(name, parse_type(type), divisibility)
    return [make_param(argument.name, type_text(argument.type), argument.divisibility) for argument in arguments]


@dataclass(frozen=True)
class TileStep:
    """Along a dimension of `extent` elements addresses grow by `factor`, times a parameter if there is one."""

    extent: int
    factor: int
    parameter: str | None = None

    def value(self, numbers: Mapping[str, int]) -> int:
        """The step, in elements, given the parameters."""
        return self.factor if self.parameter is None else self.factor * numbers[self.parameter]


@dataclass(frozen=True)
class Apart:
    """Two parameters whose arrays have to be disjoint, or, `or_equal`, begin at one place if the parameters `equal`,
    pairs of numbers, are equal, and of none of these `tiles` two elements are at one place: the code relies on it. What
    relies on tiles alone is a pair of one parameter.
    """

    first: str
    second: str
    or_equal: bool = False
    equal: tuple[tuple[str, str], ...] = ()
    tiles: tuple[tuple[TileStep, ...], ...] = ()

    def in_words(self, kernel: str) -> str:
        """What is to be said where they are not."""
        if self.first == self.second:
            return f"elements of a tile that kernel '{kernel}' stores through argument '{self.first}' overlap"
        return f"arguments '{self.first}' and '{self.second}' of kernel '{kernel}' overlap"


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What the stages of a compile found out about a kernel. Sizes are in bytes; `scratch_bytes` are for each thread.

    `written` names the parameters whose memory the kernel may write; None: any. `updated` are those that it is known to
    change by what it finds there. `apart` are those whose arrays a launch
    looks at (`backend/overlaps.py`): where they overlap the kernel has to be one with `may_alias`. With more programs
    along the first axis than `most_programs` it has to be one with `many_programs`; None: the target's limit.
    `waiting_line` is where programs may wait for one another, 0 where none does; known of a kernel for the CPU.
    `uses_tiles`: of AMX, for which a process asks the system first. `has_atomics`, or nobody knows.
    `extra_warps` are those that a launch has besides the option `num_warps`.
    `resources` is what the assembler reported: on a GPU the numbers of `ptxas.Resources`, the sum `spill_bytes`,
    and all it said besides as `warnings`. `tensor_maps` are parameters of the kernel after its arguments, which a
    launch makes. `assertions` are those, and the accesses that are checked, that a kernel for the CPU tells its
    launch of, by number.
    """

    written: tuple[str, ...] | None = None
    updated: tuple[str, ...] = ()
    apart: tuple[Apart, ...] = ()
    most_programs: int | None = None
    scratch_bytes: int = 0
    waiting_line: int = 0
    uses_tiles: bool = False
    has_atomics: bool = True
    shared: int = 0
    extra_warps: int = 0
    resources: dict[str, Any] = field(default_factory=dict)
    tensor_maps: tuple[TensorMap, ...] = ()
    assertions: tuple[Assertion | CheckedAccess, ...] = ()

    @property
    def facts(self) -> dict[str, Any]:
        """The facts by name, of what has more fields as well."""
        return {known.name: getattr(self, known.name) for known in dataclasses.fields(Facts)}


def _fields(found: Any) -> dict[str, Any]:
    """The fields of a dataclass, as they are: `dataclasses.asdict` copies all that is in them."""
    return {field.name: getattr(found, field.name) for field in dataclasses.fields(found)}


@dataclass(frozen=True)
class KernelMetadata(Facts):
    """Everything that launching a kernel or emitting C for it needs besides the code. Times are in seconds."""

    name: str
    symbol: str
    target: Target
    options: dict[str, Any]
    params: tuple[Param, ...]
    stage_times: dict[str, float] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        """An option, too, is an attribute."""
        options = vars(self).get("options", {})  # empty while it is unpickled
        if name in options:
            return options[name]
        raise AttributeError(f"kernel metadata has no '{name}'", name=name, obj=self)

    def may_write(self, name: str) -> bool:
        """Whether the kernel may write to the memory of a parameter."""
        return self.written is None or name in self.written

    @property
    def is_checked(self) -> bool:
        """Whether a launch has to say which memory the arrays span that it passes (`spans.py`)."""
        return self.options.get("check") == BOUNDS

    @property
    def num_warps(self) -> int:
        """With which a CTA is launched: those that were asked for, and those that copy."""
        return self.options.get("num_warps", 4) + self.extra_warps

    @property
    def num_threads(self) -> int:
        """With which a CTA is launched, on a GPU."""
        return self.target.warp_size * self.num_warps

    @property
    def num_stages(self) -> int:
        return self.options.get("num_stages", 3)

    @property
    def num_ctas(self) -> int:
        return self.options.get("num_ctas", 1)

    @property
    def cluster_dims(self) -> tuple[int, int, int]:
        """The CTAs of a cluster along each axis of the grid."""
        return self.num_ctas, 1, 1

    @property
    def runtime_params(self) -> tuple[Param, ...]:
        """The parameters that are arguments of the compiled kernel, in order."""
        return tuple(param for param in self.params if param.kind != "constexpr")

    def to_json(self) -> str:
        return json.dumps({"version": VERSION, **_fields(self)}, default=_fields, sort_keys=True)

    @staticmethod
    def from_json(text: str) -> KernelMetadata:
        """The metadata that `to_json` wrote; raises UsageError for any other text."""
        from deuteron.json_fields import read_json, read_value  # deferred: to define a kernel does not need it

        try:
            found = read_json(text)
            if not isinstance(found, dict) or "version" not in found:
                raise ValueError("it has no version")
            if found.pop("version") != VERSION:
                raise UsageError(f"kernel metadata of another version than {VERSION}: compile the kernel again")
            return read_value(KernelMetadata, found)
        except ValueError as error:
            raise UsageError(f"not the metadata of a kernel: {error}") from error
