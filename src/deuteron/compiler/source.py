"""What a compile starts from: a Python kernel with the types of its arguments, or the text of a stage.

    ASTSource(add, {"x": "*fp32", "n": "i32", "BLOCK": "constexpr"}, {"BLOCK": 128}, {(0,): [["tt.divisibility", 16]]})
    IRSource("add.ttir")
    IRSource.from_text(kernel.asm["llir"], "llir")

The constructor of ASTSource is Triton's: constexprs by name, index or `(index,)`, attributes by `(index,)`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from deuteron.backend.metadata import Param, make_params
from deuteron.errors import UsageError
from deuteron.language.function import Function
from deuteron.language.references import stable_repr


class ASTSource:
    """A kernel and what is known of its arguments.

    `signature` has a type for every parameter, in order, `constexpr` where `constexprs` has the value.
    """

    def __init__(
        self,
        fn: Function,
        signature: Mapping[str, str],
        constexprs: Mapping[Any, Any] | None = None,
        attrs: Mapping[Any, Sequence[Sequence[Any]]] | None = None,
    ):
        if not isinstance(fn, Function):
            raise UsageError(f"a kernel is a function decorated with @jit, got {fn!r}")
        self.fn = fn
        self.name = fn.__name__
        self.constexprs = {_param_name(fn, key): value for key, value in (constexprs or {}).items()}
        self.attrs = _named_attrs(fn, attrs or {})
        given = {_param_name(fn, key): type for key, type in signature.items()}
        self.signature = {name: self._type_of(name, given) for name in fn.arg_names}

    def _type_of(self, name: str, given: dict[str, str]) -> str:
        if name in self.constexprs:
            return "constexpr"
        if given.get(name, "constexpr") != "constexpr":
            return given[name]
        default = self.fn.signature.parameters[name].default
        if default is self.fn.signature.empty:
            what = "value" if name in given else "type"
            raise UsageError(f"the signature of kernel '{self.name}' has no {what} for parameter '{name}'")
        self.constexprs[name] = default
        return "constexpr"

    @property
    def params(self) -> tuple[Param, ...]:
        divisibility = {name: dict(attrs).get("tt.divisibility", 1) for name, attrs in self.attrs.items()}
        types = self.signature.items()
        return tuple(param for name, type in types for param in make_params(name, type, divisibility.get(name, 1)))

    def fingerprint(self) -> str:
        """What the compiled kernel depends on, as text: equal for equal kernels in any process."""
        constexprs = {name: stable_repr(value) for name, value in self.constexprs.items()}
        return repr((self.fn.cache_key, self.signature, sorted(constexprs.items()), sorted(self.attrs.items())))

    def hash(self) -> str:
        return hashlib.sha256(self.fingerprint().encode()).hexdigest()


class IRSource:
    """The text of a stage: a file whose suffix names the stage, or a text and the name of its stage."""

    def __init__(self, path: str | Path, *unused: Any):
        """Read a file. Triton's further arguments (context, backend) are accepted and have no meaning here."""
        self.file = str(path)
        self.stage = Path(path).suffix.lstrip(".")
        self.text = read_text(Path(path))

    @classmethod
    def from_text(cls, text: str, stage: str) -> IRSource:
        source = cls.__new__(cls)
        source.file, source.stage, source.text = f"<{stage}>", stage, text
        return source

    def fingerprint(self) -> str:
        return repr((self.stage, self.text))

    def hash(self) -> str:
        return hashlib.sha256(self.fingerprint().encode()).hexdigest()


def read_text(path: Path) -> str:
    """The text of a file; raises UsageError where it cannot be read."""
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read '{path}': {error}") from error


def _param_name(fn: Function, key: Any) -> str:
    """The parameter that a key of Triton's dictionaries means: a name, an index or `(index,)`."""
    index = key[0] if isinstance(key, tuple) and len(key) == 1 else key
    if isinstance(index, int) and 0 <= index < len(fn.arg_names):
        return fn.arg_names[index]
    if key not in fn.arg_names:
        raise UsageError(f"kernel '{fn.__name__}' has no parameter '{key}': it has {', '.join(fn.arg_names)}")
    return key


def _named_attrs(fn: Function, attrs: Mapping[Any, Any]) -> dict[str, tuple[tuple[str, int], ...]]:
    return {_param_name(fn, key): tuple((name, value) for name, value in pairs) for key, pairs in attrs.items()}
