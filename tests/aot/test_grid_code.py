"""The C of a grid gives what Python gives: many expressions, drawn anew, in one program built with the sanitizers."""

import subprocess
from pathlib import Path

import numpy as np

from deuteron.aot.grid import Scope, parse_grid
from deuteron.aot.grid_code import Variable, node_code, node_value
from deuteron.aot.templates import runtime_source
from deuteron.errors import UsageError

NAMES = {"a": "i32", "b": "i64", "c": "u64", "flag": "i1"}
OPERATORS = ["+", "-", "*", "/", "//", "%"]
CALLS = ["cdiv", "min", "max"]
SPECIAL = {
    "a": [0, 1, -1, 7, 2**31 - 1, -(2**31)],
    "b": [0, 1, -1, 128, -9, 2**63 - 1, -(2**63)],
    "c": [0, 1, 3, 2**63 - 1, 2**63, 2**64 - 1],
    "flag": [0, 1],
}


def expression(rng: np.random.Generator, depth: int) -> str:
    if depth == 0 or rng.random() < 0.2:
        return str(rng.choice([*NAMES, "0x7f", "3", "2147483647"]))
    left, right = expression(rng, depth - 1), expression(rng, depth - 1)
    if rng.random() < 0.3:
        return f"{rng.choice(CALLS)}({left}, {right})"
    return f"({left}) {rng.choice(OPERATORS)} (-{right})"


def expected(node, values: dict[str, int]) -> str:
    try:
        return str(node_value(node, values))
    except UsageError:
        return "bad"


def test_c_and_python_agree(tmp_path: Path, rng: np.random.Generator):
    scope = Scope(set(NAMES))
    variables = {name: Variable(name, type) for name, type in NAMES.items()}
    body, wanted = [], []
    for _ in range(200):
        node = parse_grid(expression(rng, 3), scope)[0]
        values = {name: int(rng.choice(np.array(SPECIAL[name], dtype=object))) for name in NAMES}
        a, b, c, flag = (values[name] for name in NAMES)
        b_text = f"{b}LL" if b != -(2**63) else "INT64_MIN"
        body.append(f"  a = {a}; b = {b_text}; c = {c}ULL; flag = {flag}; deuteron_bad = 0;")
        body.append(f"  result = {node_code(node, variables)}; show(result, deuteron_bad);")
        wanted.append(expected(node, values))
    program = (
        f"{runtime_source('cpu_types.h', 'status.h', 'grid.c')}\n#include <stdio.h>\n"
        'static void show(int64_t r, int bad) { if (bad) printf("bad\\n"); else printf("%lld\\n", (long long)r); }\n'
        "int main(void) {\n  int32_t a; int64_t b, result; uint64_t c; bool flag; int deuteron_bad;\n"
        + "\n".join(body)
        + "\n  (void)a, (void)b, (void)c, (void)flag;\n  return 0;\n}\n"
    )
    (tmp_path / "grid.c").write_text(program)
    flags = ["-std=c99", "-fsanitize=undefined", "-fno-sanitize-recover", "-w"]
    subprocess.run(["gcc", *flags, "grid.c", "-o", "grid"], cwd=tmp_path, check=True)
    found = subprocess.run([tmp_path / "grid"], capture_output=True, text=True, check=True).stdout.split()
    assert found == wanted
    assert "bad" in wanted and len(set(wanted)) > 10
