"""The C that chooses among linked kernels.

    static deuteron_status fmha_algo0(deuteron_stream stream, deuteron_ptr Q, int32_t n) {
      deuteron_status deuteron_result = DEUTERON_ERROR_INVALID_VALUE;
      if ((uintptr_t)Q % 16 == 0 && n == 1) {
        deuteron_result = fmha_6979ce4b_0d1c(stream, Q);
        if (deuteron_result != DEUTERON_ERROR_UNSUPPORTED_DEVICE)
          return deuteron_result;
      }
      return deuteron_result;
    }

A kernel that the device cannot run passes the call on to the next one whose hints hold. So does one with tensor maps
whose strides would be negative, which TMA cannot copy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from deuteron.aot.c_types import STREAM, declaration, kernel_declarations, parameters
from deuteron.aot.emit import claims, header_guard
from deuteron.aot.metadata import KernelRecord
from deuteron.aot.naming import identifier, value_identifier
from deuteron.aot.symbols import declaration_of, digest_of, plain_names
from deuteron.aot.targets import c_target
from deuteron.aot.templates import comment_text, render, runtime_source
from deuteron.backend.tensor_map import arguments_of

Algos = Sequence[Sequence[KernelRecord]]


def header_text(linked: Mapping[str, Algos], file_name: str) -> str:
    """The header that declares the functions of every name."""
    first = next(iter(linked.values()))[0][0]
    return render(
        "link.h",
        title=_title(linked),
        guard=header_guard(f"LINK_{identifier(file_name)}_{_digest(linked)}"),
        claims=claims(linked),
        types=runtime_source(*c_target(first.backend).types_files),
        declarations="\n".join(_name_header(name, algos, _digest(linked)) for name, algos in linked.items()),
    )


def source_text(linked: Mapping[str, Algos], file_name: str) -> str:
    records = [record for algos in linked.values() for kernels in algos for record in kernels]
    return render(
        "link.c",
        title=_title(linked),
        header=f"{file_name}.h",
        kernels="".join(f"{declared}\n" for record in records for declared in kernel_declarations(record)),
        names="\n".join(_name_source(name, algos) for name, algos in linked.items()),
        plain_names=plain_names((f for name in linked for f in linked_functions(name)), _digest(linked)),
    )


def linked_functions(name: str) -> tuple[str, ...]:
    """The functions that linking gives a name."""
    return (name, f"{name}_default", f"{name}_get_num_algos", f"load_{name}", f"unload_{name}")


def _title(linked: Mapping[str, Algos]) -> str:
    return f"kernels {', '.join(linked)}"


def _digest(linked: Mapping[str, Algos]) -> str:
    """Of all that the functions of one file may call, and of how they choose."""
    kernels = ((name, i, record) for name, algos in linked.items() for i, algo in enumerate(algos) for record in algo)
    return digest_of(f"{name} {i} {record.function} {record.digest}" for name, i, record in kernels)


def _name_header(name: str, algos: Algos, digest: str) -> str:
    launch, launch_default = _launch(name, algos, ["int algo_id"]), _launch(f"{name}_default", algos)
    load, unload = (f"deuteron_status {verb}_{name}(void)" for verb in ("load", "unload"))
    heads = (launch, launch_default, f"int {name}_get_num_algos(void)", load, unload)
    declarations = [
        declaration_of(head, function, digest) for head, function in zip(heads, linked_functions(name), strict=True)
    ]
    described = [f"     algo_id {i}: {comment_text(description_of(kernels))}" for i, kernels in enumerate(algos)]
    constants = [f"  {constant} = {i}" for i, constant in enumerate(algo_constants(name, algos))]
    return render(
        "link_name.h",
        name=name,
        num_algos="1 algorithm" if len(algos) == 1 else f"{len(algos)} algorithms",
        algos="\n".join(described),
        constants=",\n".join(constants),
        launches="\n".join(declarations[:3]),
        maintenance="\n".join(declarations[3:]),
    )


def _name_source(name: str, algos: Algos) -> str:
    records = [record for kernels in algos for record in kernels]
    arguments = ", ".join(["stream", *(param.c_name for param in records[0].c_params)])
    cases = [f"  case {i}:\n    return {name}_algo{i}({arguments});" for i in range(len(algos))]
    return render(
        "link_name.c",
        name=name,
        algos="\n".join(_algo_source(name, i, kernels, algos) for i, kernels in enumerate(algos)),
        num_algos=len(algos),
        num_kernels=len(records),
        arguments=arguments,
        cases="\n".join(cases),
        launch=_launch(name, algos, ["int algo_id"]),
        launch_default=_launch(f"{name}_default", algos),
        kernels=",\n    ".join(f"{{load_{record.function}, unload_{record.function}}}" for record in records),
    )


def _algo_source(name: str, algo_id: int, kernels: Sequence[KernelRecord], algos: Algos) -> str:
    return render(
        "link_algo.c",
        name=name,
        algo_id=algo_id,
        description=comment_text(description_of(kernels)),
        launch=_launch(f"{name}_algo{algo_id}", algos, result="static deuteron_status"),
        dispatch="\n".join(line for record in kernels for line in attempt(record)),
    )


def attempt(record: KernelRecord, *further: str) -> Iterator[str]:
    """The lines that call a kernel where its hints, and further conditions, hold."""
    conditions = " && ".join([*further, *_conditions(record)])
    arguments = ", ".join(["stream", *(param.c_name for param in record.runtime_params)])
    yield f"  if ({conditions}) {{" if conditions else "  {"
    yield f"    deuteron_result = {record.function}({arguments});"
    yield "    if (deuteron_result != DEUTERON_ERROR_UNSUPPORTED_DEVICE)"
    yield "      return deuteron_result;"
    yield "  }"


def _conditions(record: KernelRecord) -> Iterator[str]:
    strides = [stride for described in record.tensor_maps for stride in described.strides]
    used = {record.runtime_params[index].c_name for stride in strides for index in arguments_of(stride)}
    for param in record.c_params:
        if param.hint == 1:
            yield f"{param.c_name} == 1"
        elif param.hint == 16:
            value = f"(uintptr_t){param.c_name}" if param.type.startswith("*") else param.c_name
            yield f"{value} % 16 == 0"
            if param.c_name in used and param.type.startswith("i"):
                yield f"{param.c_name} >= 0"


def _launch(function: str, algos: Algos, further: Sequence[str] = (), result: str = "deuteron_status") -> str:
    """The head of a function that takes all arguments, those hinted :1 too."""
    records = [record for kernels in algos for record in kernels]
    return declaration(result, function, [STREAM, *parameters(algos[0][0].c_params, records), *further])


def description_of(kernels: Sequence[KernelRecord]) -> str:
    """`BLOCK = 128, 4 warps, 1 stages`: what distinguishes an algorithm."""
    record = kernels[0]
    values = [f"{param.name} = {param.value}" for param in record.constexprs]
    cluster = [f"{record.num_ctas} ctas"] if record.num_ctas > 1 else []
    launch = [f"{record.num_warps} warps", f"{record.num_stages} stages", *cluster]
    return ", ".join([*values, *launch, *record.options])


def algo_constants(name: str, algos: Algos) -> list[str]:
    """The constants of a name's algorithms: `fmha_BLOCK_128_warps4_stages1`. They say what an algorithm is, so that it
    has the same one whatever else is linked; where two would be equal, as for 1 and "1", a digest tells them apart.
    """
    names = [_constant(name, kernels[0]) for kernels in algos]
    return [
        f"{constant}_{digest_of(map(repr, kernels[0].algo))}" if names.count(constant) > 1 else constant
        for constant, kernels in zip(names, algos, strict=True)
    ]


def _constant(name: str, record: KernelRecord) -> str:
    values = [f"{identifier(param.name)}_{value_identifier(param.value)}" for param in record.constexprs]
    cluster = [f"ctas{record.num_ctas}"] if record.num_ctas > 1 else []
    options = [value_identifier(option) for option in record.options]
    return "_".join([name, *values, f"warps{record.num_warps}", f"stages{record.num_stages}", *cluster, *options])
