"""The C functions of a library: they choose among its kernels, by algorithm, by hints, and by the device of the stream.

    chooser = library_chooser("norms", functions)
    chooser.header(), chooser.source()            the texts of norms.h and norms.c

`functions` are the kernels by the name of their function and algorithm, as `deuteron link` groups them, here for all
targets together. A kernel for the CPU is meant by the stream DEUTERON_CPU, and where all are for the CPU by NULL too.
Pointers have their real types, `const float *`; those that C has no type for are `const void *`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from deuteron.aot.c_types import STREAM, c_type, declaration, is_read
from deuteron.aot.dispatch import Chooser, Functions, algo_constants, records_of
from deuteron.aot.metadata import KernelRecord, ParamRecord
from deuteron.aot.symbols import digest_of
from deuteron.aot.targets.target import LIBRARY_TYPES
from deuteron.aot.tuned import Table
from deuteron.dtypes import FLOATS, INTEGERS

_POINTEES = {
    **{type.signature: c_type(type.signature) for type in INTEGERS},
    **{type.signature: c_type(type.signature) for type in FLOATS if type.bits >= 32},
}


def library_chooser(name: str, functions: Functions, tables: Mapping[str, Table] | None = None) -> Chooser:
    """`tables` are what functions choose by that were tuned."""
    records = [record for algos in functions.values() for record in records_of(algos)]
    is_cpu_only = all(record.backend == "cpu" for record in records)
    return Chooser(
        file_name=name,
        title=f"library {name}",
        functions=functions,
        digest=library_digest(name, functions),
        types_files=LIBRARY_TYPES,
        parameter=_parameter,
        on_cpu="stream == DEUTERON_CPU || !stream" if is_cpu_only else "stream == DEUTERON_CPU",
        tables=tables or {},
    )


def library_digest(library: str, functions: Functions) -> str:
    """Of what the functions are, not of what their kernels do: an edited kernel leaves the header, and who includes it,
    as they are."""
    heads = []
    for name, algos in functions.items():
        records = records_of(algos)
        params = (_parameter(param, records) for param in records[0].c_params)
        heads.append(f"{declaration('deuteron_status', name, [STREAM, *params])} {algo_constants(name, algos)}")
    return digest_of(["library", library, *heads])


def _parameter(param: ParamRecord, records: Sequence[KernelRecord]) -> str:
    if not param.type.startswith("*"):
        return f"{c_type(param.type)} {param.c_name}"
    return f"{'const ' if is_read(param, records) else ''}{pointee(param)} *{param.c_name}"


def pointee(param: ParamRecord) -> str:
    """What a pointer points to in C."""
    return _POINTEES.get(param.type[1:], "void")
