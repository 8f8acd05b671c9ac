"""What launches have compiled, and why; and launches that may not (DEUTERON_STRICT=1).

    for compiled in deuteron.recompiles():
        print(compiled)         add(x_ptr: *fp32:16, n: i32, BLOCK: 128) for cpu:native, 41 ms: n is i32, was i32:16

The reason is how the launch differs from the nearest one that a kernel was there for: the one with the fewest arguments
and options of another kind. Where arrays overlap that the kernel takes to be apart it is that.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from deuteron.compiler import CompiledKernel
from deuteron.errors import StrictError
from deuteron.options import Target
from deuteron.runtime.specialise import Token, is_tuple

MOST_KEPT = 10_000  # a bound on memory, not measured
FIRST = "the first launch"


@dataclass(frozen=True)
class Recompile:
    """A kernel that a launch, or a warm-up, did not find in memory.

    `arguments` and `options` are what it was compiled for, as texts by name; `when` is in seconds since 1970, `seconds`
    what it took, `stage_seconds` the stages of it, empty where the kernel `is_cached`: read from the cache on disk.
    """

    kernel: str
    arguments: dict[str, str]
    options: dict[str, str]
    target: Target
    reason: str
    seconds: float
    stage_seconds: dict[str, float]
    is_cached: bool
    is_warmup: bool
    when: float = field(default_factory=time.time)

    def __str__(self) -> str:
        given = ", ".join(f"{name}: {text}" for name, text in self.arguments.items())
        options = "".join(f", {name}={text}" for name, text in self.options.items())
        how = "read from the cache on disk, " if self.is_cached else ""
        return f"{self.kernel}({given}{options}) for {self.target}, {how}{1e3 * self.seconds:.0f} ms: {self.reason}"


_kept: deque[Recompile] = deque(maxlen=MOST_KEPT)


def recompiles() -> tuple[Recompile, ...]:
    """What was compiled since the process began, or read from the cache on disk, in order; of many the last ones."""
    return tuple(_kept)


class Asked:
    """What a launch needs a kernel for, beside those that are there: by their tokens and options, or `because`."""

    def __init__(
        self,
        kernel: str,
        names: Sequence[str],
        tokens: Sequence[Token],
        options: dict[str, Any],
        known: Iterable[Any],
        because: str = "",
    ):
        self.kernel, self._because = kernel, because
        self.arguments = {name: shown(token) for name, token in zip(names, tokens, strict=True)}
        self.options = {name: repr(value) for name, value in options.items()}
        others = [list(self._differences(names, key[0], dict(key[1]))) for key in known]
        self.nearest = min(others, key=len) if others else None

    def _differences(self, names: Sequence[str], tokens: Sequence[Token], options: dict[str, Any]) -> Iterator[str]:
        before = {name: shown(token) for name, token in zip(names, tokens, strict=True)}
        for name, text in self.arguments.items():
            if text != before[name]:
                yield f"{name} is {text}, was {before[name]}"
        for name in dict.fromkeys((*self.options, *options)):
            text, old = self.options.get(name, "not given"), repr(options[name]) if name in options else "not given"
            if text != old:
                yield f"{name} is {text}, was {old}"

    @property
    def reason(self) -> str:
        if self._because:
            return self._because
        if self.nearest is None:
            return FIRST
        return "; ".join(self.nearest) or "the environment or the source of a function was another"

    def refuse(self) -> None:
        """Raise StrictError."""
        given = ", ".join(f"{name}: {text}" for name, text in {**self.arguments, **self.options}.items())
        near = f"the nearest that there is differs: {self.reason}"
        near = "none has been compiled" if self.nearest is None else near
        raise StrictError(
            f"kernel '{self.kernel}' would be compiled by a launch, and DEUTERON_STRICT says that none may: for "
            f"{given}; {near}. Compile it before: {self.kernel}.warmup(...) or .prepare(...)"
        )

    def note(self, kernel: CompiledKernel, target: Target, seconds: float, is_warmup: bool) -> None:
        """Keep what was compiled for it."""
        stages = {} if kernel.is_cached else dict(kernel.stage_times)
        made = Recompile(
            self.kernel, self.arguments, self.options, target, self.reason, seconds, stages, kernel.is_cached, is_warmup
        )
        _kept.append(made)


def shown(token: Token) -> str:
    """A token as a short text."""
    if isinstance(token, str):
        return token
    if is_tuple(token):
        return f"({', '.join(map(shown, token[2:]))})"
    return _shown_value(*token[1:])


def _shown_value(kind: type, *held: Any) -> str:
    if kind is float:
        return repr(float.fromhex(held[0]))
    if kind is dict:
        return f"{{{', '.join(f'{_shown_value(*key)}: {_shown_value(*value)}' for key, value in held)}}}"
    if kind is set:
        return f"{{{', '.join(sorted(_shown_value(*item) for item in held[0]))}}}"
    if kind in (tuple, list) or not held:
        return f"({', '.join(_shown_value(*item) for item in held)})"
    value = held[0]
    return getattr(value, "__qualname__", None) or f"{value!r:.60}"
