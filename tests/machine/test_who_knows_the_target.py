"""Passes and analyses ask the machine description: no name of a target and no number of a machine stands in them; and
what GPUs have in common imports nothing of one of them.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import deuteron

SOURCE = Path(deuteron.__file__).parent
PASSES = sorted(path for folder in ("passes", "analysis") for path in (SOURCE / folder).rglob("*.py"))
TARGETS = re.compile(r"(cuda|cpu|amdgcn|sm_|gfx|hopper|ampere|nvidia)", re.IGNORECASE)
# Lanes and their last, registers of a thread, threads of a CTA; in KiB what a multiprocessor has, or a CTA may have.
NUMBERS = {31, 32, 255, 256, 512} | {size * 1024 for size in (64, 99, 100, 163, 164, 227, 228)}
ELSEWHERE = {
    "MIN_BITS": "of integers",
    "MANY_MATRICES, MATRICES": "from where on instructions become a loop, and of how many",
    "MOST_COMPARED": "where one stops to compare",
    "MOST_TERMS, MOST_FACTORS": "where one stops to multiply",
    "MOST_PROGRAMS, MOST_BESIDE, MOST_CTAS": "of any launch, which has no more",
    "NAN_SCALE": "of the format e8m0",
}


def statements(path: Path) -> Iterator[tuple[ast.stmt, str]]:
    """The simple statements of a file, and the text of each; without docstrings."""
    text = path.read_text()
    lines = text.encode().splitlines(keepends=True)
    for node in ast.walk(ast.parse(text)):
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(node, ast.stmt) and not hasattr(node, "body") and not is_text:
            yield node, segment(lines, node)


def heads(path: Path) -> Iterator[tuple[ast.expr, str]]:
    """Conditions and iterables of compound statements, defaults of parameters."""
    text = path.read_text()
    lines = text.encode().splitlines(keepends=True)
    for node in ast.walk(ast.parse(text)):
        found = [getattr(node, name, None) for name in ("test", "iter", "args")]
        if isinstance(node, ast.If | ast.While | ast.For | ast.FunctionDef):
            yield from ((part, segment(lines, part)) for part in found if isinstance(part, ast.AST))


def segment(lines: Sequence[bytes], node: ast.AST) -> str:
    """As that of `ast`, which splits the text into lines each time; "" of what has no place."""
    if not hasattr(node, "lineno"):
        return ""
    *before, last = lines[node.lineno - 1 : node.end_lineno]
    return b"".join([*before, last[: node.end_col_offset]])[node.col_offset :].decode()


def numbers_in(node: ast.AST) -> Iterator[int]:
    """Constants, and products of constants, that are numbers of a machine; exponents are not."""
    powers = [inner for inner in ast.walk(node) if isinstance(getattr(inner, "op", None), ast.LShift | ast.Pow)]
    exponents = {inner.right for inner in powers if isinstance(inner, ast.BinOp)}
    for inner in ast.walk(node):
        if isinstance(inner, ast.Constant | ast.BinOp) and inner not in exponents:
            try:
                value = eval(compile(ast.Expression(inner), "", "eval"), {"__builtins__": {}})
            except NameError:
                continue
            if isinstance(value, int) and value in NUMBERS:
                yield value


@pytest.mark.parametrize("path", PASSES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_pass_knows_a_target(path):
    for node, text in [*statements(path), *heads(path)]:
        strings = [one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str)]
        assert not any(map(TARGETS.match, strings)), f"names a target: {text}"
        if "bit_width" not in text and not any(text.startswith(name) for name in ELSEWHERE):
            assert not list(numbers_in(node)), f"is this a number of a machine? {text}"


@pytest.mark.parametrize(
    ("folder", "forbidden"),
    [
        ("machine", r"deuteron\.(?!machine|layout|errors|dtypes)"),
        ("passes", r"deuteron\.(backend|options|compiler|runtime)"),
        ("analysis", r"deuteron\.(backend|options|passes|compiler|runtime)"),
        ("backend/math", r"deuteron\.(?!dtypes|errors|language\.extern|backend\.(math|llvm))"),
        ("backend/llvm", r"deuteron\.backend\.(?!llvm)"),
        ("backend/gpu", r"deuteron\.backend\.(cuda|cpu)"),
        ("backend/cuda", r"deuteron\.backend\.cpu"),
        ("backend/cpu", r"deuteron\.backend\.(cuda|gpu)"),
    ],
)
def test_imports_go_one_way(folder, forbidden):
    for path in sorted((SOURCE / folder).rglob("*.py")):
        imports = re.findall(r"^\s*(?:from|import) (deuteron[\w.]*)", path.read_text(), re.MULTILINE)
        assert not [one for one in imports if re.match(forbidden, one)], path


@pytest.mark.parametrize("folder", ["machine", "layout", "backend/math", "backend/gpu", "backend/cpu"])
def test_no_imports_in_a_circle(folder):
    """Also those that are for type checking alone."""
    paths = {_module_of(path): path for path in (SOURCE / folder).rglob("*.py")}
    imports = {}
    for module, path in paths.items():
        found = [one for one in ast.walk(ast.parse(path.read_text())) if isinstance(one, ast.ImportFrom)]
        names = {name for one in found for name in (one.module, *(f"{one.module}.{alias.name}" for alias in one.names))}
        imports[module] = names & paths.keys() - {module}
    while leaves := [module for module, names in imports.items() if not names]:
        imports = {module: names - set(leaves) for module, names in imports.items() if module not in leaves}
    assert not imports, f"a circle is among {sorted(imports)}"


def _module_of(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(["deuteron", *parts]).removesuffix(".__init__")
