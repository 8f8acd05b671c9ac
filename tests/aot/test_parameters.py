"""Parameters of every type arrive with their value, and with the names that C and C++ allow."""

import pytest
from aot.workspace import C99, CXX17, Parameter, Workspace

# A type, what LLVM loads it as, the C value that is passed, what is printed.
TYPES = [
    ("i1", "i8", "17 % 2 == 1", "1"),
    ("i1", "i8", "4", "1"),
    ("i1", "i8", "false", "0"),
    ("i8", "i8", "-128", "-128"),
    ("i16", "i16", "-32768", "-32768"),
    ("i32", "i32", "-2147483647", "-2147483647"),
    ("i64", "i64", "-9223372036854775807LL", "-9223372036854775807"),
    ("u8", "i8", "200", "-56"),
    ("u16", "i16", "65535", "-1"),
    ("u32", "i32", "4000000000u", "-294967296"),
    ("u64", "i64", "18446744073709551615ULL", "-1"),
    ("fp16", "float", "0.125f", "0.125"),
    ("bf16", "float", "-3.5f", "-3.5"),
    ("fp32", "float", "0.125f", "0.125"),
    ("fp64", "double", "0.1", "0.1"),
    ("*fp8e5", "ptr", "(char *)0 + 1234567", "1234567"),
]

NAMES = [
    "class",
    "stream",
    "new",
    "int",
    "NULL",
    "linux",
    "x",
    "show",
    "template",
    "größe",
    "a",
    "b",
    "c",
    "d",
    "e",
    "f",
]


def kernel() -> str:
    """Stores every argument, widened to 64 bits, to out[i]."""
    lines = ["define hidden void @SYMBOL(ptr %args, ptr %grid, i64 %begin, i64 %end, ptr %scratch) {"]
    lines += ["  %op = load ptr, ptr %args", "  %out = load ptr, ptr %op"]
    for i, (_, llvm, _, _) in enumerate(TYPES):
        lines.append(f"  %slot{i} = getelementptr ptr, ptr %args, i64 {i + 1}")
        lines.append(f"  %arg{i} = load ptr, ptr %slot{i}")
        lines.append(f"  %value{i} = load {llvm}, ptr %arg{i}")
        widen = {"ptr": "ptrtoint", "float": "fpext", "double": "bitcast", "i64": "bitcast"}.get(llvm, "sext")
        wide = "double" if llvm in ("float", "double") else "i64"
        lines.append(f"  %wide{i} = {widen} {llvm} %value{i} to {wide}")
        lines.append(f"  %place{i} = getelementptr i64, ptr %out, i64 {i}")
        lines.append(f"  store {wide} %wide{i}, ptr %place{i}")
    return "\n".join([*lines, "  ret void", "}"])


def main(header: str, function: str) -> str:
    shown = [
        f'  printf("%g\\n", out[{i}].d);'
        if llvm in ("float", "double")
        else f'  printf("%lld\\n", (long long)out[{i}].i);'
        for i, (_, llvm, _, _) in enumerate(TYPES)
    ]
    arguments = ", ".join(value for _, _, value, _ in TYPES)
    return f"""
#include "{header}"
#include <stdio.h>
int main(void) {{
  union {{ int64_t i; double d; }} out[{len(TYPES)}];
  if ({function}(NULL, out, {arguments}))
    return 1;
{chr(10).join(shown)}
  return 0;
}}
"""


@pytest.mark.parametrize("compiler", [C99, CXX17], ids=["c99", "c++17"])
def test_every_type(workspace: Workspace, compiler: list[str]):
    params = [Parameter("out"), *(Parameter(name) for name in NAMES)]
    signature = ", ".join(["*i64", *(type for type, _, _, _ in TYPES)])
    header = workspace.emit(kernel(), signature, "1", params, name="show")
    function = header.stem.replace(".", "_")
    program = workspace.build(main(header.name, function), compiler, ["-fsanitize=address,undefined"])
    assert program.run().split() == [shown for _, _, _, shown in TYPES]


def test_a_kernel_without_arguments(workspace: Workspace):
    empty = "define hidden void @SYMBOL(ptr %a, ptr %g, i64 %b, i64 %e, ptr %s) {\n  ret void\n}"
    header = workspace.emit(empty, "64", "4", [Parameter("BLOCK", True)], name="nothing")
    function = header.stem.replace(".", "_")
    workspace.build(f'#include "{header.name}"\nint main(void) {{ return {function}(0); }}\n').run()
