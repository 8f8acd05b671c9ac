"""The source of a Python function: its text, and its syntax tree with the places of the nodes in the file.

    class Kernels:
        @staticmethod
        def f(x):              read_source(f).location(tree.body[0])
            return x           Location("k.py", 4, 9, 17): columns are those of the file, however deep the function is

Text that is executed, not imported, has a source only where it is registered with linecache.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import os
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import PurePosixPath
from types import FunctionType
from typing import Any

from deuteron.errors import Location, UsageError
from deuteron.language.functions.lambda_source import definition_of_lambda, syntax_tree

_MOST_TRIES = 16  # to parse a definition, before its tokens are looked at


@dataclass(frozen=True)
class FunctionSource:
    """The text of a function in its file, and its syntax tree with the lines and columns of that file."""

    file: str
    first_line: int
    lines: tuple[str, ...]
    tree: ast.FunctionDef

    @property
    def text(self) -> str:
        return "".join(self.lines)

    @property
    def definition_line(self) -> int:
        """The line of `def` in the file."""
        return self.tree.lineno + self.line_offset

    @property
    def definition(self) -> str:
        """The text from `def` on, without indentation."""
        return textwrap.dedent("".join(self.lines[self.definition_line - self.first_line :]))

    def with_definition(self, text: str) -> FunctionSource:
        """Another text for the function, in the same place, as far from the margin; raises UsageError where it is not
        that of a `def`.
        """
        lines = textwrap.indent(textwrap.dedent(text), " " * self.tree.col_offset).splitlines(keepends=True)
        try:
            tree = _parse(lines)
        except SyntaxError as error:
            raise UsageError(f"the new source of '{self.tree.name}' cannot be parsed: {error}") from error
        if not isinstance(tree, ast.FunctionDef):
            raise UsageError(f"the new source of '{self.tree.name}' defines no function")
        return FunctionSource(self.file, self.definition_line, tuple(lines), tree)

    def moved(self, file: str | None = None, line: int | None = None, column: int | None = None) -> FunctionSource:
        """The same definition with its `def` elsewhere, where programs that write functions say that it comes from."""
        indentation = self.tree.col_offset if column is None else column - 1
        lines = textwrap.indent(self.definition, " " * indentation).splitlines(keepends=True)
        place = file or self.file, self.definition_line if line is None else line
        return FunctionSource(*place, tuple(lines), _parse(lines))

    @property
    def line_offset(self) -> int:
        """What is added to a line number of `tree` to get that of the file."""
        return self.first_line - 1 - _wrapper_lines(self.lines)

    def location(self, node: ast.AST) -> Location:
        """Where a node of `tree` is in the file. A node of several lines is shown up to the end of its first."""
        if not hasattr(node, "lineno"):
            return Location(self.file, self.first_line)
        line = node.lineno + self.line_offset
        text = self.lines[line - self.first_line]
        end = node.end_col_offset if node.end_lineno == node.lineno else len(text.rstrip().encode())
        return Location(self.file, line, _column(text, node.col_offset), _column(text, end))

    def is_in_parentheses(self, node: ast.expr) -> bool:
        """Whether parentheses begin right before an operand, which the tree does not say."""
        index = node.lineno + self.line_offset - self.first_line
        before = self.lines[index].encode()[: node.col_offset].decode()
        return "".join((*self.lines[:index], before)).rstrip().endswith("(")


def lines_of_file(fn: Callable[..., Any]) -> Sequence[str]:
    """The lines of the file that a function is defined in, as it is now; none where it is in no file.

    Who defines a kernel takes them then: a file may be edited, or gone, before the kernel is compiled.
    """
    fn = inspect.unwrap(fn)
    if type(fn) is not FunctionType:
        return ()
    file = _file_of(fn)
    linecache.checkcache(file)
    return linecache.getlines(file, fn.__globals__) if os.path.isfile(file) else ()


def _file_of(fn: FunctionType) -> str:
    """Where its file is. PyInstaller gives modules names that are relative to the folder of what a program brings."""
    return os.path.join(getattr(sys, "_MEIPASS", ""), fn.__code__.co_filename)


def read_source(fn: Callable[..., Any], file_lines: Sequence[str] = ()) -> FunctionSource:
    """The source of a function of Python; raises UsageError where there is none, or it is no `def` and no lambda.
    `file_lines` are those of its file, where they were taken before.
    """
    try:
        lines, first_line, tree = _definition_of(fn, file_lines or lines_of_file(fn))
        file = inspect.getsourcefile(fn) or fn.__code__.co_filename
    except (OSError, TypeError, SyntaxError) as error:
        raise _no_source(fn, str(error)) from error
    if isinstance(tree, ast.FunctionDef) and tree.name in _names_defined(fn):
        return FunctionSource(file, first_line, tuple(lines), tree)
    if fn.__name__.isidentifier():  # text executed under the name of another, such as `python -c`'s <string>
        raise _no_source(fn, f"line {first_line} of {file} does not define it")
    raise UsageError(
        f"@jit decorates functions written with `def`, got '{fn.__qualname__}'", Location(file, first_line)
    )


def _names_defined(fn: Callable[..., Any]) -> tuple[str, ...]:
    """What the `def` of a function may say: its name, or what that was before a copy of it got another."""
    code = getattr(inspect.unwrap(fn), "__code__", None)
    return (fn.__name__,) if code is None else (fn.__name__, code.co_name)


def source_of_text(fn: Callable[..., Any], text: str) -> FunctionSource:
    """A source for a function that has none of its own to read, in the place where its code says that it is."""
    nothing = (f"def {fn.__name__}(): pass\n",)
    place = FunctionSource(fn.__code__.co_filename, fn.__code__.co_firstlineno, nothing, _parse(nothing))
    return place.with_definition(text)


def _definition_of(fn: Callable[..., Any], file_lines: Sequence[str]) -> tuple[list[str], int, ast.stmt]:
    if not file_lines:
        _check_not_elsewhere(fn)
    if type(fn) is FunctionType and fn.__name__ == "<lambda>":
        lines, first_line, tree = definition_of_lambda(fn, file_lines)
        return lines, first_line, ast.increment_lineno(tree, _wrapper_lines(lines))
    if not file_lines:
        lines, first_line = inspect.getsourcelines(fn)
        return lines, first_line, _parse(lines)
    first_line = inspect.unwrap(fn).__code__.co_firstlineno
    lines = list(file_lines[first_line - 1 :])
    if not lines:
        raise OSError(f"its file has {len(file_lines)} lines, and it begins in line {first_line}")
    if found := _definition(fn.__name__, lines):
        return found[0], first_line, found[1]
    lines = inspect.getblock(lines)
    return lines, first_line, _parse(lines)


def _check_not_elsewhere(fn: Callable[..., Any]) -> None:
    """Raise OSError where a program does not bring the file, and `inspect` would read one of its name in the current
    folder."""
    if type(fn) is FunctionType and os.path.isfile(fn.__code__.co_filename) and _file_of(fn) != fn.__code__.co_filename:
        raise OSError(f"there is no {_file_of(fn)}")


def _definition(name: str, lines: Sequence[str]) -> tuple[list[str], ast.stmt] | None:
    """What `inspect` says of a function that begins with the first line, without its tokens, which take a new process
    4 ms; None where it has to be asked.

    The definition ends before the first line that is indented no more than its own first one, and up to which it can be
    parsed: what cannot ends within a string or brackets, or is the line of a decorator.
    """
    for end in islice(_possible_ends(lines), _MOST_TRIES):
        try:
            tree = _parse(lines[:end])
        except SyntaxError:
            continue
        is_found = isinstance(tree, ast.FunctionDef) and tree.name == name
        return (_without_rest(lines[:end], tree), tree) if is_found else None
    return None


def _possible_ends(lines: Sequence[str]) -> Iterator[int]:
    """Numbers of lines after which a definition that begins with the first may end."""
    indentation = _indentation(lines[0]) if lines else 0
    for number, line in enumerate(lines):
        text = line.lstrip(" ")
        if text[:1] in ("\t", "\f"):  # of which the width is not known
            return
        if number and text.strip() and text[0] != "#" and _indentation(line) <= indentation:
            yield number
    yield len(lines)


def _without_rest(lines: list[str], tree: ast.FunctionDef) -> list[str]:
    """Without the empty lines, and comments outside of the body, that follow it."""
    count = len(lines)
    while _is_outside(lines[count - 1], tree.body[0].col_offset):
        count -= 1
    return lines[:count]


def _is_outside(line: str, indentation: int) -> bool:
    return not line.strip() or (line.lstrip()[0] == "#" and _indentation(line) < indentation)


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _no_source(fn: Callable[..., Any], reason: str) -> UsageError:
    if getattr(sys, "frozen", False):
        advice = f"A frozen program has to bring it as a file: pyinstaller --add-data {_file_in_program(fn)}"
    else:
        advice = (
            "Define kernels in a file, which has to be there when they are launched; text that is executed must be "
            "registered with linecache."
        )
    return UsageError(f"cannot read the source of '{fn.__qualname__}': {reason}. {advice}")


def _file_in_program(fn: Callable[..., Any]) -> str:
    """The file of a function's module and its folder in the program, as PyInstaller is told of them."""
    path = PurePosixPath(f"{fn.__module__.replace('.', '/')}.py")
    return f"{path}:{path.parent}"


def _parse(lines: Sequence[str]) -> ast.stmt:
    """The definition in these lines. An indented one is put under an `if`, so that columns stay those of the file."""
    tree = syntax_tree("if True:\n" * _wrapper_lines(lines) + "".join(lines))
    definition = tree.body[0]
    return definition.body[0] if isinstance(definition, ast.If) else definition


def _wrapper_lines(lines: Sequence[str]) -> int:
    return int(lines[0][:1].isspace())


def _column(text: str, byte_offset: int) -> int:
    """The column, from 1, of an offset in UTF-8 bytes, which is what ast counts in."""
    return len(text.encode()[:byte_offset].decode()) + 1
