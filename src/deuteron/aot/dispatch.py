"""The C that chooses among kernels: by algorithm, by hints, and by the device.

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
whose strides would be negative, which TMA cannot copy. `deuteron link` and the libraries of deuteron.toml have such a
pair of files each, a `Chooser`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from deuteron.aot.apart_code import apart_text
from deuteron.aot.c_types import STREAM, declaration, kernel_declarations, renamed
from deuteron.aot.checked_code import is_checked
from deuteron.aot.checked_params import checked_params
from deuteron.aot.emit import claims, header_guard
from deuteron.aot.metadata import KernelRecord, ParamRecord
from deuteron.aot.naming import identifier, value_identifier
from deuteron.aot.queries import REASON, conditions, question, select_head, select_source
from deuteron.aot.symbols import declaration_of, digest_of, plain_names, symbol
from deuteron.aot.templates import comment_lines, comment_text, render, runtime_source
from deuteron.aot.tuned import Table, logarithm
from deuteron.errors import counted

Algos = Sequence[Sequence[KernelRecord]]
Functions = Mapping[str, Algos]

_ALGO_ID = "int algo_id"


@dataclass(frozen=True)
class Chooser:
    """A header and a source whose functions choose among kernels, which are given by function and algorithm.

    `digest` is in the symbols of the functions. `types_files` in runtime/ define the types of their parameters, and
    `parameter` declares one. `on_cpu` is C for whether a call with this `stream` is for the processor; None where
    the kernels are for one kind of device, which the stream does not say. `tables` are what functions choose by that
    were tuned.
    """

    file_name: str
    title: str
    functions: Functions
    digest: str
    types_files: Sequence[str]
    parameter: Callable[[ParamRecord, Sequence[KernelRecord]], str]
    on_cpu: str | None = None
    tables: Mapping[str, Table] = field(default_factory=dict)

    def header(self) -> str:
        return render(
            "link.h",
            title=self.title,
            guard=header_guard(f"LINK_{identifier(self.file_name)}_{self.digest}"),
            claims=claims(self.functions),
            types=runtime_source(*self.types_files, "any.h"),
            declarations="\n".join(self._declarations(name, algos) for name, algos in self.functions.items()),
        )

    def source(self) -> str:
        records = [record for algos in self.functions.values() for record in records_of(algos)]
        public = (function for name, algos in self.functions.items() for function in linked_functions(name, algos))
        return render(
            "link.c",
            title=self.title,
            header=f"{self.file_name}.h",
            grid=runtime_source("grid.c", "tensors.c"),
            on_cpu=_on_cpu(self.on_cpu),
            tuned=self._tuned_code(),
            say=render("link_say.c") if is_checked(records) else "",
            kernels="".join(f"{declared}\n" for record in records for declared in kernel_declarations(record)),
            names="\n".join(self._definitions(name, algos) for name, algos in self.functions.items()),
            plain_names=plain_names(public, self.digest),
        )

    def symbols(self) -> str:
        """The declarations of all functions, by the names that they have in object code, which no others have."""
        named = (pair for name, algos in self.functions.items() for pair in self._named_heads(name, algos))
        heads = (renamed(head, function, symbol(self.digest, function)) for head, function in named)
        return "\n".join(f"DEUTERON_API\n{head};" for head in heads)

    def _named_heads(self, name: str, algos: Algos) -> Iterator[tuple[str, str]]:
        asked = (select_head(name, algos), self._supports(name, algos))
        heads = (*self._launches(name, algos), *asked, *self._maintenance(name), *self._checked(name, algos))
        return zip(heads, linked_functions(name, algos), strict=True)

    def _declarations(self, name: str, algos: Algos) -> str:
        named = self._named_heads(name, algos)
        declared = [declaration_of(head, function, self.digest) for head, function in named]
        described = [f"     algo_id {i}: {comment_text(description_of(kernels))}" for i, kernels in enumerate(algos)]
        return render(
            "link_name.h",
            name=name,
            num_algos=counted(len(algos), "algorithm"),
            targets=", ".join(sorted({record.target for record in records_of(algos)})),
            algos="\n".join(described),
            takes=comment_lines(_taken_text(records_of(algos)[0])),
            constants=",\n".join(f"  {constant} = {i}" for i, constant in enumerate(algo_constants(name, algos))),
            launches="\n".join(declared[:3]),
            default=_default_described(self.tables.get(name)),
            apart=comment_lines(apart_text(records_of(algos))),
            select=declared[3],
            supports=declared[4],
            maintenance="\n".join(declared[5:7]),
            checked=render("link_checked.h", declared=declared[7]) if declared[7:] else "",
        )

    def _definitions(self, name: str, algos: Algos) -> str:
        records = sorted(records_of(algos), key=lambda record: record.backend == "cpu")
        arguments = ", ".join(["stream", *(param.c_name for param in records[0].c_params)])
        cases = [f"  case {i}:\n    return {name}_algo{i}({arguments});" for i in range(len(algos))]
        (launch, launch_default, _), (load, unload) = self._launches(name, algos), self._maintenance(name)
        return render(
            "link_name.c",
            name=name,
            algos="\n".join(self._algo(name, i, algos) for i in range(len(algos))),
            num_algos=len(algos),
            arguments=arguments,
            cases="\n".join(cases),
            launch=launch,
            default=self._default(name, algos, launch_default, arguments),
            select=select_source(name, algos),
            supports=self._supports_source(name, algos, arguments),
            kernels=",\n    ".join(f"{{load_{record.function}, unload_{record.function}}}" for record in records),
            num_kernels=len(records),
            load=load,
            load_each=self._for_each("load", name, records, "is_loaded"),
            unload=unload,
            unload_each=self._for_each("unload", name, records),
            checked=self._checked_source(name, algos, arguments) if is_checked(records) else "",
        )

    def _algo(self, name: str, algo_id: int, algos: Algos) -> str:
        kernels = algos[algo_id]
        attempts = (attempt(record, *self._device_condition(record)) for record in kernels)
        return render(
            "link_algo.c",
            name=name,
            algo_id=algo_id,
            description=comment_text(description_of(kernels)),
            launch=self.launch(f"{name}_algo{algo_id}", algos, result="static deuteron_status"),
            otherwise=self._otherwise(kernels),
            dispatch="\n".join(line for lines in attempts for line in lines),
        )

    def launch(self, function: str, algos: Algos, *further: str, result: str = "deuteron_status") -> str:
        """The head of a function that takes all arguments, those hinted :1 too."""
        records = records_of(algos)
        params = (self.parameter(param, records) for param in records[0].c_params)
        return declaration(result, function, [STREAM, *params, *further])

    def _launches(self, name: str, algos: Algos) -> tuple[str, str, str]:
        launch, launch_default = self.launch(name, algos, _ALGO_ID), self.launch(f"{name}_default", algos)
        return launch, launch_default, f"int {name}_get_num_algos(void)"

    def _default(self, name: str, algos: Algos, head: str, arguments: str) -> str:
        table = self.tables.get(name)
        if table is None:
            return render("link_default.c", name=name, launch_default=head, arguments=arguments)
        params = {param.name: param.c_name for param in records_of(algos)[0].c_params}
        sizes = [f"(int64_t){params[key]}" for key in table.keys]
        rows = [(row.target, row.algo_id, *row.sizes, *map(logarithm, row.sizes)) for row in table.rows]
        return render(
            "link_tuned.c",
            name=name,
            keys=comment_text(", ".join(table.keys) or "nothing else"),
            width=2 + 2 * len(table.keys),
            rows=",\n".join(f"    {{{', '.join(f'INT64_C({number})' for number in row)}}}" for row in rows),
            num_rows=len(rows),
            num_keys=len(table.keys),
            sizes=",\n                                    ".join(
                [*sizes, *(f"deuteron_logarithm({size})" for size in sizes)]
            )
            or "0",
            target=self._tuned_target(name, table, records_of(algos)),
            launch_default=head,
            arguments=arguments,
            num_algos=len(algos),
        )

    def _tuned_target(self, name: str, table: Table, records: Sequence[KernelRecord]) -> str:
        """C: the target whose rows are looked at."""
        of_gpu = str(table.capabilities[0]) if table.capabilities else "-1"
        if len(table.capabilities) > 1:
            of_gpu = f"deuteron_newest(deuteron_tuned_{name}[0], {len(table.rows)}, {2 + 2 * len(table.keys)})"
        if self.on_cpu is not None:
            return f"deuteron_on_cpu(stream) ? 0 : {of_gpu}"
        return "0" if records[0].backend == "cpu" else of_gpu

    def _tuned_code(self) -> str:
        if not self.tables:
            return ""
        asks_driver = any(len(table.capabilities) > 1 for table in self.tables.values())
        newest = render("link_newest.c") if asks_driver else ""
        return "\n" + render("link_nearest.c", nearest=runtime_source("tuned.c"), newest=newest)

    def _supports(self, name: str, algos: Algos) -> str:
        return self.launch(f"{name}_supports", algos, _ALGO_ID, REASON)

    def _supports_source(self, name: str, algos: Algos, arguments: str) -> str:
        cases = [
            f"  case {i}:\n    deuteron_result = {name}_asks{i}({arguments}, &deuteron_why);\n    break;"
            for i in range(len(algos))
        ]
        return render(
            "link_supports.c",
            asks="\n".join(self._asks(name, i, algos) for i in range(len(algos))),
            head=self._supports(name, algos),
            cases="\n".join(cases),
            num_algos=len(algos),
            name=name,
            arguments=arguments,
        )

    def _asks(self, name: str, algo_id: int, algos: Algos) -> str:
        kernels = algos[algo_id]
        questions = (question(record, *self._device_condition(record)) for record in kernels)
        unused = ("stream", *(param.c_name for param in kernels[0].c_params))
        return render(
            "link_asks.c",
            head=self.launch(f"{name}_asks{algo_id}", algos, REASON, result="static deuteron_status"),
            unused="\n".join(f"  (void){parameter};" for parameter in unused),
            questions=" ||\n      ".join(f"({asked})" for asked in questions),
        )

    def _checked(self, name: str, algos: Algos) -> list[str]:
        """The head of the function that checks all accesses, where there is one."""
        records = records_of(algos)
        if not is_checked(records):
            return []
        more = checked_params(records[0].c_params)
        return [self.launch(f"{name}_checked", algos, *more.declared_sizes, _ALGO_ID, *more.declared_message)]

    def _checked_source(self, name: str, algos: Algos, arguments: str) -> str:
        more = checked_params(records_of(algos)[0].c_params)
        given = ", ".join([arguments, *more.sizes, more.message, more.message_size])
        return render(
            "link_checked.c",
            name=name,
            algos="\n".join(self._checked_algo(name, i, algos) for i in range(len(algos))),
            head=self._checked(name, algos)[0],
            arguments=arguments,
            message=more.message,
            message_size=more.message_size,
            cases="\n".join(f"  case {i}:\n    return {name}_check{i}({given});" for i in range(len(algos))),
        )

    def _checked_algo(self, name: str, algo_id: int, algos: Algos) -> str:
        """One algorithm: the first kernel for the CPU that takes the arguments."""
        kernels, more = algos[algo_id], checked_params(records_of(algos)[0].c_params)
        given = [*more.sizes, more.message, more.message_size]
        calls = (
            call(record, f"check_{record.function}", given, self._device_condition(record))
            for record in kernels
            if record.is_checked
        )
        unused = ("stream", *(param.c_name for param in kernels[0].c_params), *given)
        further = (*more.declared_sizes, *more.declared_message)
        return render(
            "link_check.c",
            head=self.launch(f"{name}_check{algo_id}", algos, *further, result="static deuteron_status"),
            unused="\n".join(f"  (void){parameter};" for parameter in unused),
            dispatch="\n".join(line for lines in calls for line in lines),
            message=more.message,
            message_size=more.message_size,
        )

    def _maintenance(self, name: str) -> tuple[str, str]:
        taken = "void" if self.on_cpu is None else STREAM
        return f"deuteron_status load_{name}({taken})", f"deuteron_status unload_{name}({taken})"

    def _for_each(self, verb: str, name: str, records: Sequence[KernelRecord], *further: str) -> str:
        """The lines that load or unload the kernels for a device, of those in the order GPUs, processor."""
        num_cpu = sum(record.backend == "cpu" for record in records)
        num_gpu = len(records) - num_cpu

        def of(first: int, count: int) -> str:
            arguments = ", ".join([f"deuteron_kernels_{name} + {first}", str(count), *further])
            return f"return deuteron_{verb}_all({arguments});"

        if self.on_cpu is None:
            return f"  {of(0, len(records))}"
        return f"  if (deuteron_on_cpu(stream))\n    {of(num_gpu, num_cpu)}\n  {of(0, num_gpu)}"

    def _device_condition(self, record: KernelRecord) -> list[str]:
        if self.on_cpu is None:
            return []
        return ["deuteron_on_cpu(stream)" if record.backend == "cpu" else "!deuteron_on_cpu(stream)"]

    def _otherwise(self, kernels: Sequence[KernelRecord]) -> str:
        """The status where no kernel is called: the arguments' fault where there are kernels for the device."""
        conditions = {condition for record in kernels for condition in self._device_condition(record)}
        if len(conditions) != 1:
            return "DEUTERON_ERROR_INVALID_VALUE"
        return f"{conditions.pop()} ? DEUTERON_ERROR_INVALID_VALUE : DEUTERON_ERROR_UNSUPPORTED_DEVICE"


def _taken_text(record: KernelRecord) -> str:
    """What a function takes, as its kernels' signatures say it: in C an array is an address, of anything."""
    return f"It takes {', '.join(f'{param.name}: {param.type}' for param in record.c_params)}."


def _default_described(table: Table | None) -> str:
    if table is None:
        return "the first algorithm"
    keys = f", by {', '.join(table.keys)}" if table.keys else ""
    return comment_text(f"the algorithm that was measured to be the fastest{keys}")


def _on_cpu(condition: str | None) -> str:
    if condition is None:
        return ""
    comment = "\n/* Whether a call is for the processor. */\n"
    return f"{comment}static bool deuteron_on_cpu(deuteron_stream stream) {{ return {condition}; }}\n"


def records_of(algos: Algos) -> list[KernelRecord]:
    return [record for kernels in algos for record in kernels]


def linked_functions(name: str, algos: Algos) -> tuple[str, ...]:
    """The functions that linking gives a name."""
    asked = (f"{name}_select", f"{name}_supports")
    checked = (f"{name}_checked",) if is_checked(records_of(algos)) else ()
    return (name, f"{name}_default", f"{name}_get_num_algos", *asked, f"load_{name}", f"unload_{name}", *checked)


def attempt(record: KernelRecord, *further: str) -> Iterator[str]:
    """The lines that call a kernel where its hints, and further conditions, hold."""
    return call(record, record.function, [], further)


def call(
    record: KernelRecord, function: str, further_arguments: Iterable[str], further_conditions: Iterable[str]
) -> Iterator[str]:
    """The lines that call a function of a kernel where its hints, and further conditions, hold."""
    needed = " && ".join([*further_conditions, *(condition for condition, _ in conditions(record))])
    arguments = ", ".join(["stream", *(param.c_name for param in record.runtime_params), *further_arguments])
    yield f"  if ({needed}) {{" if needed else "  {"
    yield f"    deuteron_result = {function}({arguments});"
    yield "    if (deuteron_result != DEUTERON_ERROR_UNSUPPORTED_DEVICE)"
    yield "      return deuteron_result;"
    yield "  }"


def description_of(kernels: Sequence[KernelRecord]) -> str:
    """`BLOCK = 128, 4 warps, 1 stage`: what distinguishes an algorithm."""
    record = kernels[0]
    values = [f"{param.name} = {param.value}" for param in record.constexprs]
    cluster = [f"{record.num_ctas} CTAs"] if record.num_ctas > 1 else []
    launch = [counted(record.num_warps, "warp"), counted(record.num_stages, "stage"), *cluster]
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
