"""Names of files and of C functions, and the hash that keeps the kernels of one name apart.

    parts = hash_parts(["*fp32", "i32", "128"], 4, 1, 1)  ["*fp32", "i32", "128", "warps4xstages1"]
    signature_hash(parts)                                  "2a9b77f0": of the parts joined by spaces
    suffix(signature.arguments)                            "01d2c" for *fp32, i32:16, i32:1
    function_name("add", "2a9b77f0", "01d2c")              "add_2a9b77f0_01d2c"
    file_base(Path("aot/add"), "2a9b77f0", "01d2c")        aot/add.2a9b77f0_01d2c

More than one block a program makes that part `warps4xstages1xctas2`.
What differs from the defaults (`-t`, further options) is one more part each, so that no two differing kernels share a
name. The names are those of Triton's tools.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from deuteron.aot.c_library import C_HEADERS, C_LIBRARY, c_macros
from deuteron.errors import UsageError
from deuteron.language.functions.function import ascii_name

if TYPE_CHECKING:
    from deuteron.aot.signature import Argument

# Names that the emitted functions use for parameters of their own.
OWN_PARAMETERS = ("stream", "algo_id", "reason")
_HINT_LETTERS = {None: "", 1: "c", 16: "d"}
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OF_COMPILERS = re.compile(r"_[A-Z_]")  # names that begin so are compilers' own

# Of C99, C11, C23, GNU's C and C++20, with the macros that compilers define; those of headers are in c_library.
_RESERVED_WORDS = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class
    compl concept const consteval constexpr constinit const_cast continue co_await co_return co_yield decltype
    default delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline int
    long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public register
    reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast struct switch
    template this thread_local throw true try typedef typeid typename typeof typeof_unqual union unsigned using virtual
    void volatile wchar_t while xor xor_eq linux main unix i386 errno
    int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t size_t intptr_t uintptr_t ptrdiff_t std
"""
_WORDS = frozenset(_RESERVED_WORDS.split())


def hash_parts(
    elements: Iterable[str], num_warps: int, num_stages: int, num_ctas: int, extras: Iterable[str] = ()
) -> list[str]:
    """What a kernel's hash is of: the elements of its signature, how it is launched, what else was asked for."""
    cluster = f"xctas{num_ctas}" if num_ctas > 1 else ""
    return [*elements, f"warps{num_warps}xstages{num_stages}{cluster}", *extras]


def signature_hash(parts: Iterable[str]) -> str:
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()[:8]


def suffix(arguments: Sequence[Argument]) -> str:
    """The index of every argument that is no constexpr, with `c` where it is always 1, `d` where divisible by 16."""
    return "".join(f"{arg.index}{_HINT_LETTERS[arg.hint]}" for arg in arguments if not arg.is_constexpr)


def function_name(out_name: str, hash: str, suffix: str) -> str:
    return f"{out_name}_{hash}_{suffix}"


def file_base(out_path: Path, hash: str, suffix: str) -> Path:
    """The path of a kernel's files less `.c`, `.h`, `.json`. A suffix that `out_path` has is replaced, as in Triton."""
    return out_path.with_name(f"{out_path.stem}.{hash}_{suffix}")


def identifier(text: str) -> str:
    """The text with an underscore for whatever a C name cannot have."""
    return "".join(char if char.isascii() and char.isalnum() else "_" for char in text)


def value_identifier(text: str) -> str:
    """A value as part of a C name: `m3` for -3, `0p5` for 0.5, `relu` for 'relu'; other signs are underscores."""
    text = re.sub(r"-(?=[\d.])", "m", text)
    return identifier(re.sub(r"(?<=\d)\.(?=\d)", "p", text)).strip("_")


def is_function_name(name: str) -> bool:
    """Whether a C function can be called that, in any program."""
    is_taken = _is_reserved(name) or name in C_LIBRARY or name in OWN_PARAMETERS
    return not is_taken and not _is_prefix_taken(name) and _IDENTIFIER.fullmatch(name) is not None


def is_namespace(name: str) -> bool:
    """Whether C++ can have a namespace of that name, such as `acme::norms`, beside the headers of the C library."""
    outer, *inner = name.split("::")
    return is_function_name(outer) and all(_IDENTIFIER.fullmatch(one) and not _is_reserved(one) for one in inner)


def check_header_name(name: str) -> None:
    """Raise UsageError where `name.h` would be included for a header of the C library, or of CUDA."""
    if name in C_HEADERS:
        raise UsageError(f"'{name}.h' would be included in the place of <{name}.h>: choose another name than '{name}'")


def check_function_name(name: str) -> None:
    """Raise UsageError unless a C function can be called that."""
    if not is_function_name(name):
        raise UsageError(f"{no_function_name(name)}: give another one with --out-name")


def no_function_name(name: str) -> str:
    """What is said of a name that `is_function_name` refuses."""
    why = ", as the C library has one" if name in C_LIBRARY else ""
    return f"'{name}' cannot be the name of a C function{why}"


def parameter_names(names: Sequence[str], taken: Iterable[str]) -> tuple[str, ...]:
    """Names for the parameters of a C function: those given, changed where C, C++ or `taken` forbids them."""
    used = set(taken)
    result = []
    for name in names:
        name = ascii_name(name)
        while name in used or _is_reserved(name) or _is_prefix_taken(name):
            name = f"p{name}" if _is_prefix_taken(name) else f"{name}_"
        used.add(name)
        result.append(name)
    return tuple(result)


def _is_reserved(name: str) -> bool:
    return name in _WORDS or name in c_macros()


def _is_prefix_taken(name: str) -> bool:
    """Whether it begins as the names of the headers that are written, or as those of compilers."""
    return name.startswith(("deuteron_", "DEUTERON_")) or _OF_COMPILERS.match(name) is not None
