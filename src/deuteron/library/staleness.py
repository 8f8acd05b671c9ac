"""Whether what was compiled is still what a compile would give: by the content of all that it was read from.

    sources = sources_of(dependencies, root)     Sources({"kernels/norms.py": "5e8f..."}, {"liger_kernel": "0.5.2"})
    key_of(variant, sources.now(root))           hex digits; another key is another result

A variant's key has what is asked for, the files of the project that its module imports, the versions of installed
packages that it imports, and those of Deuteron and its tools. Times of files have no part in it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from deuteron.aot.targets import select_target
from deuteron.backend import get_backend
from deuteron.library.variants import Variant
from deuteron.settings import settings
from deuteron.toolchain import toolchain

_INSTALLED = ("site-packages", "dist-packages")
_ABSENT = "absent"


@dataclass(frozen=True)
class Sources:
    """What a kernel was read from: digests of files, relative to the project, and versions of installed packages."""

    files: dict[str, str] = field(default_factory=dict)
    packages: dict[str, str] = field(default_factory=dict)

    def now(self, root: Path) -> Sources:
        """The same files and packages as they are at present."""
        files = {name: digest_of_file(root / name) for name in self.files}
        return Sources(files, {name: _version(name) for name in self.packages})


def sources_of(dependencies: Iterable[Path], root: Path) -> Sources:
    files, packages = {}, {}
    for path in dependencies:
        if package := _installed_package(path):
            packages[package] = _version(package)
        else:
            files[_relative(path, root)] = digest_of_file(path)
    return Sources(dict(sorted(files.items())), dict(sorted(packages.items())))


def key_of(variant: Variant, sources: Sources) -> str:
    """Hex digits that are equal where a compile would give the same."""
    parts = [variant.identity, *_built_with(variant), *versions(variant.target)]
    parts += [f"{name}={value}" for group in (sources.files, sources.packages) for name, value in group.items()]
    return hashlib.sha256("\0".join(parts).encode(errors="surrogateescape")).hexdigest()


def _built_with(variant: Variant) -> list[str]:
    return [name for name in ("is_checked", "has_lines") if getattr(variant, name)]


@cache
def versions(target: str) -> tuple[str, ...]:
    """Those of all that takes part in a compile for a target, and what the environment says of it."""
    resolved = select_target(target)
    asked = (settings.option_defaults, settings.disabled_passes, str(settings.override_dir))
    return (*toolchain(), get_backend(resolved).fingerprint(resolved), repr(asked))


def digest_of_file(path: Path) -> str:
    """SHA-256 of what a file has; read once in a process, and again when it has changed."""
    try:
        found = path.stat()
        return _digest_of(path, (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns))
    except OSError:
        return _ABSENT


@cache
def _digest_of(path: Path, state: tuple[int, ...]) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def digest_of_content(content: str | bytes) -> str:
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


def digest_of_text(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def named(path: Path) -> Path:
    """The absolute path of a file under its own name, also where that is a link, as build systems lay out sources."""
    return path.parent.resolve() / path.name


def _relative(path: Path, root: Path) -> str:
    return Path(*_steps(named(path), root.resolve())).as_posix()


def _steps(path: Path, root: Path) -> list[str]:
    """From a folder to a file, up where it has to be."""
    common = 0
    while common < len(root.parts) and path.parts[common : common + 1] == root.parts[common : common + 1]:
        common += 1
    return [".."] * (len(root.parts) - common) + list(path.parts[common:])


def _installed_package(path: Path) -> str | None:
    """The package of site-packages that a file belongs to."""
    for i, part in enumerate(path.parts[:-1]):
        if part in _INSTALLED:
            return path.parts[i + 1].removesuffix(".py")
    return None


@cache
def _version(package: str) -> str:
    """Of an installed package; where it has no metadata of that name, of the distribution that has it."""
    from importlib import metadata  # deferred: 15 ms

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        names: list[Any] = metadata.packages_distributions().get(package, [])
        return metadata.version(names[0]) if names else _ABSENT
