"""Measures the algorithms of a library on this machine: what `deuteron tune norms` does.

    for measured in measure_library(library, MeasureOptions(sizes={"n": [1024, 4096]})):
        ...                             a Measured for each function and key; the timings are in the kernel's file

For each function, for each combination of the sizes, arrays are made as `tune` says how many elements they have, and
the kernels for the machine's processor and GPU are compiled, launched and timed as an autotuner does it; on the
processor after a launch that checks what they access. All find the arrays as they were made, and before every launch
those are zero that `tune` says, such as a counter by which programs wait for each other. What the file has already for
the same source is not measured again.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from deuteron import testing
from deuteron.aot.compile import CompileRequest
from deuteron.aot.grid import grid_scope, parse_grid
from deuteron.aot.grid_code import grid_value, node_value
from deuteron.aot.load import KernelSource, load_source
from deuteron.aot.targets import c_target, select_target
from deuteron.aot.targets.cpu_features import runs_here
from deuteron.backend import get_backend
from deuteron.backend.devices import machine_target
from deuteron.compiler.ahead import Job
from deuteron.compiler.driver import compile_with
from deuteron.compiler.kernel import CompiledKernel
from deuteron.dtypes import INTEGERS
from deuteron.errors import MemoryAccessError, UsageError, not_written, suggest
from deuteron.library.declaration import Kernel, Library
from deuteron.library.device_arrays import DeviceArrays, arrays_for
from deuteron.library.measuring_turn import measuring_turn
from deuteron.library.variants import Variant, variants_of
from deuteron.library.worker import DeclarationError, request_of
from deuteron.options import Target
from deuteron.runtime.autotuning.config import Config
from deuteron.runtime.autotuning.trial_timing import check_spills, time_trial
from deuteron.runtime.autotuning.trials import SKIPPED, Trials
from deuteron.runtime.autotuning.tuned_file import Choice, Outcome, read_tuned
from deuteron.runtime.autotuning.tuned_store import TunedStore
from deuteron.settings import BOUNDS

_WHOLE = {type.signature: type for type in INTEGERS}
_LAUNCH = ("num_warps", "num_stages", "num_ctas")


@dataclass(frozen=True)
class MeasureOptions:
    """`sizes` take the place of those that are declared; with `again` what is known is measured again. `bench(fn,
    quantiles=)` returns milliseconds. `on_wait` is called before it waits for another process, which measures on the
    same device."""

    sizes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    again: bool = False
    bench: Callable[..., Any] | None = None
    on_wait: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class _Launches:
    """What the kernels of a function are launched with: the values of all parameters, of arrays their addresses."""

    arrays: DeviceArrays
    values: Mapping[str, Any]
    zeroed: Sequence[str]

    def of(self, algorithm: _Algorithm, compiled: CompiledKernel) -> Callable[[], None]:
        """A launch, of which the first one finds the arrays as they were made."""
        scope = grid_scope(algorithm.source.signature, algorithm.variant.host_parameters)
        extents = grid_value(parse_grid(algorithm.variant.grid, scope), self.values)
        passed = [self.values[param.name] for param in compiled.metadata.runtime_params]
        self.arrays.restore()

        def launch() -> None:
            for name in self.zeroed:
                self.arrays.zero(self.values[name])
            compiled.launch(extents, passed)

        return launch


@dataclass(frozen=True)
class Measured:
    """The outcomes of a function's algorithms for a key on a target, and how many of them are new."""

    function: str
    path: Path
    choice: Choice
    num_new: int


@dataclass(frozen=True)
class _Algorithm:
    """A kernel of a function: what it is compiled of, and what a configuration of it is."""

    variant: Variant
    request: CompileRequest
    source: KernelSource
    config: Config
    target: Target

    @property
    def specialisation(self) -> tuple[int, int]:
        """A call takes the kernel that has most of it, among those that its arguments and the device can have."""
        rank = c_target(self.target.backend).device_rank(self.target)
        return rank, sum(argument.hint is not None for argument in self.source.signature.arguments)

    @property
    def job(self) -> Job:
        backend = get_backend(self.target)
        options = {name: getattr(self.request, name) for name in _LAUNCH} | dict(self.request.options)
        return Job(backend, self.source.source, self.target, backend.make_options(options))


def measure_library(library: Library, options: MeasureOptions | None = None) -> Iterator[Measured]:
    """Measure all kernels of a library that say how; raises UsageError where none does, or one cannot be launched."""
    options = options or MeasureOptions()
    kernels = [index for index, kernel in enumerate(library.kernels) if kernel.tune]
    if not kernels:
        raise library.error(f"no kernel of library '{library.name}' has a table 'tune', which says how to measure it")
    with _in_folder(library.root):
        for index in kernels:
            yield from _measure_kernel(library, index, options)


@contextmanager
def _in_folder(folder: Path) -> Iterator[None]:
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def _measure_kernel(library: Library, index: int, options: MeasureOptions) -> Iterator[Measured]:
    kernel = library.kernels[index]
    variants = [variant for variant in variants_of(library) if variant.index == index and _is_here(variant)]
    if not variants:
        raise kernel.error(f"none of the targets of kernel '{kernel.name}' is a device of this machine", "name")
    with _tuned_file(library, kernel) as path:
        if path.exists():
            read_tuned(path)
    for _, group in itertools.groupby(sorted(variants, key=_place), key=_place):
        algorithms = [_algorithm(kernel, variant) for variant in group]
        for sizes in _combinations(kernel, options):
            yield _measure(library, kernel, algorithms, sizes, options)


@contextmanager
def _tuned_file(library: Library, kernel: Kernel) -> Iterator[Path]:
    """The file that the timings go into; what is wrong with it is a mistake at its key."""
    path = library.root / (kernel.tuned or "")
    try:
        yield path
    except OSError as error:
        raise kernel.error(not_written(path, error).message, "tuned") from None
    except UsageError as error:
        raise kernel.error(f"{error.message}. Mend the file, or remove it", "tuned") from None


def _place(variant: Variant) -> tuple[str, str]:
    return variant.function, select_target(variant.target).backend


def _is_here(variant: Variant) -> bool:
    """Whether this machine has the device."""
    target, machine = select_target(variant.target), machine_target()
    if target.backend == "cpu":
        return runs_here(str(target.arch))
    return (target.backend, target.arch) == (machine.backend, machine.arch)


def _algorithm(kernel: Kernel, variant: Variant) -> _Algorithm:
    try:
        request = request_of(variant)
        source = load_source(request.path, variant.name, request.signature or "")
    except DeclarationError as error:
        raise kernel.error(error.message, *error.keys) from None
    further = {name: value for name, value in variant.options.items() if name not in _LAUNCH}
    values = {name: value for name, value in source.signature.constexprs.items() if name not in _always_one(source)}
    config = Config({**values, **further}, **{name: getattr(request, name) for name in _LAUNCH})
    return _Algorithm(variant, request, source, config, select_target(variant.target))


def _always_one(source: KernelSource) -> set[str]:
    """Parameters hinted `:1`, which are no constexprs."""
    return {
        argument.name for argument in source.signature.arguments if argument.is_folded and not argument.is_constexpr
    }


def _combinations(kernel: Kernel, options: MeasureOptions) -> Iterator[dict[str, int]]:
    declared = dict(kernel.tune.get("sizes", {}))
    for name in options.sizes:
        if name not in declared:
            raise kernel.error(
                f"'{name}' is none of the sizes of kernel '{kernel.name}': {', '.join(declared)}", "tune"
            )
    sizes = {**declared, **options.sizes}
    axes = [value if isinstance(value, Sequence) else [value] for value in sizes.values()]
    for values in itertools.product(*axes):
        yield dict(zip(sizes, values, strict=True))


def _measure(
    library: Library,
    kernel: Kernel,
    algorithms: Sequence[_Algorithm],
    sizes: Mapping[str, int],
    options: MeasureOptions,
) -> Measured:
    """The timings of all algorithms for given sizes; of kernels that differ in hints, or in the processor that they are
    for, of the most specialised that fits, as a call takes it."""
    values = _arguments(kernel, algorithms[0], sizes)
    fitting = sorted((a for a in algorithms if _fits(a, values)), key=lambda a: a.specialisation)
    by_config = {algorithm.config: algorithm for algorithm in fitting}
    if not by_config:
        raise kernel.error(
            f"no kernel '{kernel.name}' takes the sizes {dict(sizes)}: its hints do not hold", "tune", "sizes"
        )
    path, target = library.root / (kernel.tuned or ""), fitting[-1].target
    _check_values(kernel, algorithms[0], values)
    store = TunedStore(algorithms[0].source.source.fn, path, target)
    choice = store.choice(sizes, _element_types(algorithms[0]))
    known = {} if options.again else store.known(choice, by_config)
    jobs = {config: algorithm.job for config, algorithm in by_config.items()}
    missing = [config for config in by_config if config not in known]
    with measuring_turn(target, options.on_wait), arrays_for(target) as arrays:
        launches = _launches(kernel, algorithms[0], values, arrays)
        if target.backend == "cpu":
            _check_arrays(kernel, [by_config[config] for config in missing], launches, sizes)
        bench = partial(_bench, by_config, jobs, launches, options)
        trials = Trials(algorithms[0].variant.function, bench, jobs, known)
        try:
            trials.run(missing)
        finally:
            found = {config: trials.outcomes[config] for config in missing if config in trials.outcomes}
            with _tuned_file(library, kernel):
                store.merge(choice, found)
    return Measured(algorithms[0].variant.function, path, store.with_outcomes(choice, trials.outcomes), len(missing))


def _arguments(kernel: Kernel, algorithm: _Algorithm, sizes: Mapping[str, int]) -> dict[str, Any]:
    """The values of all parameters and host parameters; of arrays the number of elements."""
    given, values = dict(kernel.tune.get("arguments", {})), dict(sizes)
    params = [argument for argument in algorithm.source.signature.arguments if not argument.is_constexpr]
    names = [*(argument.name for argument in params), *kernel.host_parameters]
    for name in (*sizes, *given):
        if name not in names:
            where = "sizes" if name in sizes else "arguments"
            raise kernel.error(f"'{name}' is no parameter of the functions of '{kernel.name}'", "tune", where, name)
    for name in names:
        if name not in values:
            values[name] = _argument(kernel, algorithm, name, given, sizes)
    return values


def _argument(
    kernel: Kernel, algorithm: _Algorithm, name: str, given: Mapping[str, Any], sizes: Mapping[str, int]
) -> int | float:
    if name not in given:
        raise kernel.error(f"'tune' says neither in 'sizes' nor in 'arguments' what '{name}' is", "tune")
    value = given[name]
    if isinstance(value, int | float):
        return value
    scope = grid_scope(algorithm.source.signature, kernel.host_parameters)
    scope.arguments &= set(sizes)
    try:
        return node_value(parse_grid(str(value), scope)[0], sizes)
    except UsageError as error:
        raise kernel.error(error.message, "tune", "arguments", name) from None


def _fits(algorithm: _Algorithm, values: Mapping[str, Any]) -> bool:
    """Whether the hints hold; arrays are aligned."""
    for argument in algorithm.source.signature.arguments:
        is_number = not argument.is_constexpr and not argument.type.startswith("*")
        if is_number and argument.hint is not None and values[argument.name] % 16 and argument.hint == 16:
            return False
        if is_number and argument.hint == 1 and values[argument.name] != 1:
            return False
    return True


def _element_types(algorithm: _Algorithm) -> dict[str, str]:
    arguments = algorithm.source.signature.arguments
    return {a.name: a.type[1:] for a in arguments if not a.is_constexpr and a.type.startswith("*")}


def _check_values(kernel: Kernel, algorithm: _Algorithm, values: Mapping[str, Any]) -> None:
    """Numbers are of their types, where a launch would take other ones, and arrays have whole numbers of elements."""
    params = {argument.name: argument.type for argument in algorithm.source.signature.arguments}
    for name, type in {**params, **kernel.host_parameters}.items():
        value, where = values.get(name), "sizes" if name in kernel.tune.get("sizes", {}) else "arguments"
        if type in _WHOLE and not (isinstance(value, int) and _WHOLE[type].has(value)):
            raise kernel.error(f"'tune' gives '{name}', which is {type}, the value {value}", "tune", where, name)
        if name in _element_types(algorithm) and not (isinstance(value, int) and value >= 0):
            raise kernel.error(f"'tune' gives the array '{name}' {value} elements", "tune", where, name)


def _launches(kernel: Kernel, algorithm: _Algorithm, values: Mapping[str, Any], arrays: DeviceArrays) -> _Launches:
    """Launches with the values, and addresses in the place of numbers of elements."""
    given, types = dict(values), _element_types(algorithm)
    zeroed = kernel.tune.get("reset_to_zero", ())
    for name in zeroed:
        if name not in types:
            known = f"{suggest(name, types)} There are {', '.join(types)}"
            raise kernel.error(f"'{name}' is no array of kernel '{kernel.name}'.{known}", "tune", "reset_to_zero")
    for name, type in types.items():
        try:
            given[name] = arrays.make(type, values[name])
        except MemoryError:
            message = f"there is no memory for the array '{name}' of {values[name]:,} elements of {type}"
            raise kernel.error(message, "tune", "arguments", name) from None
    return _Launches(arrays, given, zeroed)


def _check_arrays(
    kernel: Kernel, algorithms: Sequence[_Algorithm], launches: _Launches, sizes: Mapping[str, int]
) -> None:
    """Launch each once with its accesses checked: beyond an array that is too small is memory of this process."""
    for algorithm in algorithms:
        job = algorithm.job
        try:
            options = dataclasses.replace(job.options, check=BOUNDS)
            launches.of(algorithm, compile_with(job.backend, job.source, job.target, options))()
        except MemoryAccessError as error:
            lacks = f"the arrays that 'tune' gives kernel '{kernel.name}' for {dict(sizes)}"
            raise kernel.error(f"{lacks} are not what it accesses:\n{error}", "tune", "arguments") from None
        except SKIPPED:  # its trial says so
            continue


def _bench(
    algorithms: Mapping[Config, _Algorithm],
    jobs: Mapping[Config, Job],
    launches: _Launches,
    options: MeasureOptions,
    config: Config,
    best: float,
    takes_spills: bool,
) -> Outcome:
    algorithm, job = algorithms[config], jobs[config]
    kernel = compile_with(job.backend, job.source, job.target, job.options)
    if not takes_spills:
        check_spills(kernel)
    launch = launches.of(algorithm, kernel)
    return time_trial(launch, options.bench or testing.do_bench, best, stops_early=options.bench is None)
