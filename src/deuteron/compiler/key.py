"""The key of a compile: what the result depends on, and nothing else.

Source and dependencies, signature, constexprs, attributes, options, passes left out, target (for `native`: the CPU's
name and features), and the versions of everything that takes part. Of Deuteron itself the version is a hash of its own
source files, so that a change to a pass is a new version.
"""

from __future__ import annotations

import hashlib
from typing import Any

from deuteron.options import Target
from deuteron.toolchain import toolchain


def cache_key(
    fingerprint: str,
    target: Target,
    machine: str,
    options: Any,
    symbol: str,
    disabled: tuple[str, ...] = (),
    is_portable: bool = False,
) -> str:
    """64 hex digits. `fingerprint` is the source's, `machine` what the backend says of the machine it compiles for,
    `disabled` names the passes that are left out, `is_portable` says that files are called as Python imports them.
    """
    asked = (repr(options), symbol, ",".join(disabled), str(is_portable))
    parts = (fingerprint, str(target), machine, *asked, *toolchain())
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
