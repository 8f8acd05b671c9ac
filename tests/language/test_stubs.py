"""Each function of the language: Triton's signature, a docstring, a semantic function with the same parameters."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from deuteron import language as tl
from deuteron.errors import UsageError
from deuteron.frontend.semantics import DESCRIPTOR_METHODS, METHODS, RULES
from deuteron.language.builtin import Builtin
from deuteron.language.functions.function import Function

BUILTINS = {name: value for name, value in vars(tl).items() if isinstance(value, Builtin)}
SIGNATURES = Path(__file__).with_name("triton_signatures.txt").read_text()
FUNCTIONS = {name: value for name, value in vars(tl).items() if isinstance(value, (Builtin, Function))}


def parameter_text(parameter: inspect.Parameter) -> str:
    """As triton_signatures.txt has it."""
    prefix = {parameter.VAR_POSITIONAL: "*", parameter.KEYWORD_ONLY: "kw:"}.get(parameter.kind, "")
    default = parameter.default
    if default is parameter.empty:
        return f"{prefix}{parameter.name}"
    return f"{prefix}{parameter.name}={0 if default is tl.PropagateNan.NONE else default}"


# Parameters of older versions come after Triton 3.9's.
OLDER = {"dot": ("trans_a", "trans_b")}


def signature_text(name: str) -> str:
    parameters = [p for p in FUNCTIONS[name].signature.parameters.values() if p.name not in OLDER.get(name, ())]
    return f"{name}({', '.join(map(parameter_text, parameters))})\n"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_signature_is_tritons(name: str):
    """The file was made from Triton 3.9 (block pointers: 3.6), which has `item` as a method only."""
    assert f"\n{signature_text(name)}" in "\n" + SIGNATURES


@pytest.mark.parametrize("name", BUILTINS)
def test_semantic_function_has_the_same_parameters(name: str):
    stub, rule = BUILTINS[name], RULES[BUILTINS[name]]
    context, *parameters = inspect.signature(rule).parameters.values()
    assert context.name == "ctx"
    found = [(p.name, p.kind, p.default) for p in parameters]
    assert found == [(p.name, p.kind, p.default) for p in stub.signature.parameters.values()]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_docstring(name: str):
    text = inspect.getdoc(FUNCTIONS[name])
    assert text and text.splitlines()[0].endswith((".", ":"))


def test_every_documented_method_works():
    documented = [name for name, member in vars(tl.tensor).items() if inspect.isfunction(member) and name[0] != "_"]
    assert sorted(name for name in METHODS if not name.startswith("__")) == sorted(documented)


def test_every_method_of_descriptors_has_the_parameters_of_its_stub():
    stubs = {name: member for name, member in vars(tl.tensor_descriptor).items() if inspect.isfunction(member)}
    del stubs["__init__"]

    assert set(stubs) == set(DESCRIPTOR_METHODS)
    for name, stub in stubs.items():
        ctx, desc, *parameters = inspect.signature(DESCRIPTOR_METHODS[name]).parameters
        assert parameters == list(inspect.signature(stub).parameters)[1:]


def test_call_outside_a_kernel_says_what_is_missing():
    with pytest.raises(UsageError, match=r"tl\.load can only be called inside a kernel\. Did you forget @jit"):
        tl.load(0)
    with pytest.raises(TypeError, match="exists inside a kernel only"):
        tl.tensor()


def test_language_imports_no_compiler():

    code = "import sys, deuteron.language; print([m for m in ('xdsl', 'llvmlite', 'numpy') if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
