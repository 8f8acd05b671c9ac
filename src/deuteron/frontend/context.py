"""Where the frontend is: the function, the variables, the AST node, the calls that led there, and the IR built so far.

Handlers of syntax and semantic functions take the `Context` first:

    def load(ctx, pointer, mask=None, other=None):
        if not pointer.dtype.is_ptr():
            raise ctx.error(f"tl.load needs a pointer, got {pointer.type}. Add an offset to a pointer argument.")
        return Tensor(ctx.builder.value(LoadOp(...)), type)

The builder stamps ops with the location of the call that the semantic function is the meaning of.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from xdsl.dialects.builtin import LocationAttr

from deuteron.errors import CompilationError, Location, caused
from deuteron.frontend.completion import Completion
from deuteron.frontend.scope import Scope
from deuteron.frontend.unsupported import unsupported
from deuteron.frontend.values import Value, is_runtime, is_same
from deuteron.ir.builder import Builder
from deuteron.ir.location import to_attribute
from deuteron.language.functions.function import Function
from deuteron.language.functions.source_functions import SourceFunction
from deuteron.options import Target


@dataclass(frozen=True)
class Syntax:
    """The handlers of syntax: one for each class of AST node, and how a function is inlined."""

    expressions: Mapping[type[ast.AST], Callable[[Context, Any], Value]]
    statements: Mapping[type[ast.AST], Callable[[Context, Any], Completion | None]]
    execute: Callable[[Context, Sequence[ast.stmt]], Completion]
    inline: Callable[[Context, Function, Sequence[Value], Mapping[str, Value]], Value]
    apply: Callable[[Context, Any, Sequence[Value], Mapping[str, Value]], Value]


@dataclass
class Frame:
    """One function being compiled: its variables, the node at hand, and the calls that it is inlined for.

    `carried`: in a loop of the kernel the variables that are read where an iteration ends; None: any may be.
    """

    scope: Scope
    node: ast.AST
    call_chain: tuple[Location, ...] = ()
    carried: Collection[str] | None = None

    def location(self) -> Location:
        return self.scope.function.location(self.node)


@dataclass(frozen=True)
class Asked:
    """Options that what a kernel means depends on: of `num_warps` it may ask; against overflows, and steps of ranges
    that are not positive, it asserts; `dot_precision` is that of its products of fp32 that say none.
    """

    num_warps: int = 4
    checks_overflow: bool = False
    checks_steps: bool = False
    dot_precision: str = "tf32"

    @staticmethod
    def of(options: Any) -> Asked:
        """Those of a target's options."""
        checks_overflow = options.debug and options.sanitize_overflow
        return Asked(options.num_warps, checks_overflow, options.debug, options.default_dot_input_precision)


PLAIN = Asked()
NOTHING_GIVEN: Mapping[Callable[..., Any], SourceFunction] = MappingProxyType({})


class Context:
    """The state of one compilation. `frames[-1]` is the function at hand."""

    def __init__(
        self,
        builder: Builder,
        syntax: Syntax,
        frame: Frame,
        target: Target | None = None,
        asked: Asked = PLAIN,
        given: Mapping[Callable[..., Any], SourceFunction] = NOTHING_GIVEN,
    ):
        """`target` is what the kernel is compiled for, for kernels that ask; None in the interpreter. `given` has the
        functions that it is given as arguments.
        """
        self.target = target
        self.given = given
        self.asked = asked
        self.builder = builder
        self.syntax = syntax
        self.frames = [frame]
        self.old_spellings: dict[tuple[LocationAttr, str], None] = {}

    @property
    def frame(self) -> Frame:
        return self.frames[-1]

    @property
    def scope(self) -> Scope:
        return self.frame.scope

    @property
    def call_chain(self) -> tuple[Location, ...]:
        """The places of the calls that led here, innermost first."""
        return self.frame.call_chain

    def error(self, message: str, kind: type[CompilationError] = CompilationError) -> CompilationError:
        """An error about the node at hand, to be raised: what is wrong, with the values, and what would be right.

        Within a function of Deuteron's own library it is about the call that led there, which the user has written, and
        names the function.
        """
        depth = next((depth for depth, frame in enumerate(reversed(self.frames)) if not frame.scope.function.is_own), 0)
        frame = self.frames[-1 - depth]
        name = self.frames[-depth].scope.function.__name__ if depth else "_"
        what = "" if name.startswith("_") else f"tl.{name}: "
        return caused(kind(f"{what}{message}", frame.location(), frame.call_chain))

    def tell_old_spelling(self, said: str) -> None:
        """Keep for the report that the call at hand says it as older versions of Triton did."""
        self.old_spellings[self.builder.location, said] = None

    @property
    def checks_overflow(self) -> bool:
        """Whether sums of the user's are to be checked; what the library computes may wrap."""
        return self.asked.checks_overflow and not self.scope.function.is_own

    def how_to_know(self, value: Value) -> str:
        """The way out where a value has to be known at compile time: of a parameter of the kernel, of a variable that
        was assigned a number.
        """
        for frame in reversed(self.frames):
            for name, (assigned, number) in frame.scope.numbers.items():
                if is_runtime(value) and is_same(assigned, value):
                    used = {part.id for part in ast.walk(number) if isinstance(part, ast.Name)}
                    is_new = name not in {*frame.scope.function.arg_names, *used}
                    written = f"{name if is_new else name + '_'}: tl.constexpr = {ast.unparse(number)}"
                    return f"'{name}' was assigned without an annotation, so it is a run-time value: write `{written}`."
        variables, parameters = self.frames[0].scope.variables, self.frames[0].scope.function.arg_names
        for name in parameters:
            if name in variables and is_runtime(value) and is_same(variables[name], value):
                return f"It is a parameter: annotate it, as in `{name}: tl.constexpr`."
        return ""

    def call_function(self, fn: Function, args: Sequence[Value]) -> Value:
        """The result of a function of the language, inlined at the builder's insertion point."""
        return self.syntax.inline(self, fn, args, {})

    def call(self, callee: Any, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """The result of a call of anything that a kernel may call."""
        return self.syntax.apply(self, callee, args, kwargs)

    def evaluate(self, node: ast.expr) -> Value:
        """The value of an expression."""
        handler = self.syntax.expressions.get(type(node))
        with self.at(node):
            if handler is None:
                raise unsupported(self)
            return handler(self, node)

    def execute(self, statements: Sequence[ast.stmt]) -> Completion:
        """Compile a block of statements; how it ends."""
        return self.syntax.execute(self, statements)

    @contextmanager
    def at(self, node: ast.AST) -> Iterator[None]:
        """Within, errors are about this node. An error leaves the node as it is, to be looked at."""
        frame = self.frame
        outer, frame.node = frame.node, node
        yield
        frame.node = outer

    def stamp(self, name: str | None = None) -> LocationAttr:
        """Let new ops take the location of the node at hand, and return it."""
        self.builder.location = to_attribute(self.frame.location(), name, self.call_chain)
        return self.builder.location
