"""The metadata beside every emitted kernel: versioned JSON from which `deuteron link` generates all else.

    record = KernelRecord(kernel="add", out_name="add", hash="2a9b77f0", suffix="01", target="cpu:x86-64-v3", ...)
    record.function          "add_2a9b77f0_01"
    read_record(Path("aot/add.2a9b77f0_01.json"))

The same kernel compiled again gives the same bytes.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deuteron.aot import naming
from deuteron.backend import get_backend, parse_target
from deuteron.backend.metadata import Facts, KernelMetadata
from deuteron.backend.report import Report
from deuteron.errors import UsageError, not_read
from deuteron.json_fields import read_json, read_value

FORMAT = "deuteron-aot-kernel"
VERSION = 3
CHECKSUM = "checksum"  # of all other fields; metadata of earlier versions of Deuteron have none
# What fields are in the metadata of versions of Deuteron that did not have them.
_ABSENT = {
    "num_ctas": 1,
    "written": None,
    "updated": [],
    "apart": [],
    "most_programs": None,
    "resources": {},
    "tensor_maps": [],
    "assertions": [],
    "uses_tiles": False,
    "has_atomics": True,
    "has_ptx": False,
    "launch_attributes": [],
    "is_checked": False,
}


@dataclass(frozen=True)
class ParamRecord:
    """A parameter of the kernel: what it is in the signature and in C.

    `type` is None where the signature gives a value, `value` (as Python writes it) None where it gives none.
    """

    name: str
    c_name: str
    type: str | None
    hint: int | None
    value: str | None


@dataclass(frozen=True)
class KernelRecord(Facts):
    """A kernel compiled for one signature and target.

    `extras` is what was asked for besides, as it is in the hash. `digest` is of the kernel's source and of all else
    that its code depends on; it is in the symbols of its functions. `source` is the SHA-256 of the kernel, of all that
    it calls and of its signature; `deuteron` is the version that compiled it. Of kernels that differ in their target
    only, the one of the highest `device_rank` that the device can run is launched. `host_params` are parameters of its
    C functions that the grid needs and the kernel does not take. With `has_ptx` its file has the kernel as PTX too, for
    later devices. `launch_attributes` are the options of LAUNCH_ATTRIBUTES that were asked for. With `is_checked`
    there is a function too that checks every access.
    """

    kernel: str
    out_name: str
    hash: str
    suffix: str
    digest: str
    deuteron: str
    source: str
    target: str
    device_rank: int
    num_warps: int
    num_stages: int
    num_ctas: int
    extras: tuple[str, ...]
    grid: str
    params: tuple[ParamRecord, ...]
    host_params: tuple[ParamRecord, ...] = ()
    has_ptx: bool = False
    launch_attributes: tuple[str, ...] = ()
    is_checked: bool = False

    def report(self) -> Report:
        """What can be said of the kernel without the texts of its stages."""
        target = parse_target(self.target)
        options = {"num_warps": self.num_warps, "num_stages": self.num_stages, "num_ctas": self.num_ctas}
        known = KernelMetadata(self.kernel, self.function, target, options, (), **self.facts)
        return get_backend(target).report({}, known)

    @property
    def function(self) -> str:
        """The C function that launches it."""
        return naming.function_name(self.out_name, self.hash, self.suffix)

    @property
    def functions(self) -> tuple[str, ...]:
        """All C functions of the kernel."""
        verbs = ("load", "unload", "supports", *(["check"] if self.is_checked else []))
        return (self.function, *(f"{verb}_{self.function}" for verb in verbs))

    def may_write(self, name: str) -> bool:
        """Whether the kernel may write to the memory of a parameter."""
        return self.written is None or name in self.written

    @property
    def backend(self) -> str:
        return self.target.partition(":")[0]

    @property
    def c_params(self) -> tuple[ParamRecord, ...]:
        """The parameters of a C function that chooses among kernels: all but the constexprs."""
        return (*(param for param in self.params if param.type is not None), *self.host_params)

    @property
    def constexprs(self) -> tuple[ParamRecord, ...]:
        return tuple(param for param in self.params if param.type is None)

    @property
    def runtime_params(self) -> tuple[ParamRecord, ...]:
        """The parameters of the kernel's own C function: without those that are always 1."""
        return tuple(param for param in self.c_params if param.hint != 1)

    @property
    def arguments(self) -> tuple[ParamRecord, ...]:
        """What the kernel itself is given."""
        return tuple(param for param in self.runtime_params if param not in self.host_params)

    @property
    def algo(self) -> tuple[Any, ...]:
        """What tells the algorithms of one name apart: kernels that differ in hints and targets only are one."""
        values = tuple((param.name, param.value) for param in self.constexprs)
        return (self.kernel, values, self.num_warps, self.num_stages, self.num_ctas, self.options)

    @property
    def options(self) -> tuple[str, ...]:
        """The extras but the target and the host's parameters."""
        others = {self.backend, *(param.name for param in self.host_params)}
        return tuple(extra for extra in self.extras if extra.partition(":")[0] not in others)

    def to_fields(self) -> dict[str, Any]:
        """As JSON has it, with lists for tuples."""
        fields = json.loads(json.dumps(dataclasses.asdict(self)))
        facts = {name: fields.pop(name) for name in self.facts}
        facts["resources"] = dict(sorted(facts["resources"].items()))
        fields = {"format": FORMAT, "version": VERSION, **fields, **facts, "function": self.function}
        return {**fields, CHECKSUM: _checksum(fields)}

    def to_json(self) -> str:
        return json.dumps(self.to_fields(), indent=2) + "\n"


def read_record(path: Path) -> KernelRecord:
    """The record that a file holds; raises UsageError where there is none, or one of another version."""
    try:
        fields = read_json(path.read_text())
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise not_read(f"the metadata '{path}'", error) from None
    return record_of(fields, path)


def record_of(fields: Any, path: Path) -> KernelRecord:
    """The record that the JSON of a file holds; raises UsageError where there is none, or one of another version."""
    if not isinstance(fields, dict) or fields.get("format") != FORMAT:
        raise UsageError(f"'{path}' is not the metadata of a compiled kernel")
    if fields.get("version") != VERSION:
        raise UsageError(
            f"'{path}' has metadata version {fields.get('version')}, this Deuteron reads version {VERSION}: "
            "compile the kernel again"
        )
    try:
        return _record(fields)
    except ValueError as error:
        raise UsageError(f"the metadata '{path}' is damaged ({error}): compile the kernel again") from None


def _checksum(fields: dict[str, Any]) -> str:
    others = {name: value for name, value in fields.items() if name != CHECKSUM}
    return hashlib.sha256(json.dumps(others, sort_keys=True).encode()).hexdigest()[:16]


def _record(fields: dict[str, Any]) -> KernelRecord:
    """A field of a wrong type is named; what else was changed, with which C would be wrong, the checksum finds."""
    known = {**_ABSENT, **fields}
    names = [field.name for field in dataclasses.fields(KernelRecord)]
    record = read_value(KernelRecord, {name: known[name] for name in names if name in known})
    if fields.get(CHECKSUM, _checksum(fields)) != _checksum(fields):
        raise ValueError("it is not what was written")
    return record
