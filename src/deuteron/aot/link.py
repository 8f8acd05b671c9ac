"""Links compiled kernels into functions that choose among them: what `deuteron link` does.

    link_kernels([Path("aot/fmha.6979ce4b_0123.h"), ...], Path("aot/fmha"))     writes aot/fmha.c and aot/fmha.h

For every name (`--out-name`) there are

    fmha_default(stream, ...)          the first algorithm, or by timings the fastest
    fmha(stream, ..., algo_id)         one algorithm for each set of constexprs and options, in the order of the headers
    fmha_get_num_algos()  load_fmha()  unload_fmha()
    fmha_select(BLOCK, ...)            the algorithm with these values
    fmha_supports(stream, ..., algo_id, &reason)      whether it takes these arguments, or why not
    fmha_checked(stream, ..., sizes, algo_id, text)   where kernels were compiled to check what they access

and within an algorithm the call goes to the first kernel whose hints hold, the most specialised first. Kernels are
read from the JSON beside the headers. Two that cannot be told apart are an error, and so are two of one name whose
parameters differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from deuteron.aot.c_types import c_parameter
from deuteron.aot.dispatch import Chooser, linked_functions
from deuteron.aot.metadata import KernelRecord, read_record
from deuteron.aot.naming import check_header_name
from deuteron.aot.output import write_files
from deuteron.aot.symbols import digest_of
from deuteron.aot.targets import c_target
from deuteron.aot.tuned import Table, tables_of
from deuteron.errors import UsageError
from deuteron.runtime.autotuning.tuned_file import read_tuned

# A name -> its algorithms -> the kernels of each.
Linked = dict[str, list[list[KernelRecord]]]


class KernelsMeet(UsageError):
    """Two kernels, `first` and `record`, cannot be linked beside each other: `reason` is said of both."""

    def __init__(self, first: KernelRecord, record: KernelRecord, reason: str):
        self.first, self.record, self.reason = first, record, reason
        super().__init__(self.between(first.function, record.function))

    def between(self, first: str, later: str) -> str:
        """The message with the names by which a user knows the kernels."""
        return f"{first} and {later} {self.reason}"


@dataclass(frozen=True)
class LinkedFiles:
    """The files of a link, and those of them that have changed."""

    files: list[Path]
    changed: list[Path]


def link_kernels(headers: Sequence[Path], out_path: Path, tuned: Sequence[Path] = ()) -> LinkedFiles:
    """Write the files that link these kernels; raises UsageError, having written nothing.

    `tuned` are files of timings, by which the default algorithms are chosen.
    """
    if not headers:
        raise UsageError("nothing to link: name the headers that `deuteron compile` wrote")
    distinct = list({header.resolve(): header for header in headers}.values())
    base = out_path.with_suffix("") if out_path.suffix in (".c", ".h") else out_path
    check_header_name(base.name)
    header, source = base.with_name(f"{base.name}.h"), base.with_name(f"{base.name}.c")
    if header.resolve() in (one.resolve() for one in distinct):
        raise UsageError(
            f"'{header}' is what this link writes, and among the headers that it reads: *.h has it the second "
            "time. Write it to another folder, or name the headers that `deuteron compile` wrote"
        )
    records = [_record_of(one) for one in distinct]
    _check_one_backend(records)
    _check_functions(records, distinct)
    chooser = _chooser(base.name, _grouped(records, distinct), tuned)
    changed = write_files({header: chooser.header(), source: chooser.source()})
    return LinkedFiles([header, source], changed)


def _grouped(records: Sequence[KernelRecord], headers: Sequence[Path]) -> Linked:
    """As `group` has them; kernels that meet are named by their headers."""
    try:
        return group(records)
    except KernelsMeet as error:
        first, later = (headers[records.index(record)] for record in (error.first, error.record))
        raise UsageError(error.between(f"'{first}'", f"'{later}'")) from None


def _chooser(file_name: str, linked: Linked, tuned: Sequence[Path]) -> Chooser:
    """The files; their digest is of all that the functions may call, and of how they choose."""
    first = next(iter(linked.values()))[0][0]
    tables = tables_of(linked, map(read_tuned, tuned))
    kernels = ((name, i, record) for name, algos in linked.items() for i, algo in enumerate(algos) for record in algo)
    return Chooser(
        file_name=file_name,
        title=f"kernels {', '.join(linked)}",
        functions=linked,
        digest=digest_of([*(f"{name} {i} {r.function} {r.digest}" for name, i, r in kernels), *_texts(tables)]),
        types_files=c_target(first.backend).types_files,
        parameter=c_parameter,
        tables=tables,
    )


def _texts(tables: dict[str, Table]) -> list[str]:
    return [f"{name} {table}" for name, table in tables.items()]


def group(records: Iterable[KernelRecord]) -> Linked:
    """The kernels by name and algorithm, in order of appearance; within an algorithm the most specialised first."""
    names: dict[str, dict[tuple, list[KernelRecord]]] = {}
    for record in records:
        algos = names.setdefault(record.out_name, {})
        _check_parameters(record, next(iter(algos.values()), [record])[0])
        kernels = algos.setdefault(record.algo, [])
        _check_distinct(record, kernels)
        kernels.append(record)
    _check_names(names)
    return {
        name: [sorted(kernels, key=_specialisation, reverse=True) for kernels in algos.values()]
        for name, algos in names.items()
    }


def _check_names(names: Mapping[str, Mapping[tuple, list[KernelRecord]]]) -> None:
    """What is generated for one name may not be called as what is generated for another."""
    owner: dict[str, str] = {}
    for name, algos in names.items():
        for function in linked_functions(name, list(algos.values())):
            if function in owner:
                raise UsageError(f"the names '{owner[function]}' and '{name}' both give a function {function}")
            owner[function] = name


def _specialisation(record: KernelRecord) -> tuple[int, int]:
    return record.device_rank, sum(param.hint is not None for param in record.params)


def _record_of(header: Path) -> KernelRecord:
    if not header.is_file():
        raise UsageError(f"the header '{header}' does not exist")
    if header.suffix != ".h":
        raise UsageError(f"'{header}' is not a header: link takes the .h files that `deuteron compile` wrote")
    metadata = header.with_name(f"{header.name[:-2]}.json")
    if not metadata.is_file():
        raise UsageError(f"'{header}' has no metadata: '{metadata.name}' must be beside it")
    return read_record(metadata)


def _check_one_backend(records: Sequence[KernelRecord]) -> None:
    backends = sorted({record.backend for record in records})
    if len(backends) > 1:
        raise UsageError(f"kernels for {' and '.join(backends)} cannot be linked into one file: link each on its own")


def _check_functions(records: Sequence[KernelRecord], headers: Sequence[Path]) -> None:
    """No C function may be defined twice."""
    seen: dict[str, Path] = {}
    for record, header in zip(records, headers, strict=True):
        if record.function in seen:
            raise UsageError(
                f"'{seen[record.function]}' and '{header}' both define {record.function}: "
                "compile one of them with another --out-name"
            )
        seen[record.function] = header


def _check_parameters(record: KernelRecord, first: KernelRecord) -> None:
    """The kernels of one name take the same arguments."""
    mine, others = (_argument_list(r) for r in (record, first))
    if mine != others:
        reason = f"take ({others}) and ({mine}), so they cannot both be '{record.out_name}'"
        raise KernelsMeet(first, record, f"{reason}: give one of them another out name")


def _argument_list(record: KernelRecord) -> str:
    return ", ".join(f"{param.type} {param.name}" for param in record.c_params)


def _check_distinct(record: KernelRecord, kernels: Iterable[KernelRecord]) -> None:
    """Something must tell two kernels of an algorithm apart: a hint or the target."""
    for other in kernels:
        if (other.suffix, other.target) == (record.suffix, record.target):
            reason = f"are for the same arguments, options and target ({record.target})"
            raise KernelsMeet(other, record, f"{reason}: nothing tells which to call; link one of them only")
