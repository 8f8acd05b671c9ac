"""Builds a library: compiles what is stale, writes its files, and makes objects and libraries of them.

    built = build_library(library, Path("build/norms"), BuildOptions(processes=2))
    built.compiled, built.changed          how many kernels were compiled; whether a file was written

If anything fails, or the process is killed, the folder is what it was. With `check` nothing is written: a UsageError
says what is stale.
"""

from __future__ import annotations

import multiprocessing
import shlex
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import deuteron
from deuteron.aot.metadata import record_of
from deuteron.backend.llvm.targets import architecture_of
from deuteron.compiler.locks import locked
from deuteron.errors import UsageError, not_written
from deuteron.library import objects
from deuteron.library.declaration import Library
from deuteron.library.folder import recover, replaced_folder
from deuteron.library.manifest import Entry, Manifest, read_manifest
from deuteron.library.staleness import digest_of_content, digest_of_file, digest_of_text, key_of
from deuteron.library.variants import Variant, variants_of
from deuteron.tracebacks import api_boundary

if TYPE_CHECKING:
    from deuteron.library.report import Row
    from deuteron.library.worker import Compiled, Mistake

MAX_SHOWN = 10


@dataclass(frozen=True)
class BuildOptions:
    """How to build. `processes` of None is one for each processor, `executor` names what else compiles; `start(n)` is
    told how much there is to do, `advance` of each part that is done; `werror` names findings that are errors; without
    `with_objects` only sources are made.
    """

    processes: int | None = None
    executor: str | None = None
    check: bool = False
    with_objects: bool = True
    werror: frozenset[str] = frozenset()
    start: Callable[[int], None] = lambda total: None
    advance: Callable[[str], None] = lambda what: None


@dataclass(frozen=True)
class Built:
    """What a build did, and what there is now; `seconds` are those of each compile, by the identity of the variant."""

    manifest: Manifest
    seconds: Mapping[str, float]
    compiled: int
    changed: bool
    has_objects: bool
    sources: tuple[str, ...]

    @property
    def rows(self) -> list[Row]:
        """What became of each kernel."""
        from deuteron.library.report import rows_of  # deferred: most builds say nothing of it

        return rows_of(self.manifest, self.seconds)


@dataclass
class _State:
    """A build under way: the variants, what is known of each by its identity, the texts of new files by name."""

    library: Library
    out: Path
    options: BuildOptions
    variants: list[Variant]
    entries: dict[str, Entry]
    earlier: Manifest | None
    texts: dict[str, str | bytes] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def stale(self) -> list[Variant]:
        return [variant for variant in self.variants if variant.identity not in self.entries]


@api_boundary
def build_library(library: Library, out: Path, options: BuildOptions | None = None) -> Built:
    """Build a library into a folder; raises UsageError, having left the folder as it was."""
    options = options or BuildOptions()
    if multiprocessing.current_process().daemon:  # such as those that compile, which would wait for who waits for them
        raise UsageError(_why_not_here(library))
    if options.check:
        return _build(library, out, options)
    try:
        with locked(out.parent):
            return _build(library, out, options)
    except OSError as error:
        raise not_written(out, error) from None


def _why_not_here(library: Library) -> str:
    files = sorted({str(kernel.source or kernel.module) for kernel in library.kernels})
    return (
        f"library '{library.name}' is built in a process that may start none, such as one that imports "
        f"{', '.join(files)} to compile kernels: where a file of kernels builds the library, let it do so under "
        '`if __name__ == "__main__":`'
    )


def _build(library: Library, out: Path, options: BuildOptions) -> Built:
    state = _state_of(library, out, options)
    if options.check:
        _check(state)
    else:
        recover(out)
    compiler = objects.find_compiler() if options.with_objects and not options.check else None
    if _is_up_to_date(state, compiler):
        built = Built(state.earlier, {}, 0, False, compiler is not None, _sources(state.earlier))
        _check_findings(built, options)
        return built
    stale = state.stale
    options.start(len(stale) + (0 if compiler is None else len(state.variants) + 1 + library.shared))
    _compile(state, stale)
    manifest = _manifest(state)
    built = Built(manifest, state.seconds, len(stale), True, compiler is not None, _sources(manifest))
    _check_findings(built, options)
    if compiler is not None:
        _check_architecture(manifest, compiler)
    _write(state, manifest, compiler)
    return built


def _check_architecture(manifest: Manifest, compiler: objects.Compiler) -> None:
    """Warn of objects for processors that there is no kernel for, as of a compiler for other machines."""
    targets = [record.target.partition(":")[2] for record in manifest.records if record.backend == "cpu"]
    known, ours = compiler.architecture, {architecture_of(target) for target in targets}
    if not known or not ours or known in ours:
        return
    command = shlex.join(compiler.command)
    warnings.warn(
        f"library '{manifest.name}' has kernels for {', '.join(sorted(ours))}, and `{command}` makes objects for "
        f"{known}: no call will find a kernel for its processor. Say `--architecture {known}`",
        RuntimeWarning,
        stacklevel=2,
    )


def _state_of(library: Library, out: Path, options: BuildOptions) -> _State:
    variants = variants_of(library)
    earlier = _earlier(library, out, options)
    known = {entry.identity: entry for entry in earlier.entries} if earlier else {}
    entries = {
        variant.identity: known[variant.identity]
        for variant in variants
        if variant.identity in known and _is_current(variant, known[variant.identity], library.root, out)
    }
    return _State(library, out, options, variants, entries, earlier)


def _earlier(library: Library, out: Path, options: BuildOptions) -> Manifest | None:
    """What was built before; what cannot be read is not there, unless it is to be checked."""
    try:
        return read_manifest(out / f"{library.name}.json")
    except UsageError:
        if options.check:
            raise
        return None


def _is_current(variant: Variant, entry: Entry, root: Path, out: Path) -> bool:
    is_same = key_of(variant, entry.sources.now(root)) == entry.key
    return is_same and all(digest_of_file(out / name) == digest for name, digest in entry.files.items())


def _library_key(state: _State, entries: Mapping[str, Entry]) -> str:
    """Of all that the library's own files depend on."""
    library = state.library
    keys = (f"{entries[variant.identity].key} {variant.overload}" for variant in state.variants)
    tuned = (digest_of_file(library.root / kernel.tuned) for kernel in library.kernels if kernel.tuned)
    return digest_of_text(
        "\0".join([library.name, library.cxx_namespace, str(library.shared), str(library.torch), *keys, *tuned])
    )


def _declared(library: Library) -> dict[str, str]:
    return {name: digest_of_file(library.root / name) for name in library.declaring_files}


def _is_up_to_date(state: _State, compiler: objects.Compiler | None) -> bool:
    earlier = state.earlier
    if earlier is None or state.stale or len(earlier.entries) != len(state.variants):
        return False
    if earlier.key != _library_key(state, state.entries) or earlier.declared != _declared(state.library):
        return False
    if any(digest_of_file(state.out / name) != digest for name, digest in earlier.files.items()):
        return False
    return compiler is None or objects.is_built(compiler, _objects_request(state, state.out, earlier))


def _check(state: _State) -> None:
    """Raise UsageError, with what is stale, unless all sources are up to date."""
    if _is_up_to_date(state, None):
        return
    stale = [variant.describe() for variant in state.stale]
    name = state.library.name
    if state.earlier is None:
        raise UsageError(f"library '{name}' is not built: there is no '{state.out / name}.json'")
    what = _listed(stale) if stale else "its own files, or the list of its kernels"
    raise UsageError(f"library '{name}' in '{state.out}' is stale: {what}. Run `deuteron build {name}`")


def _listed(texts: Sequence[str], most: int = MAX_SHOWN) -> str:
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return "; ".join(texts[:most]) + more


def _compile(state: _State, stale: Sequence[Variant]) -> None:
    """Compile what is stale; raises UsageError with all that is wrong, each once."""
    if not stale:
        return
    from deuteron.library.executors import executor_of  # deferred: brings the compiler
    from deuteron.library.worker import Compiled

    mistakes: dict[str, Mistake] = {}
    warned: dict[str, None] = {}  # of every variant and in every process, which is the same for most
    compile_all = executor_of(state.options.executor, state.options.processes)
    for variant, outcome in compile_all(stale, state.library.root):
        state.options.advance(variant.describe())
        if isinstance(outcome, Compiled):
            _take(state, variant, outcome)
            warned.update(dict.fromkeys(outcome.warnings))
        else:
            mistakes[variant.identity] = outcome
    for text in warned:
        warnings.warn(text, RuntimeWarning, stacklevel=2)
    if mistakes:
        raise _failure(state.library, [(v, mistakes[v.identity]) for v in stale if v.identity in mistakes])


def _failure(library: Library, mistakes: Sequence[tuple[Variant, Mistake]]) -> UsageError:
    """All that is wrong, in the order of the declaration, with the variants that it is wrong of."""
    found: dict[str, list[str]] = {}
    for variant, mistake in mistakes:
        place = library.kernels[variant.index].place(*mistake.keys) if mistake.keys else None
        found.setdefault(str(UsageError(mistake.message, place)), []).append(variant.describe())
    texts = [f"{text}\n  in {_listed(variants, 2)}" for text, variants in found.items()]
    return UsageError(f"library '{library.name}' was not built\n\n" + "\n\n".join(texts[:MAX_SHOWN]))


def _take(state: _State, variant: Variant, outcome: Compiled) -> None:
    state.texts.update(outcome.files)
    state.seconds[variant.identity] = outcome.seconds
    state.entries[variant.identity] = Entry(
        identity=variant.identity,
        key=key_of(variant, outcome.sources),
        overload=variant.overload,
        code_bytes=outcome.code_bytes,
        sources=outcome.sources,
        files={name: digest_of_content(text) for name, text in outcome.files.items()},
        record=record_of(outcome.record, state.out),
    )


def _manifest(state: _State) -> Manifest:
    """The manifest, with the texts of the library's own files made."""
    from deuteron.library.texts import own_files  # deferred: where nothing is to do it is not needed

    library = state.library
    entries = tuple(state.entries[variant.identity] for variant in state.variants)
    own = own_files(library, state.variants, entries, lambda file: _content(state, file))
    state.texts.update(own)
    return Manifest(
        name=library.name,
        namespace=library.cxx_namespace,
        deuteron=deuteron.__version__,
        key=_library_key(state, state.entries),
        declared=_declared(library),
        files={file: digest_of_content(text) for file, text in own.items()},
        entries=entries,
    )


def _check_findings(built: Built, options: BuildOptions) -> None:
    if not options.werror:
        return
    from deuteron.library.report import findings  # deferred, as above

    if found := findings(built.rows, options.werror):
        raise UsageError("findings that are errors by --werror:\n  " + "\n  ".join(found))


def _sources(manifest: Manifest) -> tuple[str, ...]:
    """All files that the kernels were read from, relative to the project."""
    return tuple(sorted({name for entry in manifest.entries for name in entry.sources.files}))


def _objects_request(state: _State, folder: Path, manifest: Manifest) -> objects.Request:
    options, name = state.options, state.library.name
    sources = {
        file: "".join(entry.files.values())
        for entry in manifest.entries
        for file in entry.files
        if PurePosixPath(file).suffix == ".c"
    }
    own = {f"{name}.c": manifest.files[f"{name}.c"] + manifest.files[f"{name}.h"]}
    processes = options.processes or 2
    return objects.Request(
        name, folder, state.out, {**own, **sources}, state.library.shared, processes, options.advance
    )


def _write(state: _State, manifest: Manifest, compiler: objects.Compiler | None) -> None:
    """Put the new output in the place of the old one, as a whole."""
    name = state.library.name
    owned = {f"{name}.json", *(state.earlier.all_files if state.earlier else ()), *_built_files(state)}
    with replaced_folder(state.out, owned) as staging:
        for file in manifest.all_files:
            (staging / file).parent.mkdir(parents=True, exist_ok=True)
            (staging / file).write_bytes(_content(state, file))
        (staging / f"{name}.json").write_text(manifest.to_json())
        if compiler is not None:
            objects.build_objects(compiler, _objects_request(state, staging, manifest))


def _content(state: _State, file: str) -> bytes:
    """What a file has: that which was made now, or that of the last build."""
    made = state.texts.get(file)
    if made is None:
        return (state.out / file).read_bytes()
    return made.encode() if isinstance(made, str) else made


def _built_files(state: _State) -> set[str]:
    """What is the build's own whatever the manifest says, which may be lost or of another version."""
    found = (path for folder in ("objects", "kernels", "raw") for path in state.out.glob(f"{folder}/**/*"))
    made = (path.relative_to(state.out).as_posix() for path in found)
    libraries = [*objects.library_files(state.library.name, True)]
    return {*made, *libraries}
