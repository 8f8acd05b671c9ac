"""The lines of a definition, found without its tokens, are those of `inspect`; where it is not sure, it asks that."""

import ast
import gc
import importlib.util
import inspect
import tarfile
import threading
from pathlib import Path
from types import FunctionType

import pytest

import deuteron
from deuteron.language.functions import source
from deuteron.language.functions.lambda_source import syntax_tree

TEXT = '''
def plain(x):
    return x
def next_line(x):
    return x


@staticmethod
def decorated(
    x,
    y=(
1, 2),
):
    # first
    text = """
def inner():
no = 1
"""
    if x:
        return [
1,
]
    return x + \\
y  # end

    # of the body

# not of the body

def one_line(x): return x
async_like = 1
class A:
    def method(self):
        def inner():
            return 1
        return inner

    @property
    def other(self): """text"""

    # a comment
def tabbed(x):
\tif x:
\t\treturn 1
\treturn 2
def last(x):
    pass  # no newline after it'''


def functions_of(holder):
    for value in vars(holder).values():
        value = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
        if isinstance(value, FunctionType) and value.__module__ == holder.__dict__.get("__module__", holder.__name__):
            yield value
        elif isinstance(value, type) and value.__module__ == getattr(holder, "__name__", None):
            yield from functions_of(value)


def definition(fn):
    lines = source.lines_of_file(fn)[fn.__code__.co_firstlineno - 1 :]
    return source._definition(fn.__name__, lines) if lines else None


def check(module, least):
    functions = list(functions_of(module))
    found = {fn.__qualname__: definition(fn) for fn in functions}
    known = [fn for fn in functions if found[fn.__qualname__] is not None]
    assert len(known) >= least
    for fn in known:
        assert found[fn.__qualname__][0] == inspect.getsourcelines(fn)[0], fn.__qualname__


def test_definitions_of_every_form(tmp_path):
    path = tmp_path / "definitions.py"
    path.write_text(TEXT)
    spec = importlib.util.spec_from_file_location("definitions", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    check(module, 7)
    assert definition(module.tabbed) is None
    assert source.read_source(module.tabbed).text == TEXT[TEXT.index("def tabbed") : TEXT.index("def last")]
    assert source.read_source(module.decorated.__wrapped__).definition_line == 9


@pytest.mark.parametrize("module", [tarfile, source, inspect], ids=lambda module: module.__name__)
def test_definitions_of_modules(module):
    check(module, 10)


def test_what_is_in_no_file_is_asked_for():
    assert not source.lines_of_file(eval("lambda: 1"))
    assert not source.lines_of_file(print)


@pytest.fixture
def other_threads_parse():
    """In the middle of this thread's parsing, at the first collections of garbage."""
    left, threshold = [None] * 3, gc.get_threshold()

    def parse(phase, info):
        if left:
            left.pop()
            thread = threading.Thread(target=ast.parse, args=("x",))
            thread.start()
            thread.join()

    gc.collect()
    gc.callbacks.append(parse)
    gc.set_threshold(50)
    yield
    gc.set_threshold(*threshold)
    gc.callbacks.remove(parse)


def test_a_thread_parses_while_another_does(other_threads_parse):
    """`ast.parse` ends with a SystemError then, in CPython 3.11."""
    assert len(syntax_tree("\n".join(f"v{i} = ({i} + x) * y" for i in range(200))).body) == 200


def test_all_that_parses_asks_for_the_tree_here():
    """A thread of any command, report or launch may parse while another does."""
    package = Path(deuteron.__file__).parent
    found = [str(file.relative_to(package)) for file in package.rglob("*.py") if " ast.parse(" in file.read_text()]
    assert found == ["language/functions/lambda_source.py"]
