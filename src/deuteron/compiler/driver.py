"""`compile`: from a source to a compiled kernel, out of the cache where it has been compiled before.

    kernel = compile(ASTSource(fn=add, signature={"x": "*fp32", "n": "i32"}, constexprs={"BLOCK": 128}), target="cpu")

Dumps (DEUTERON_DUMP_DIR) are written on a compile and on a cache hit; overrides (DEUTERON_OVERRIDE_DIR) bypass the
cache.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from deuteron import knobs
from deuteron.backend import Backend, get_backend, parse_target
from deuteron.backend.devices import machine_target
from deuteron.backend.stage import Stage, Unit
from deuteron.compiler.cache import Entry
from deuteron.compiler.inspection import InspectedStages, with_inspection
from deuteron.compiler.kept import KeptKernel
from deuteron.compiler.kernel import CompiledKernel, MetadataGroup
from deuteron.compiler.key import cache_key
from deuteron.compiler.source import ASTSource, IRSource
from deuteron.compiler.stages import Walk, dump, find_stage
from deuteron.errors import LaunchError, StrictError, UsageError
from deuteron.forking import undivided
from deuteron.options import Target
from deuteron.settings import settings, warn_of_unknown_variables
from deuteron.tracebacks import api_boundary


@api_boundary
def compile(
    src: ASTSource | IRSource | str,
    target: Target | str | None = None,
    options: Mapping[str, Any] | None = None,
    symbol: str | None = None,
    is_portable: bool = False,
    in_folder: bool = False,
) -> CompiledKernel:
    """Compile a kernel, or take it from the cache.

    Args:
        src: the kernel, or the text of a stage; a string is the path of a file with such a text.
        target: default: DEUTERON_TARGET, else the machine's GPU, else `cpu`.
        options: the options of the target (`num_warps`, `num_stages`, ...).
        symbol: the name of the function in object code; default: the kernel's name.
        is_portable: whether the result is the same wherever the sources lie: the debug information then calls them
            as Python imports them.
        in_folder: whether it is kept as a folder of files, which programs made for Triton read.

    Raises:
        CompilationError: the kernel is at fault. IRError: a text is. UsageError: the request is.
    """
    source = IRSource(src) if isinstance(src, str | Path) else src
    if not isinstance(source, ASTSource | IRSource):
        raise UsageError(f"compile takes an ASTSource, an IRSource or the path of a file, got {src!r}")
    target = resolve_target(target)
    backend = get_backend(target)
    return compile_with(backend, source, target, backend.make_options(options or {}), symbol, is_portable, in_folder)


def resolve_target(target: Target | str | None) -> Target:
    """The target that is meant: a text is parsed, None is DEUTERON_TARGET, else the machine's GPU, else the CPU.

    A Target as Triton has it, such as `GPUTarget("cpu", "", 32)`, becomes ours. Raises UsageError for an unknown one.
    """
    if target is None:
        target = settings.target or machine_target()
    if isinstance(target, Target):
        get_backend(target)  # which says what there is, where there is none
    return parse_target(str(target))


@undivided()
def compile_with(
    backend: Backend,
    source: ASTSource | IRSource,
    target: Target,
    options: Any,
    symbol: str | None = None,
    is_portable: bool = False,
    in_folder: bool = False,
    before_stages: Callable[[], None] | None = None,
) -> CompiledKernel:
    """Compile with a backend and its options object, through the cache. What is not there is told `before_stages`,
    which may raise.
    """
    begin = time.perf_counter()
    warn_of_unknown_variables()
    backend.check(target, options)
    unit, key = unit_and_key(backend, source, target, options, symbol, is_portable)
    is_overridden = settings.override_dir is not None
    kept = KeptKernel(key, _file_name(source) if in_folder else None)
    entry = None if settings.always_compile or is_overridden else kept.load()
    is_cached, looked_up = entry is not None, time.perf_counter()
    if entry is None:
        if before_stages is not None:
            before_stages()
        entry = _run_stages(backend, source, unit, _dump_folder(key))
        if not is_overridden:
            kept.store(entry)
    kernel = _kernel(backend, source, entry, options, key, is_cached)
    if knobs.compilation.listener is not None:
        _tell_listener(source, kernel, looked_up - begin, time.perf_counter() - begin)
    if is_cached and settings.dump_dir:
        _dump_all(settings.dump_dir / key, kernel)
    return kernel


def compile_otherwise(kernel: CompiledKernel, because: str, **options: Any) -> CompiledKernel:
    """Compile the source of a kernel with some options changed, because a launch of it needs that.

    Raises LaunchError where it was made of a text that they do not change, StrictError where no launch may compile.
    """
    found, backend = kernel.metadata, get_backend(kernel.metadata.target)
    changed = backend.make_options({**found.options, **options})
    check = partial(_refuse_to_compile, because)
    made = compile_with(backend, _source_of(kernel), found.target, changed, found.symbol, before_stages=check)
    if "may_alias" in options and made.metadata.apart:
        raise LaunchError(f"{because}, and the text that it was compiled of relies on their being apart")
    if "many_programs" in options and made.metadata.most_programs is not None:
        raise LaunchError(f"{because}, and the text that it was compiled of relies on that")
    if "plain_loads" in options and any(one.is_inferred for one in made.metadata.tensor_maps):
        raise LaunchError(f"{because}; the text that it was compiled of relies on that")
    made.metadata = replace(made.metadata, params=found.params)  # a text has no constexprs, which launches pass
    return made


def _source_of(kernel: CompiledKernel) -> ASTSource | IRSource:
    """What it was compiled of; of one that was pickled without its Python function the tile IR."""
    is_there = not isinstance(kernel.src, ASTSource) or kernel.src.fn.fn is not None
    return kernel.src if is_there else IRSource.from_text(kernel.asm["ttir"], "ttir")


def _refuse_to_compile(because: str) -> None:
    if settings.strict:
        raise StrictError(f"{because}: a launch would compile it for that, and DEUTERON_STRICT says that none may")


def unit_and_key(
    backend: Backend,
    source: ASTSource | IRSource,
    target: Target,
    options: Any,
    symbol: str | None = None,
    is_portable: bool = False,
) -> tuple[Unit, str]:
    """What is to be compiled, before its source has been looked at, and its key in the cache."""
    path_of = _import_path if is_portable else str
    unit = Unit("", symbol or "", target, options, path_of=path_of, disabled=settings.disabled_passes)
    asked = (unit.symbol, unit.disabled, is_portable)
    return unit, with_inspection(cache_key(source.fingerprint(), target, backend.fingerprint(target), options, *asked))


def _file_name(source: ASTSource | IRSource) -> str:
    """What Triton's programs expect the files of a kernel to be called: as the Python function, or the file."""
    return source.fn.__name__ if isinstance(source, ASTSource) else Path(source.file).stem


def _tell_listener(source: ASTSource | IRSource, kernel: CompiledKernel, look_up: float, total: float) -> None:
    """Call `knobs.compilation.listener` with what was compiled and how long it took, in seconds."""
    took = {} if kernel.is_cached else kernel.stage_times
    first = look_up + took.get("source", 0.0)
    stages = [(name, _microseconds(time)) for name, time in took.items() if name != "source"]
    rest = 0.0 if kernel.is_cached else total - look_up - sum(took.values())
    times = knobs.CompileTimes(_microseconds(first), stages, 0 if kernel.is_cached else _microseconds(rest))
    metadata = {**vars(kernel.metadata), **kernel.metadata.options, "hash": kernel.hash}
    knobs.compilation.listener(
        src=source, metadata=metadata, metadata_group=kernel.asm, times=times, cache_hit=kernel.is_cached
    )


def _microseconds(seconds: float) -> int:
    return max(1, round(seconds * 1e6))


def _import_path(file: str) -> str:
    from deuteron.ir.location import import_path  # deferred: brings xDSL

    return import_path(file)


def _dump_folder(key: str) -> Path | None:
    return settings.dump_dir / key if settings.dump_dir else None


def _dump_all(folder: Path, kernel: CompiledKernel) -> None:
    for name, text in kernel.asm.items():
        dump(folder, kernel.name, name, text)


def _run_stages(backend: Backend, source: ASTSource | IRSource, unit: Unit, folder: Path | None) -> Entry:
    hook = knobs.runtime.add_stages_inspection_hook
    is_looked_into = hook is not None or settings.override_dir is not None
    if isinstance(source, IRSource) and source.stage == "llir" and not is_looked_into:
        entry = _text_isolated(source, unit, folder)
        if entry is not None:
            return entry
    is_isolated = settings.isolate and isinstance(source, ASTSource) and folder is None and not is_looked_into
    with _garbage_kept():
        walk = begin_walk(backend, source, unit, folder)
        if hook is not None:
            walk.inspected = InspectedStages(hook, walk.stages, walk.unit)
        return (_isolated(walk) if is_isolated else None) or completed(walk)


def _isolated(walk: Walk) -> Entry | None:
    from deuteron.compiler.isolated import compile_isolated  # deferred: it is asked for seldom

    return compile_isolated(walk)


def _text_isolated(source: IRSource, unit: Unit, folder: Path | None) -> Entry | None:
    """Of LLVM IR, whose parser and verifier may end the process as all that follows may."""
    from deuteron.compiler.isolated import compile_text_isolated  # deferred: of texts only

    return compile_text_isolated(source, unit, folder)


def completed(walk: Walk) -> Entry:
    """What all stages make, from where the walk begins."""
    with _garbage_kept():
        walk.run()
    texts = {stage.name: walk.texts[stage.name] for stage in walk.stages if stage.name in walk.texts}
    return Entry(walk.unit.metadata(walk.times), texts)


def begin_walk(backend: Backend, source: ASTSource | IRSource, unit: Unit, folder: Path | None = None) -> Walk:
    """A compile that has what its first stage is given, or the text of a later one, and has run none."""
    if not isinstance(source, ASTSource):
        return _walk_from_text(backend, source, unit, folder)
    unit = unit.of_kernel(source.name, source.params)
    walk = Walk(backend.stages, unit, folder)
    walk.begin(partial(_lower, source, unit))
    return walk


def rehearse(source: ASTSource, target: Target) -> None:
    """Do of a compile what makes no machine code, for what it imports: the next one finds it there."""
    backend = get_backend(target)
    with _garbage_kept():
        walk = begin_walk(backend, source, Unit("", "", target, backend.make_options({})))
        for stage in walk.stages:
            if stage.parse is not None:
                walk.run_stage(stage)


@contextmanager
def _garbage_kept() -> Iterator[None]:
    """Collect no garbage: a compile makes little, and looking for it takes up to a tenth of the time.

    The first one imports some 600 modules, which stay: looking at what they brought, once as young objects and once
    more as middle-aged ones, took 50 ms after it and 40 ms in the next compile.
    """
    if not gc.isenabled():
        yield
        return
    num_modules = len(sys.modules)
    gc.disable()
    try:
        yield
    finally:
        if len(sys.modules) > num_modules:
            _call_all_old()
        gc.enable()


def _call_all_old() -> None:
    """Let all objects that there are be of the oldest generation, but for those that a program has frozen."""
    if gc.get_freeze_count() == 0:
        gc.freeze()
        gc.unfreeze()


def _lower(source: ASTSource, unit: Unit) -> Any:
    from deuteron.frontend import Asked, lower_function  # deferred: brings xDSL, which a cache hit does not need

    types = (source.signature, source.constexprs, source.attrs)
    return lower_function(source.fn, *types, unit.target, source.name, Asked.of(unit.options))


def _walk_from_text(backend: Backend, source: IRSource, unit: Unit, folder: Path | None) -> Walk:
    stage = find_stage(backend.stages, source.stage)
    if stage.describe is None:
        from deuteron.compiler.made_for import with_embedded  # deferred: of texts only

        unit = with_embedded(unit, stage, source.text, source.file)
    walk = Walk(backend.stages, unit, folder)
    walk.begin_at(stage, source.text, source.file)
    return walk


def _kernel(
    backend: Backend, source: ASTSource | IRSource, entry: Entry, options: Any, key: str, is_cached: bool
) -> CompiledKernel:
    metadata = entry.metadata
    unit = Unit(metadata.name, metadata.symbol, metadata.target, options, metadata.params)
    on_demand = {
        stage.name: partial(_text_on_demand, backend, stage, entry.texts[stage.input], unit)
        for stage in backend.stages
        if stage.on_demand and stage.input in entry.texts
    }
    return CompiledKernel(source, MetadataGroup(entry.texts, on_demand, metadata, backend, is_cached), key)


def _text_on_demand(backend: Backend, stage: Stage, input_text: str | bytes, unit: Unit) -> str | bytes:
    walk = Walk(backend.stages, unit, None)
    before = next(other for other in backend.stages if other.name == stage.input)
    if before.parse is None:  # code, of which the text is the product
        walk.products[before.name] = walk.texts[before.name] = input_text
    else:
        walk.begin_at(before, input_text, f"<{stage.input}>")
    walk.run_stage(stage)
    return walk.texts[stage.name]
