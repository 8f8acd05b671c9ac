"""What emitted functions are called in object code.

    symbol("2b8c01d4f7aa", "fmha_default")         deuteron_2b8c01d4f7aa_fmha_default
    declaration_of("int f(void)", "f", digest)     DEUTERON_API
                                                   int f(void)
                                                       DEUTERON_SYMBOL("deuteron_2b8c01d4f7aa_f");
    plain_names(["f"], digest)                     DEUTERON_PLAIN(f, "deuteron_2b8c01d4f7aa_f")

Two libraries may have a kernel of one name and signature that were made from different sources: the digest keeps them
apart. Functions that libc has too, such as `read`, get no plain name, which would replace libc's in the whole program.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

_LIBC_NAMES = Path(__file__).with_name("libc_names.txt")


def digest_of(parts: Iterable[str]) -> str:
    """Twelve hex digits."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


def symbol(digest: str, function: str) -> str:
    return f"deuteron_{digest}_{function}"


def declaration_of(head: str, function: str, digest: str) -> str:
    return f'DEUTERON_API\n{head}\n    DEUTERON_SYMBOL("{symbol(digest, function)}");'


def plain_names(functions: Iterable[str], digest: str) -> str:
    """The lines that a shared library has the plain names by."""
    kept = [function for function in functions if function not in libc_names()]
    return "\n".join(f'DEUTERON_PLAIN({function}, "{symbol(digest, function)}")' for function in kept)


@cache
def libc_names() -> frozenset[str]:
    """The functions of glibc and its libm."""
    return frozenset(_LIBC_NAMES.read_text().split())
