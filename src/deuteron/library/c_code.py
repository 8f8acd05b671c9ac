"""The C functions of a library: they choose among its kernels, by algorithm, by hints, and by the device of the stream.

    library_header("norms", functions)      the text of norms.h
    library_source("norms", functions)      that of norms.c

`functions` are the kernels by the name of their function and algorithm, as `deuteron link` groups them, here for all
targets together. A kernel for the CPU is meant by the stream DEUTERON_CPU, and where all are for the CPU by NULL too.
Pointers have their real types, `const float *`; those that C has no type for are `const void *`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from deuteron.aot.c_types import STREAM, c_type, declaration, kernel_declarations
from deuteron.aot.dispatch import algo_constants, attempt, description_of, linked_functions
from deuteron.aot.emit import claims, header_guard
from deuteron.aot.metadata import KernelRecord, ParamRecord
from deuteron.aot.symbols import declaration_of, digest_of, plain_names
from deuteron.aot.targets.target import LIBRARY_TYPES
from deuteron.aot.templates import comment_text, render, runtime_source
from deuteron.dtypes import FLOATS, INTEGERS

Algos = Sequence[Sequence[KernelRecord]]
Functions = Mapping[str, Algos]

_ALGO_ID = "int algo_id"
_POINTEES = {
    **{type.signature: c_type(type.signature) for type in INTEGERS},
    **{type.signature: c_type(type.signature) for type in FLOATS if type.bits >= 32},
}


def library_header(name: str, functions: Functions) -> str:
    digest = library_digest(name, functions)
    return render(
        "library.h",
        name=name,
        guard=header_guard(f"LIBRARY_{name}_{digest}"),
        claims=claims(functions),
        types=runtime_source(*LIBRARY_TYPES),
        declarations="\n".join(_declarations(function, algos, digest) for function, algos in functions.items()),
    )


def library_source(name: str, functions: Functions) -> str:
    records = [record for algos in functions.values() for record in records_of(algos)]
    declared = (f"{text}\n" for record in records for text in kernel_declarations(record))
    public = (public for function in functions for public in linked_functions(function))
    return render(
        "library.c",
        name=name,
        on_cpu=_on_cpu(records),
        kernels="".join(declared),
        names="\n".join(_definitions(function, algos) for function, algos in functions.items()),
        plain_names=plain_names(public, library_digest(name, functions)),
    )


def library_digest(library: str, functions: Functions) -> str:
    """Of what the functions are, not of what their kernels do: an edited kernel leaves the header, and who includes it,
    as they are."""
    heads = (f"{_launch(name, algos)} {algo_constants(name, algos)}" for name, algos in functions.items())
    return digest_of(["library", library, *heads])


def records_of(algos: Algos) -> list[KernelRecord]:
    return [record for kernels in algos for record in kernels]


def is_read(param: ParamRecord, records: Sequence[KernelRecord]) -> bool:
    """Whether no kernel writes through a parameter."""
    return not any(record.may_write(param.name) for record in records)


def _on_cpu(records: Sequence[KernelRecord]) -> str:
    is_cpu_only = all(record.backend == "cpu" for record in records)
    return "stream == DEUTERON_CPU || !stream" if is_cpu_only else "stream == DEUTERON_CPU"


def _parameter(param: ParamRecord, records: Sequence[KernelRecord]) -> str:
    if not param.type.startswith("*"):
        return f"{c_type(param.type)} {param.c_name}"
    pointee = _POINTEES.get(param.type[1:], "void")
    return f"{'const ' if is_read(param, records) else ''}{pointee} *{param.c_name}"


def _launch(function: str, algos: Algos, *further: str, result: str = "deuteron_status") -> str:
    records = records_of(algos)
    return declaration(
        result, function, [STREAM, *(_parameter(param, records) for param in records[0].c_params), *further]
    )


def _declarations(name: str, algos: Algos, digest: str) -> str:
    launch, launch_default = _launch(name, algos, _ALGO_ID), _launch(f"{name}_default", algos)
    load, unload = (f"deuteron_status {verb}_{name}(deuteron_stream stream)" for verb in ("load", "unload"))
    heads = (launch, launch_default, f"int {name}_get_num_algos(void)", load, unload)
    declared = [declaration_of(head, f, digest) for head, f in zip(heads, linked_functions(name), strict=True)]
    described = [f"     algo_id {i}: {comment_text(description_of(kernels))}" for i, kernels in enumerate(algos)]
    return render(
        "library_name.h",
        name=name,
        num_algos="1 algorithm" if len(algos) == 1 else f"{len(algos)} algorithms",
        targets=", ".join(sorted({record.target for record in records_of(algos)})),
        algos="\n".join(described),
        constants=",\n".join(f"  {constant} = {i}" for i, constant in enumerate(algo_constants(name, algos))),
        launches="\n".join(declared[:3]),
        maintenance="\n".join(declared[3:]),
    )


def _definitions(name: str, algos: Algos) -> str:
    records = records_of(algos)
    ordered = sorted(records, key=lambda record: record.backend == "cpu")
    num_cpu = sum(record.backend == "cpu" for record in records)
    arguments = ", ".join(["stream", *(param.c_name for param in records[0].c_params)])
    cases = [f"  case {i}:\n    return {name}_algo{i}({arguments});" for i in range(len(algos))]
    return render(
        "library_name.c",
        name=name,
        algos="\n".join(_algo(name, i, algos) for i in range(len(algos))),
        num_algos=len(algos),
        num_kernels=len(records),
        num_cpu=num_cpu,
        num_gpu=len(records) - num_cpu,
        arguments=arguments,
        cases="\n".join(cases),
        launch=_launch(name, algos, _ALGO_ID),
        launch_default=_launch(f"{name}_default", algos),
        kernels=",\n    ".join(f"{{load_{record.function}, unload_{record.function}}}" for record in ordered),
    )


def _algo(name: str, algo_id: int, algos: Algos) -> str:
    kernels = algos[algo_id]
    return render(
        "library_algo.c",
        name=name,
        algo_id=algo_id,
        description=comment_text(description_of(kernels)),
        launch=_launch(f"{name}_algo{algo_id}", algos, result="static deuteron_status"),
        otherwise=_otherwise(kernels),
        dispatch="\n".join(line for record in kernels for line in attempt(record, _device_condition(record))),
    )


def _device_condition(record: KernelRecord) -> str:
    return "deuteron_on_cpu(stream)" if record.backend == "cpu" else "!deuteron_on_cpu(stream)"


def _otherwise(kernels: Sequence[KernelRecord]) -> str:
    """The status where no kernel is called: the arguments' fault where there are kernels for the device."""
    if len({record.backend == "cpu" for record in kernels}) == 2:
        return "DEUTERON_ERROR_INVALID_VALUE"
    condition = _device_condition(kernels[0])
    return f"{condition} ? DEUTERON_ERROR_INVALID_VALUE : DEUTERON_ERROR_UNSUPPORTED_DEVICE"
