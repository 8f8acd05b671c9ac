"""What a compile starts from: a Python kernel with the types of its arguments, or the text of a stage.

    ASTSource(add, {"x": "*fp32", "n": "i32", "BLOCK": "constexpr"}, {"BLOCK": 128}, {(0,): [["tt.divisibility", 16]]})
    IRSource("add.ttir")
    IRSource.from_text(kernel.asm["llir"], "llir")

The constructor of ASTSource is Triton's: constexprs by name, index or `(index,)`, attributes by `(index,)`; what a
tuple holds by its name (`args_0`) or the path to it (`(2, 0)`). The type of a tuple is a tuple of types.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from deuteron.backend.metadata import Param, make_params
from deuteron.errors import UsageError, not_read, suggest
from deuteron.language.constant import rebuild
from deuteron.language.functions.function import Function
from deuteron.language.functions.keys import is_kernel_class
from deuteron.language.functions.names import name_of
from deuteron.language.functions.source_functions import functions_of
from deuteron.language.functions.stable_text import stable_repr
from deuteron.language.signature import leaves, part_names
from deuteron.options import Target
from deuteron.tracebacks import api_boundary


class ASTSource:
    """A kernel and what is known of its arguments.

    `signature` has a type for every parameter, in order, `constexpr` where `constexprs` has the value. `constants` is
    what Triton before 3.3 called `constexprs`.
    """

    @api_boundary
    def __init__(
        self,
        fn: Function,
        signature: Mapping[str, Any],
        constexprs: Mapping[Any, Any] | None = None,
        attrs: Mapping[Any, Sequence[Sequence[Any]]] | None = None,
        constants: Mapping[Any, Any] | None = None,
    ):
        if not isinstance(fn, Function):
            raise UsageError(f"a kernel is a function decorated with @jit, got {fn!r}")
        if not isinstance(signature, Mapping):
            raise UsageError(f"the signature of kernel '{fn.__name__}' maps parameters to types, got {signature!r}")
        self.fn = fn
        given = {_param_name(fn, key, {}): type for key, type in signature.items()}
        self.constexprs = {_param_name(fn, key, given): value for key, value in (constexprs or constants or {}).items()}
        self.attrs = _named_attrs(fn, attrs or {}, given)
        self.signature = {name: self._type_of(name, given) for name in fn.arg_names}
        self.name = fn.name_for(self.signature, self.constexprs)

    def _type_of(self, name: str, given: dict[str, Any]) -> Any:
        if name in self.constexprs:
            return "constexpr"
        if given.get(name, "constexpr") != "constexpr":
            return self._part_type(name, given[name])
        default = self.fn.signature.parameters[name].default
        if default is self.fn.signature.empty:
            what = "value" if name in given else "type"
            raise UsageError(f"the signature of kernel '{self.fn.__name__}' has no {what} for parameter '{name}'")
        self.constexprs[name] = default
        return "constexpr"

    def _part_type(self, name: str, type: Any) -> Any:
        """The type with `constexpr` where the value of what a tuple holds is known."""
        if isinstance(type, tuple):
            pairs = zip(part_names(name, type), type, strict=True)
            return rebuild(type, [self._part_type(part, item) for part, item in pairs])
        if name in self.constexprs:
            return "constexpr"
        if not isinstance(type, str):
            raise UsageError(
                f"the signature of kernel '{self.fn.__name__}', parameter '{name}': a type is text such as '*fp32' or "
                f"'i32', got {type!r}"
            )
        if type == "constexpr":
            raise UsageError(f"the signature of kernel '{self.fn.__name__}' has no value for '{name}'")
        return type

    @property
    def params(self) -> tuple[Param, ...]:
        divisibility = {name: dict(attrs).get("tt.divisibility", 1) for name, attrs in self.attrs.items()}
        types = (leaf for name, type in self.signature.items() for leaf in leaves(name, type))
        return tuple(param for name, type in types for param in make_params(name, type, divisibility.get(name, 1)))

    @property
    def constants(self) -> dict[tuple[int, ...], Any]:
        """The values that are known, by the index of the parameter, or the path to the item of one that is a tuple."""
        paths = {
            part: path
            for index, (name, type) in enumerate(self.signature.items())
            for part, path in _paths(name, type, (index,))
        }
        return {paths[name]: value for name, value in self.constexprs.items()}

    def fingerprint(self) -> str:
        """What the compiled kernel depends on, as text: equal for equal kernels in any process."""
        constexprs = {name: _text(value) for name, value in self.constexprs.items()}
        signature = {name: type_key(type) for name, type in self.signature.items()}
        own_name = () if self.name == self.fn.__name__ else (self.name,)
        return repr((*own_name, self.fn.cache_key, signature, sorted(constexprs.items()), sorted(self.attrs.items())))

    def make_ir(self, target: Target, options: Any, codegen_fns: Any, module_map: Any, context: Any) -> Any:
        """What the kernel reads and writes, to be walked as Triton's programs do with its IR: an `AccessModule`.

        `options`, `codegen_fns`, `module_map` and `context` are Triton's, and have no meaning here.
        """
        from deuteron.compiler.access_module import AccessModule  # deferred: brings xDSL
        from deuteron.frontend import lower_function

        return AccessModule(lower_function(self.fn, self.signature, self.constexprs, self.attrs, target, self.name))

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
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise not_read(f"'{path}'", error) from error


def type_key(type: Any) -> str:
    """The text of a parameter's type that is equal for equal ones, of a tuple with its class and what that means."""
    if not isinstance(type, tuple):
        return type
    kind = type.__class__
    methods = kind.class_key() if is_kernel_class(kind) else _text(kind)
    fields = getattr(type, "_fields", ())
    return repr((name_of(kind.__module__), kind.__qualname__, fields, methods, [type_key(item) for item in type]))


def _text(value: Any) -> str:
    """A constexpr, or a class, with what the functions in it use, and the methods of an object."""
    return " ".join((stable_repr(value), *sorted(function.cache_key for function in functions_of(value))))


def _param_name(fn: Function, key: Any, signature: Mapping[str, Any]) -> str:
    """The parameter, or the part of one that is a tuple, that a key means: a name, an index, the path of indices."""
    path = key if isinstance(key, tuple) else (key,)
    if isinstance(path[0], int) and 0 <= path[0] < len(fn.arg_names):
        return _part_name(fn.arg_names[path[0]], signature.get(fn.arg_names[path[0]]), path[1:])
    known = [*fn.arg_names, *(part for name, type in signature.items() for part, _ in leaves(name, type))]
    if key not in known:
        raise UsageError(f"kernel '{fn.__name__}' has no parameter '{key}': it has {', '.join(dict.fromkeys(known))}")
    return key


def _paths(name: str, type: Any, path: tuple[int, ...]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """A parameter, and the parts of one that is a tuple, by name, with the indices that lead there."""
    yield name, path
    if isinstance(type, tuple):
        for index, (part, item) in enumerate(zip(part_names(name, type), type, strict=True)):
            yield from _paths(part, item, (*path, index))


def _part_name(name: str, type: Any, path: Sequence[int]) -> str:
    if not path:
        return name
    if not isinstance(type, tuple) or not 0 <= path[0] < len(type):
        raise UsageError(f"the signature has no item {path[0]} of '{name}': its type is {type!r}")
    return _part_name(part_names(name, type)[path[0]], type[path[0]], path[1:])


def _named_attrs(
    fn: Function, attrs: Mapping[Any, Any], signature: Mapping[str, Any]
) -> dict[str, tuple[tuple[str, int], ...]]:
    named = {_param_name(fn, key, signature): tuple(map(tuple, pairs)) for key, pairs in attrs.items()}
    for parameter, pairs in named.items():
        for name, _ in pairs:
            if name not in _ATTRIBUTES:
                near = suggest(name, _ATTRIBUTES)
                raise UsageError(f"kernel '{fn.__name__}': '{parameter}' has no attribute {name!r}.{near}")
    return named


# What is promised of an argument; the second helps GPUs of AMD.
_ATTRIBUTES = ("tt.divisibility", "tt.pointer_range")
