"""Objects and libraries out of the C of a library, by the system's compiler: `libnorms.a`, `libnorms.so`, `norms.pc`.

    compiler = find_compiler()                        that of $CC, or cc, gcc, clang, or Zig's; None where there is none
    build_objects(compiler, Request(...))             compiles what has changed, and makes the libraries anew

Zig's compiler comes by pip (ziglang), so that no system's compiler is needed. It is told not to use what only this
processor has. Nothing of this is in the manifest: another compiler gives other bytes. Which objects are up to date
is in `objects/state.json`, by the content of what they were made from.
"""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from deuteron.backend.llvm.targets import architecture_called
from deuteron.errors import UsageError
from deuteron.json_fields import read_json
from deuteron.library.staleness import digest_of_text
from deuteron.settings import get_variable

FLAGS = ("-O2", "-fPIC")
# What a static library is linked into exports none of its functions: a plug-in that has another version calls its own.
STATIC_FLAGS = ("-DDEUTERON_HIDDEN",)
# The library's functions choose and call: `-O2` took 2 to 3 times as long for 0.5 ns less of a call (GCC 12).
FUNCTIONS_FLAGS = ("-O1",)
STATE = "objects/state.json"
_ZIG = (sys.executable, "-m", "ziglang")


@dataclass(frozen=True)
class Compiler:
    """A C compiler as its command, with what it says of its version."""

    command: tuple[str, ...]
    version: str

    @property
    def architecture(self) -> str:
        """Of the processors that it makes code for; nothing where it does not say."""
        command = [*self.command, "-dumpmachine"]
        said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        return architecture_called(said.partition("-")[0]) if "-" in said else ""


@dataclass(frozen=True)
class Request:
    """What to build in a folder. `sources` are its C files by name, with the digest of all that each is made from;
    `earlier` is the folder of the last build, whose objects are taken where they are up to date.
    """

    name: str
    folder: Path
    earlier: Path
    sources: dict[str, str]
    shared: bool
    processes: int
    advance: Callable[[str], None]


def find_compiler() -> Compiler | None:
    """The system's C compiler; raises UsageError where $CC names none that runs."""
    command = _compiler_command()
    if command is None:
        return None
    try:
        said = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise UsageError(f"the C compiler `{shlex.join(command)}` does not run: {error}") from None
    return Compiler(command, said.splitlines()[0] if said else "")


def _compiler_command() -> tuple[str, ...] | None:
    if asked := _asked("CC"):
        return asked
    found = next((name for name in ("cc", "gcc", "clang") if shutil.which(name)), None)
    if found:
        return (found,)
    return (*_ZIG, "cc", "-mcpu=baseline") if find_spec("ziglang") else None


def _archiver_command() -> tuple[str, ...]:
    if asked := _asked("AR"):
        return asked
    found = next((name for name in ("ar", "llvm-ar") if shutil.which(name)), None)
    if found:
        return (found,)
    if find_spec("ziglang"):
        return (*_ZIG, "ar")
    raise UsageError("no archiver was found for the static library: install binutils or ziglang, or name one with AR")


def _asked(variable: str) -> tuple[str, ...]:
    """The command that the environment names, if any."""
    try:
        return tuple(shlex.split(get_variable(variable) or ""))
    except ValueError as error:
        raise UsageError(f"{variable} is no command: {error}, in {get_variable(variable)!r}") from None


def library_files(name: str, shared: bool) -> list[str]:
    return [f"lib{name}.a", *([f"lib{name}.so"] if shared else []), f"{name}.pc"]


def is_built(compiler: Compiler, request: Request) -> bool:
    """Whether the libraries are there, of these sources by this compiler."""
    made = all((request.earlier / file).is_file() for file in library_files(request.name, request.shared))
    return made and _state(request.earlier) == _wanted(compiler, request)


def build_objects(compiler: Compiler, request: Request) -> list[str]:
    """Build them; returns the names of all files that there are then. Raises UsageError with what the compiler says."""
    (request.folder / "objects").mkdir()
    units = _units(request)
    known, wanted = _state(request.earlier), _wanted(compiler, request)
    with ThreadPoolExecutor(request.processes) as pool:
        objects = list(pool.map(partial(_object, compiler, request, known, wanted), units))
    _archive(request, [unit.object for unit in units if unit.is_static])
    if request.shared:
        shared = [unit.object for unit in units if unit.is_shared]
        command = [*compiler.command, "-shared", "-o", f"lib{request.name}.so", *shared, "-lpthread", "-ldl"]
        _run(command, request.folder)
    (request.folder / f"{request.name}.pc").write_text(_pkg_config(request.name))
    (request.folder / STATE).write_text(json.dumps(wanted, indent=1) + "\n")
    return [*objects, STATE, *library_files(request.name, request.shared)]


@dataclass(frozen=True)
class _Unit:
    """An object, relative to the folder, with its source, and the libraries that it is for."""

    source: str
    object: str
    flags: tuple[str, ...] = ()
    is_static: bool = True
    is_shared: bool = True


def _units(request: Request) -> list[_Unit]:
    """The source that has the library's functions gives an object for each library: the names in them differ."""
    own = f"{request.name}.c"
    kernels = [_Unit(source, f"objects/{Path(source).stem}.o") for source in request.sources if source != own]
    functions = [_Unit(own, f"objects/{request.name}.o", FUNCTIONS_FLAGS + STATIC_FLAGS, is_shared=False)]
    if request.shared:
        functions.append(_Unit(own, f"objects/{request.name}.shared.o", FUNCTIONS_FLAGS, is_static=False))
    return [*functions, *kernels]


def _wanted(compiler: Compiler, request: Request) -> dict[str, str]:
    """What every object is to be made from."""
    command = " ".join([*compiler.command, *FLAGS, compiler.version])
    return {
        unit.object: digest_of_text(f"{command} {' '.join(unit.flags)} {request.sources[unit.source]}")
        for unit in _units(request)
    }


def _state(folder: Path) -> dict[str, str]:
    """What the objects in a folder were made from; nothing where that cannot be read."""
    try:
        return read_json((folder / STATE).read_text())
    except (OSError, ValueError):
        return {}


def _object(compiler: Compiler, request: Request, known: dict[str, str], wanted: dict[str, str], unit: _Unit) -> str:
    """Make an object, or take that of the last build."""
    earlier = request.earlier / unit.object
    if known.get(unit.object) == wanted[unit.object] and earlier.is_file():
        shutil.copy2(earlier, request.folder / unit.object)
    else:
        _run([*compiler.command, *FLAGS, *unit.flags, "-c", unit.source, "-o", unit.object], request.folder)
    request.advance(unit.object)
    return unit.object


def _archive(request: Request, objects: Iterable[str]) -> None:
    _run([*_archiver_command(), "rcsD", f"lib{request.name}.a", *objects], request.folder)


def _run(command: Sequence[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        raise UsageError(f"`{shlex.join(command)}` failed:\n{done.stderr.rstrip()}")


def _pkg_config(name: str) -> str:
    return (
        "prefix=${pcfiledir}\n"
        f"Name: {name}\n"
        f"Description: kernels compiled by Deuteron\n"
        "Version: 1\n"
        "Cflags: -I${prefix}\n"
        f"Libs: -L${{prefix}} -l{name}\n"
        "Libs.private: -lpthread -ldl\n"
    )
